"""Roles: the servers as pure state machines, message in, state and answer out.

No clock, no socket and no randomness. The simulator runs them in its own process; services do the
same by scripts of their own, and are tested equal. ``kind_registry`` lists the kinds of frame.
"""

from noisefloor.roles.ad_server import IMPRESSIONS, Ad, AdServer, Catalogue, impressions_kind
from noisefloor.roles.aggregator import Aggregator
from noisefloor.roles.artefact import Artefact, unpack_artefact
from noisefloor.roles.artefact_files import FileArtefactStore, write_once
from noisefloor.roles.batches import (
    BatchTerms,
    ReportProtection,
    read_parameters,
    rows_answer,
    sums_answer,
)
from noisefloor.roles.collection_config import CollectionConfig, example_collection
from noisefloor.roles.epochs import AggregationLimits, EpochSummary
from noisefloor.roles.file_publisher import FilePublisher, PublicationPreview
from noisefloor.roles.frame_outcomes import DeadLetter, FrameCounters, FrameOutcome, FrameStatus
from noisefloor.roles.kind_registry import KIND_BUILDERS, kinds_from_sizes
from noisefloor.roles.model_publisher import (
    MemoryArtefactStore,
    ModelPublisher,
    PublicationMethod,
    PublicationState,
    ReleaseRequest,
    has_failed,
)
from noisefloor.roles.publication_methods import (
    LOADING,
    Audit,
    DataSets,
    methods_of,
    model_card,
    model_method,
)
from noisefloor.roles.server_interfaces import (
    Aggregation,
    EpochReleases,
    ImpressionServer,
    PublicationServer,
    TrainingServer,
)
from noisefloor.roles.training_coordinator import TrainingCoordinator, release_round

__all__ = [
    "IMPRESSIONS",
    "KIND_BUILDERS",
    "LOADING",
    "Ad",
    "AdServer",
    "Aggregation",
    "AggregationLimits",
    "Aggregator",
    "Artefact",
    "Audit",
    "BatchTerms",
    "Catalogue",
    "CollectionConfig",
    "DataSets",
    "DeadLetter",
    "EpochReleases",
    "EpochSummary",
    "FileArtefactStore",
    "FilePublisher",
    "FrameCounters",
    "FrameOutcome",
    "FrameStatus",
    "ImpressionServer",
    "MemoryArtefactStore",
    "ModelPublisher",
    "PublicationMethod",
    "PublicationPreview",
    "PublicationServer",
    "PublicationState",
    "ReleaseRequest",
    "ReportProtection",
    "TrainingCoordinator",
    "TrainingServer",
    "example_collection",
    "has_failed",
    "impressions_kind",
    "kinds_from_sizes",
    "methods_of",
    "model_card",
    "model_method",
    "read_parameters",
    "release_round",
    "rows_answer",
    "sums_answer",
    "unpack_artefact",
    "write_once",
]
