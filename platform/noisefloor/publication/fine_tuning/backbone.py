"""A pretrained encoder of texts, read from a directory as Hugging Face's transformers write it.

Nothing is downloaded: the directory is all there is. Only safetensors are read; weights that were
pickled run code when they are read, and are refused by their name. Dropout is set to 0, as private
training takes nothing random from a module; ``Backbone.notes`` says so.

An encoder is used in parts, so that frozen layers run once: embeddings, then one layer after the
other. ``load_backbone`` compares the parts with transformers' own forward pass on made-up texts,
and refuses an encoder whose parts do not add up to it: BERT, RoBERTa and their like do.
"""

import functools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from noisefloor.checks import check_count, check_extra
from noisefloor.errors import BadBackbone, MissingData
from noisefloor.publication.fine_tuning.model_directory import (
    CONFIG,
    TOKENISER_FILES,
    WEIGHTS,
    files_sha256,
    present_files,
    quiet_transformers,
    weight_files,
)
from noisefloor.tables import cache_folder, find_data_set

if TYPE_CHECKING:
    from torch import Tensor, nn

DEFAULT_BACKBONE = "minilm-l6"
"""A name of the registry of data sets: ``noisefloor data fetch minilm-l6``."""

BACKBONE_VARIABLE = "NOISEFLOOR_BACKBONE"
"""Names the directory of another one."""

EXTRA = "text-models"

_MOST_DIFFERENCE = 1e-4
"""Between our forward pass and transformers' own, over the largest number in it."""


@dataclass(frozen=True, slots=True, eq=False)
class Backbone:
    """A pretrained encoder in parts; all of its parameters are frozen.

    Attributes:
        folder: Where it was read from.
        embeddings: From pieces to vectors.
        layers: From vectors to vectors, first to last.
        tokenizer: A ``tokenizers.Tokenizer`` that neither cuts nor pads.
        padding: The piece that pads.
        width: Of a vector.
        positions: The most pieces in a row, marks included.
        weights_sha256: Of the configuration and the weights.
        tokeniser_sha256: Of the files of the tokeniser.
        notes: What was changed on loading, in words.
    """

    folder: Path
    embeddings: "nn.Module"
    layers: "nn.ModuleList"
    tokenizer: Any  # tokenizers has no types
    padding: int
    width: int
    positions: int
    weights_sha256: str
    tokeniser_sha256: str
    notes: tuple[str, ...] = ()

    @property
    def depth(self) -> int:
        """How many layers there are."""
        return len(self.layers)

    def check_trained(self, train_layers: int) -> int:
        """Return the number of top layers that are trained, or refuse it."""
        return check_count(train_layers, "train_layers", least=0, most=self.depth)

    def embed(self, ids: "Tensor", segments: "Tensor") -> "Tensor":
        """Return the vectors of pieces, [examples, positions, width]."""
        if bool(segments.any()):
            return self.embeddings(input_ids=ids, token_type_ids=segments)  # type: ignore[no-any-return]
        return self.embeddings(input_ids=ids)  # type: ignore[no-any-return]


def additive_mask(mask: "Tensor") -> "Tensor":
    """Return what is added to scores of attention: 0 for pieces, a large negative for padding."""
    import torch

    return (1.0 - mask)[:, None, None, :] * torch.finfo(torch.float32).min


def run_layer(layer: "nn.Module", hidden: "Tensor", added: "Tensor") -> "Tensor":
    """Run one layer on vectors; some layers return a tuple of which the vectors are the first."""
    found = layer(hidden, added)
    return found[0] if isinstance(found, tuple) else found  # type: ignore[no-any-return]


def backbone_folder(source: str | Path = DEFAULT_BACKBONE) -> Path:
    """Return the directory of a backbone: that of a fetched one by its name, or a path as it is.

    Raises:
        MissingData: It is a name, and was not fetched; the text says how.
    """
    path = Path(source)
    if str(source) != DEFAULT_BACKBONE or path.is_dir():
        return path
    known = find_data_set(DEFAULT_BACKBONE)
    folder = cache_folder() / known.name
    if not all((folder / member.file).is_file() for member in known.members):
        raise MissingData(
            f"The model {known.name!r} is not in the cache ({cache_folder()}). "
            f"Get it by: noisefloor data fetch {known.name}"
        )
    return folder


@functools.cache
def _loaded(folder: Path, changed_ns: int) -> Backbone:
    return load_backbone(folder)


_CHOSEN: ContextVar[str | Path | None] = ContextVar("backbone", default=None)


@contextmanager
def using_backbone(source: str | Path) -> Iterator[None]:
    """Let ``shared_backbone`` return another one for a while: a simulation has several publishers.

    Args:
        source: As ``backbone_folder`` takes it.
    """
    token = _CHOSEN.set(source)
    try:
        yield
    finally:
        _CHOSEN.reset(token)


def shared_folder() -> Path:
    """Return the directory of this machine's backbone: $NOISEFLOOR_BACKBONE, or MiniLM's."""
    return backbone_folder(_CHOSEN.get() or os.environ.get(BACKBONE_VARIABLE) or DEFAULT_BACKBONE)


def shared_backbone() -> Backbone:
    """Return the backbone of this machine, loaded once; see ``shared_folder``.

    Requests do not name it: a directory of the publisher is nobody else's to choose.
    """
    folder = shared_folder()
    config = folder / CONFIG
    return _loaded(folder, config.stat().st_mtime_ns if config.is_file() else 0)


