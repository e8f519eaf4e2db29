"""The model publisher: charges the ledger, releases once, hands out what is stored."""

from noisefloor_services.publisher.app import DESCRIPTION, NAME, RULES, create
from noisefloor_services.publisher.data_sets import read_data_sets
from noisefloor_services.publisher.ledgers import (
    create_ledger,
    migrate_ledger,
    restore_ledger,
    terms,
)

__all__ = [
    "DESCRIPTION",
    "NAME",
    "RULES",
    "create",
    "create_ledger",
    "migrate_ledger",
    "read_data_sets",
    "restore_ledger",
    "terms",
]
