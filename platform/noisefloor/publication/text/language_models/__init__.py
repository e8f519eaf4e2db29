"""Made-up texts of a pretrained language model whose chances are shifted by noisy counts.

    model = shared_language_model("smollm2-135m")     # fetched; or ``own``: a directory
    writer = LanguageWriter(model, Decoding("Write a film review."))
    plan = NgramPlan.of(cost, 2, 60, model.tokeniser.size, has_pairs=False)
    written = writer.write(documents, plan, 2_000, source)

``gguf_directory`` turns a fetched file into a directory of transformers, ``model_folders`` says
where models lie, ``language_model`` reads one, ``piece_shifts`` says how it draws and by how much
each piece is preferred under each label, ``decoding`` draws texts, ``language_writer`` writes.
torch and transformers are imported on first use.
"""

from typing import TYPE_CHECKING, Any

from noisefloor.publication.text.language_models.language_model import (
    LanguageModel,
    load_language_model,
    shared_language_model,
)
from noisefloor.publication.text.language_models.language_writer import LanguageWriter
from noisefloor.publication.text.language_models.model_folders import (
    DEFAULT_MODEL,
    OWN_MODEL_VARIABLE,
    language_model_folder,
)
from noisefloor.publication.text.language_models.piece_shifts import Decoding, Steering

if TYPE_CHECKING:
    from noisefloor.publication.text.language_models.decoding import Decoded, decode

__all__ = [
    "DEFAULT_MODEL",
    "OWN_MODEL_VARIABLE",
    "Decoded",
    "Decoding",
    "LanguageModel",
    "LanguageWriter",
    "Steering",
    "decode",
    "language_model_folder",
    "load_language_model",
    "shared_language_model",
]

_WITH_TORCH = ("Decoded", "decode")


def __getattr__(name: str) -> Any:  # Any: whatever the module has by that name
    """Import what needs torch on first use."""
    if name not in _WITH_TORCH:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from noisefloor.publication.text.language_models import decoding

    return getattr(decoding, name)
