"""Roles: the servers as pure state machines, message in, state and answer out.

No clock, no socket and no randomness: services wrap them for the network, the simulator runs
them in its own process. ``kinds`` lists every kind of frame that they may be asked to count.
"""

from noisefloor.roles.ad_server import IMPRESSIONS, AdServer, impressions_kind
from noisefloor.roles.aggregator import Aggregator
from noisefloor.roles.artefact import Artefact, canonical_json, unpack_artefact
from noisefloor.roles.catalogue import Ad, Catalogue
from noisefloor.roles.collection_config import CollectionConfig, example_collection
from noisefloor.roles.epochs import AggregationLimits, EpochSummary
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
    ImpressionServer,
    PublicationServer,
    TrainingServer,
)
from noisefloor.roles.training_coordinator import TrainingCoordinator, release_round
from noisefloor.tasks import AdTask, read_broadcast, write_broadcast

__all__ = [
    "IMPRESSIONS",
    "KIND_BUILDERS",
    "LOADING",
    "Ad",
    "AdServer",
    "AdTask",
    "Aggregation",
    "AggregationLimits",
    "Aggregator",
    "Artefact",
    "Audit",
    "Catalogue",
    "CollectionConfig",
    "DataSets",
    "DeadLetter",
    "EpochSummary",
    "FrameCounters",
    "FrameOutcome",
    "FrameStatus",
    "ImpressionServer",
    "MemoryArtefactStore",
    "ModelPublisher",
    "PublicationMethod",
    "PublicationServer",
    "PublicationState",
    "ReleaseRequest",
    "TrainingCoordinator",
    "TrainingServer",
    "canonical_json",
    "example_collection",
    "has_failed",
    "impressions_kind",
    "kinds_from_sizes",
    "methods_of",
    "model_card",
    "model_method",
    "read_broadcast",
    "release_round",
    "unpack_artefact",
    "write_broadcast",
]
