"""Fine-tuning of pretrained encoders on private texts: from texts to a published classifier.

    backbone = load_backbone()                       # MiniLM, or any directory of transformers
    tokens = tokenise(backbone, schema, records.texts)
    states = run_frozen(backbone, tokens, (4, 5, 6))  # once: all that is frozen
    model = load_text_model(content, card, keys)      # what was published, on its backbone
    model.predict(["a fine film"])

``backbone`` reads a directory (``model_directory``: which files), ``tokens`` cuts texts into
pieces, ``frozen_layers`` runs what is not trained, ``feature_scaling`` and ``public_scales`` have
public scales, ``feature_cache`` keeps features of public texts, ``text_head`` trains a linear head
alone, ``top_layers`` is what private SGD trains beyond it, ``published_text_model`` is the file
and ``text_model`` what it predicts.
torch and transformers are imported on first use.
"""

from typing import TYPE_CHECKING, Any

from noisefloor.publication.fine_tuning.backbone import (
    DEFAULT_BACKBONE,
    Backbone,
    backbone_folder,
    load_backbone,
    shared_backbone,
    shared_folder,
    using_backbone,
)
from noisefloor.publication.fine_tuning.feature_cache import public_features
from noisefloor.publication.fine_tuning.feature_scaling import FeatureScaling
from noisefloor.publication.fine_tuning.frozen_layers import (
    FrozenStates,
    check_pooled,
    check_states_bytes,
    kept_by,
    run_frozen,
    states_bytes,
)
from noisefloor.publication.fine_tuning.frozen_store import FrozenStore
from noisefloor.publication.fine_tuning.model_directory import (
    CONFIG,
    files_sha256,
    quiet_transformers,
    weight_files,
)
from noisefloor.publication.fine_tuning.public_scales import public_scaling
from noisefloor.publication.fine_tuning.published_text_model import (
    TextModelFile,
    check_release_bytes,
    is_text_model,
    release_bytes,
)
from noisefloor.publication.fine_tuning.text_head import HeadSettings, train_head
from noisefloor.publication.fine_tuning.text_model import TextModel, load_text_model
from noisefloor.publication.fine_tuning.tokens import TokenTable, longest_row, tokenise

if TYPE_CHECKING:
    from noisefloor.publication.fine_tuning.top_layers import LayeredModule, TopLayers

__all__ = [
    "CONFIG",
    "DEFAULT_BACKBONE",
    "Backbone",
    "FeatureScaling",
    "FrozenStates",
    "FrozenStore",
    "HeadSettings",
    "LayeredModule",
    "TextModel",
    "TextModelFile",
    "TokenTable",
    "TopLayers",
    "backbone_folder",
    "check_pooled",
    "check_release_bytes",
    "check_states_bytes",
    "files_sha256",
    "is_text_model",
    "kept_by",
    "load_backbone",
    "load_text_model",
    "longest_row",
    "public_features",
    "public_scaling",
    "quiet_transformers",
    "release_bytes",
    "run_frozen",
    "shared_backbone",
    "shared_folder",
    "states_bytes",
    "tokenise",
    "train_head",
    "using_backbone",
    "weight_files",
]


def __getattr__(name: str) -> Any:  # Any: whatever the module has by that name
    """Import what needs torch on first use."""
    if name not in ("LayeredModule", "TopLayers"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from noisefloor.publication.fine_tuning import top_layers

    return getattr(top_layers, name)
