"""The HTTP contract: requests and answers that services and simulator share."""

from noisefloor.wire.messages.ad_serving import (
    MOST_TOKENS,
    AdRequest,
    AdResponse,
    CatalogueAd,
    SingleReport,
    TokenRequest,
)
from noisefloor.wire.messages.aggregation import (
    CollectionState,
    ConservationReport,
    EpochStatistics,
    EpochStatus,
    KindState,
)
from noisefloor.wire.messages.publication import (
    BudgetBalance,
    BudgetStatement,
    DataSetBudget,
    DataSetList,
    DataSetMessage,
    LedgerChain,
    LedgerLine,
    PublicationCost,
    PublicationMessage,
    PublicationOutcome,
    PublicationPrice,
    PublicationStatus,
)

__all__ = [
    "MOST_TOKENS",
    "AdRequest",
    "AdResponse",
    "BudgetBalance",
    "BudgetStatement",
    "CatalogueAd",
    "CollectionState",
    "ConservationReport",
    "DataSetBudget",
    "DataSetList",
    "DataSetMessage",
    "EpochStatistics",
    "EpochStatus",
    "KindState",
    "LedgerChain",
    "LedgerLine",
    "PublicationCost",
    "PublicationMessage",
    "PublicationOutcome",
    "PublicationPrice",
    "PublicationStatus",
    "SingleReport",
    "TokenRequest",
]