def load_backbone(source: str | Path = DEFAULT_BACKBONE) -> Backbone:
    """Load an encoder and its tokeniser from a directory, without any network.

    Args:
        source: A directory with config.json, model.safetensors and the files of a tokeniser; or
            the name of a fetched one.

    Raises:
        MissingExtra: transformers are not installed.
        MissingData: A named model was not fetched.
        BadBackbone: The directory holds no such model; the text names it and the rule.
    """
    check_extra("A text model", EXTRA, "torch", "transformers", "safetensors")
    folder = backbone_folder(source)
    weights = weight_files(folder)
    with quiet_transformers():
        config, dropouts = _config(folder)
        model = _model(folder, config)
        tokenizer, padding = _tokenizer(folder)
    embeddings, layers = _parts(folder, model)
    backbone = Backbone(
        folder=folder,
        embeddings=embeddings,
        layers=layers,
        tokenizer=tokenizer,
        padding=padding,
        width=int(config.hidden_size),
        positions=_positions(config),
        weights_sha256=files_sha256(folder, [CONFIG, *weights]),
        tokeniser_sha256=files_sha256(folder, present_files(folder, TOKENISER_FILES)),
        notes=tuple(f"{name} is {value:g} and was set to 0" for name, value in dropouts.items()),
    )
    _check_parts(backbone, model)
    return backbone


def _config(folder: Path) -> tuple[Any, dict[str, float]]:  # Any: transformers has one per family
    """Return the configuration without dropout, and the dropout that it had."""
    from transformers import AutoConfig

    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # whatever its parsers raise on a file of somebody else's
        raise _unreadable(folder, CONFIG, error) from None
    found = {
        name: float(value)
        for name, value in config.to_dict().items()
        if "dropout" in name and isinstance(value, float) and value > 0
    }
    for name in found:
        setattr(config, name, 0.0)
    if not hasattr(config, "hidden_size") or getattr(config, "is_decoder", False):
        raise BadBackbone(folder, "expected an encoder of texts, such as BERT or RoBERTa")
    return config, found


def _model(folder: Path, config: Any) -> "nn.Module":
    import torch
    from transformers import AutoModel

    try:
        model, info = AutoModel.from_pretrained(
            folder,
            config=config,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            dtype=torch.float32,
            attn_implementation="eager",
            output_loading_info=True,
        )
    except Exception as error:
        raise _unreadable(folder, WEIGHTS, error) from None
    missing = [name for name in info["missing_keys"] if not name.startswith("pooler.")]
    if missing or info["mismatched_keys"]:
        count = len(missing) + len(info["mismatched_keys"])
        raise BadBackbone(folder, f"expected weights for all of {CONFIG}: {count} do not fit it")
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    model.eval()
    model.requires_grad_(False)
    return model  # type: ignore[no-any-return]


def _tokenizer(folder: Path) -> tuple[Any, int]:
    """Return the fast tokeniser itself, and the piece that pads."""
    from transformers import AutoTokenizer

    if not present_files(folder, TOKENISER_FILES):
        raise BadBackbone(folder, "expected the files of a tokeniser, such as tokenizer.json")
    try:
        tokenizer = AutoTokenizer.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )
    except Exception as error:
        raise _unreadable(folder, "tokenizer.json", error) from None
    fast = getattr(tokenizer, "backend_tokenizer", None)
    if fast is None or tokenizer.pad_token_id is None:
        raise BadBackbone(folder, "expected a fast tokeniser with a piece for padding")
    fast.no_truncation()
    fast.no_padding()
    return fast, int(tokenizer.pad_token_id)


def _unreadable(folder: Path, file: str, error: Exception) -> BadBackbone:
    return BadBackbone(folder, f"{file} cannot be read by transformers ({type(error).__name__})")


def _parts(folder: Path, model: Any) -> tuple["nn.Module", "nn.ModuleList"]:
    """Return embeddings and layers, wherever a family of models keeps them."""
    for name in ("encoder", "transformer"):
        layers = getattr(getattr(model, name, None), "layer", None)
        if layers is not None and hasattr(model, "embeddings") and len(layers):
            return model.embeddings, layers
    raise BadBackbone(
        folder, f"expected embeddings and layers as BERT has them, found {type(model).__name__}"
    )


def _positions(config: Any) -> int:
    """Return the most pieces in a row; RoBERTa's table starts after the piece for padding."""
    most = int(getattr(config, "max_position_embeddings", 512))
    return most - 2 if "roberta" in str(config.model_type) else most


def _check_parts(backbone: Backbone, model: Any) -> None:
    """Refuse an encoder whose parts, run one after the other, are not its own forward pass."""
    import torch

    first, count = max(backbone.padding + 1, 3), 6
    ids = (torch.arange(2 * count) % 4 + first).reshape(2, count)
    mask = torch.ones(2, count)
    ids[1, 4:], mask[1, 4:] = backbone.padding, 0.0
    with torch.no_grad():
        try:
            expected = model(input_ids=ids, attention_mask=mask.long()).last_hidden_state
            found = backbone.embed(ids, torch.zeros_like(ids))
            for layer in backbone.layers:
                found = run_layer(layer, found, additive_mask(mask))
        except (TypeError, RuntimeError, ValueError, IndexError, AttributeError) as error:
            raise BadBackbone(
                backbone.folder, f"its layers do not run by themselves ({type(error).__name__})"
            ) from None
        gap = ((found - expected)[mask.bool()]).abs().max() / expected.abs().max()
    if not float(gap) <= _MOST_DIFFERENCE:
        raise BadBackbone(backbone.folder, "its layers one after the other give something else")
