"""ledger."""

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
from noisefloor_services.ledger.terms import LedgerTerms

__all__ = [
    "AnchoredLedger",
    "BadAnchor",
    "LedgerAbsent",
    "LedgerAnchor",
    "LedgerBehind",
    "LedgerTerms",
    "RedisLedger",
    "ReleaseSealed",
    "ReleaseUnspent",
    "RestorationSummary",
    "restore",
]
