"""Made-up texts of a pretrained language model whose chances are shifted by noisy counts.

    model = shared_language_model("smollm2-135m")     # fetched; or ``own``: a directory
    writer = LanguageWriter(model, Decoding("Write a film review."), longest=60)
    plan = NgramPlan.of(cost, 2, 60, model.tokeniser.size, has_pairs=False)
    written = writer.write(documents, plan, 2_000, source)

``gguf_directory`` turns a fetched file into a directory of transformers, ``model_folders`` says
where models lie, ``language_model`` reads one, ``decoding`` draws texts from it, ``piece_shifts``
says by how much each piece is preferred under each label, ``language_writer`` writes. torch and
transformers are imported on first use.
"""

from typing import TYPE_CHECKING, Any

from noisefloor.publication.text.language_models.language_model import (
    LanguageModel,
    load_language_model,
    shared_language_model,
)
from noisefloor.publication.text.language_models.model_folders import (
    DEFAULT_MODEL,
    OWN_MODEL_VARIABLE,
    language_model_folder,
)
from noisefloor.publication.text.language_models.piece_shifts import Steering

if TYPE_CHECKING:
    from noisefloor.publication.text.language_models.decoding import Decoding, decode
    from noisefloor.publication.text.language_models.language_writer import LanguageWriter

__all__ = [
    "DEFAULT_MODEL",
    "OWN_MODEL_VARIABLE",
    "Decoding",
    "LanguageModel",
    "LanguageWriter",
    "Steering",
    "decode",
    "language_model_folder",
    "load_language_model",
    "shared_language_model",
]

_WITH_TORCH = {
    "Decoding": "decoding",
    "LanguageWriter": "language_writer",
    "decode": "decoding",
}


def __getattr__(name: str) -> Any:  # Any: whatever the module has by that name
    """Import what needs torch on first use."""
    if name not in _WITH_TORCH:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_WITH_TORCH[name]}"), name)
