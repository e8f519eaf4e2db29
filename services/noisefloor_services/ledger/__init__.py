"""The privacy ledger on a Redis or Valkey server, with its anchor file beside the server."""

from noisefloor_services.ledger.anchor import (
    AnchoredLedger,
    LedgerAnchor,
    RestorationSummary,
    restore,
)
from noisefloor_services.ledger.redis_ledger import RedisLedger
from noisefloor_services.ledger.terms import (
    BadAnchor,
    LedgerAbsent,
    LedgerBehind,
    LedgerKeys,
    LedgerTerms,
    ReleaseSealed,
    ReleaseUnspent,
)

__all__ = [
    "AnchoredLedger",
    "BadAnchor",
    "LedgerAbsent",
    "LedgerAnchor",
    "LedgerBehind",
    "LedgerKeys",
    "LedgerTerms",
    "RedisLedger",
    "ReleaseSealed",
    "ReleaseUnspent",
    "RestorationSummary",
    "restore",
]
