"""The privacy ledger on a Redis server, with an anchor that its backups do not reach."""

from noisefloor_services.ledger.anchor import (
    AnchoredLedger,
    LedgerAnchor,
    RestorationSummary,
    restore,
)
from noisefloor_services.ledger.errors import (
    BadAnchor,
    LedgerAbsent,
    LedgerBehind,
    ReleaseSealed,
    ReleaseUnspent,
)
from noisefloor_services.ledger.redis_ledger import RedisLedger
from noisefloor_services.ledger.terms import LedgerKeys, LedgerTerms

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
