"""The privacy ledger on a Redis or Valkey server, with its anchor file beside the server."""

from noisefloor_services.ledger.anchor import (
    AnchoredLedger,
    LedgerAnchor,
    RestorationSummary,
    restore,
)
from noisefloor_services.ledger.migration import MigrationSummary, migrate
from noisefloor_services.ledger.redis_ledger import RedisLedger
from noisefloor_services.ledger.terms import (
    BadAnchor,
    LedgerBehind,
    LedgerKeys,
    ReleaseSealed,
    ReleaseUnspent,
)

__all__ = [
    "AnchoredLedger",
    "BadAnchor",
    "LedgerAnchor",
    "LedgerBehind",
    "LedgerKeys",
    "MigrationSummary",
    "RedisLedger",
    "ReleaseSealed",
    "ReleaseUnspent",
    "RestorationSummary",
    "migrate",
    "restore",
]
