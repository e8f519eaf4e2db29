"""A pretrained model's directory, as Hugging Face's transformers write it: which files are read.

Nothing is downloaded and no code of a directory is run. Only safetensors are read; weights that
were pickled run code when they are read, and are refused by their name.
"""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from noisefloor.errors import BadBackbone

CONFIG, WEIGHTS, SHARDS = "config.json", "model.safetensors", "model.safetensors.index.json"
PICKLED = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
TOKENISER_FILES = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("vocab.txt", "vocab.json", "merges.txt", "spiece.model", "sentencepiece.bpe.model"),
)


def weight_files(folder: Path) -> list[str]:
    """Return the files of the weights, or refuse a directory that is no model."""
    if not folder.is_dir():
        raise BadBackbone(folder, "expected a directory, there is none of that name")
    if not (folder / CONFIG).is_file():
        raise BadBackbone(folder, f"expected a model directory with {CONFIG}")
    if (folder / WEIGHTS).is_file():
        return [WEIGHTS]
    if (folder / SHARDS).is_file():
        return [SHARDS, *_shards(folder)]
    pickled = sorted(one.name for one in folder.iterdir() if one.suffix in PICKLED)
    if pickled:
        raise BadBackbone(
            folder,
            f"has pickled weights alone ({pickled[0]}), which run code when they are read and are "
            f"never loaded; save them as {WEIGHTS}",
        )
    raise BadBackbone(folder, f"expected weights in {WEIGHTS}")


def _shards(folder: Path) -> list[str]:
    """Return the files that an index names; none may lead outside of the directory."""
    try:
        index = json.loads((folder / SHARDS).read_text(encoding="utf-8"))
        names = sorted({str(name) for name in index["weight_map"].values()})
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise BadBackbone(folder, f"expected {SHARDS} to list files of weights") from None
    for name in names:
        is_plain = Path(name).name == name and name.endswith(".safetensors")
        if not is_plain or not (folder / name).is_file():
            raise BadBackbone(folder, f"expected {SHARDS} to list safetensors that are there")
    return names


def present_files(folder: Path, names: tuple[str, ...]) -> list[str]:
    """Return those of some files that are there."""
    return [name for name in names if (folder / name).is_file()]


def files_sha256(folder: Path, names: list[str]) -> str:
    """Return one hash for some files, by name and content."""
    found = {}
    for name in sorted(names):
        with (folder / name).open("rb") as stream:
            found[name] = hashlib.file_digest(stream, "sha256").hexdigest()
    return hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Keep transformers from drawing bars of its own and from logging what we check ourselves."""
    from transformers.utils import logging as its_logging

    logging: Any = its_logging  # transformers types half of it
    verbosity, had_bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if had_bars:
            logging.enable_progress_bar()
