"""The Redis or Valkey server: connection, keys, scripts, durability, and what is stored there."""

from noisefloor_services.store import scripts
from noisefloor_services.store.collection_registry import (
    MOST,
    NAME,
    CollectionRegistry,
    Registration,
)
from noisefloor_services.store.durability import (
    Durability,
    StoreRequirement,
    UnmetRequirement,
    probe_server,
)
from noisefloor_services.store.embedded import EmbeddedServer, run_store
from noisefloor_services.store.errors import (
    BadStore,
    EpochClosing,
    FrameRefused,
    Refusal,
    StoreAway,
    StoreStalled,
    StreamFull,
)
from noisefloor_services.store.keys import ENTRY_ID, FIELD, GROUP, Layout, PartitionKeys
from noisefloor_services.store.log_rewriting import LogRewriting
from noisefloor_services.store.model_broadcast import MODEL_TYPE, BroadcastContent, ModelBroadcast
from noisefloor_services.store.scripts import Command, Script, Word
from noisefloor_services.store.server import TIMEOUT_S, Server, translated_error

__all__ = [
    "ENTRY_ID",
    "FIELD",
    "GROUP",
    "MODEL_TYPE",
    "MOST",
    "NAME",
    "TIMEOUT_S",
    "BadStore",
    "BroadcastContent",
    "CollectionRegistry",
    "Command",
    "Durability",
    "EmbeddedServer",
    "EpochClosing",
    "FrameRefused",
    "Layout",
    "LogRewriting",
    "ModelBroadcast",
    "PartitionKeys",
    "Refusal",
    "Registration",
    "Script",
    "Server",
    "StoreAway",
    "StoreRequirement",
    "StoreStalled",
    "StreamFull",
    "UnmetRequirement",
    "Word",
    "probe_server",
    "run_store",
    "scripts",
    "translated_error",
]
