"""Features of PUBLIC texts, kept on disk: an encoder takes minutes for thousands of them.

Only for data sets of the registry and other public texts: what a file of one's own becomes is as
private as the file, and is never written here. A file is found by the hash of everything that
decides its content: weights, tokeniser, layers and the pieces of every text.
"""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from noisefloor.publication.fine_tuning.backbone import Backbone
from noisefloor.publication.fine_tuning.frozen_layers import (
    Progress,
    check_pooled,
    no_progress,
    run_frozen,
)
from noisefloor.publication.fine_tuning.tokens import TokenTable
from noisefloor.tables import cache_folder

Floats = NDArray[np.float32]


def public_features(
    backbone: Backbone,
    tokens: TokenTable,
    pooled: Sequence[int],
    *,
    progress: Progress = no_progress,
) -> Floats:
    """Return the mean-pooled features of public texts, from disk where they were made before."""
    path = cache_folder() / "features" / f"{_key(backbone, tokens, pooled)}.npy"
    shape = (tokens.count, backbone.width * len(check_pooled(backbone, pooled)))
    kept = _read(path)
    if kept is not None and kept.shape == shape and kept.dtype == np.float32:
        progress(tokens.count)
        return kept
    made = run_frozen(backbone, tokens, pooled, progress=progress).pooled
    _write(path, made)
    return made


def _key(backbone: Backbone, tokens: TokenTable, pooled: Sequence[int]) -> str:
    digest = hashlib.sha256(f"{backbone.weights_sha256} {list(pooled)} {tokens.count}".encode())
    for array in (tokens.lengths, tokens.ids, tokens.segments):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _read(path: Path) -> Floats | None:
    try:
        return np.asarray(np.load(path, allow_pickle=False))
    except (OSError, ValueError, EOFError):
        return None


def _write(path: Path, features: Floats) -> None:
    """Write beside the target and move it there: a reader never sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with draft.open("wb") as stream:
            np.save(stream, features, allow_pickle=False)
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)
