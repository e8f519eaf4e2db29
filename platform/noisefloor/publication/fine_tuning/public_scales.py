"""Public scales of features for any backbone, with no corpus at hand.

For MiniLM they are shipped: means and deviations of every layer over 2,000 IMDB reviews, cut to 64
pieces (``bench/fine_tuning.py scales`` writes them). For other backbones they are those of made-up
texts: rows of pieces of the tokeniser's own vocabulary, by a fixed hash, so that they follow from
the backbone alone. On IMDB a private head was 0.7 points worse with the latter.
"""

import hashlib
import json
from collections.abc import Sequence
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from noisefloor.publication.fine_tuning.backbone import Backbone
from noisefloor.publication.fine_tuning.feature_cache import public_features
from noisefloor.publication.fine_tuning.feature_scaling import FeatureScaling
from noisefloor.publication.fine_tuning.frozen_layers import check_pooled
from noisefloor.publication.fine_tuning.tokens import LENGTH_STEP, TokenTable
from noisefloor.publication.tensors import read_metadata, read_tensors

SHIPPED = "minilm-l6.scales.safetensors"
COUNT, SHORTEST, LENGTHS = 512, 8, 25
MADE_UP_TEXTS = f"{COUNT} made-up texts of pieces of the vocabulary"


def public_scaling(backbone: Backbone, pooled: Sequence[int]) -> FeatureScaling:
    """Return the scales that are shipped for a backbone, or those of made-up texts."""
    chosen = check_pooled(backbone, pooled)
    content = resources.files(__package__).joinpath(SHIPPED).read_bytes()
    about = json.loads(read_metadata(content)["noisefloor"])
    if about["backbone_sha256"] == backbone.weights_sha256:
        moments = read_tensors(content)
        rows = [one - 1 for one in chosen]
        mean, deviation = (moments[name][rows].ravel() for name in ("mean", "deviation"))
        return FeatureScaling.from_moments(mean, deviation, str(about["source"]))
    features = public_features(backbone, made_up_tokens(backbone), pooled)
    return FeatureScaling.of(features, MADE_UP_TEXTS)


def made_up_tokens(backbone: Backbone) -> TokenTable:
    """Return rows of 8 to 32 pieces of the vocabulary, with the marks of a text."""
    before, after = _marks(backbone)
    most = backbone.positions - len(before) - len(after)
    pool = _vocabulary(backbone)
    rows = []
    for row in range(COUNT):
        length = min(SHORTEST + row % LENGTHS, most)
        drawn = hashlib.shake_256(f"noisefloor made-up text {row}".encode()).digest(8 * length)
        places = np.frombuffer(drawn, dtype="<u8") % np.uint64(len(pool))
        rows.append([*before, *pool[places.astype(np.int64)].tolist(), *after])
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    width = min(-(-int(lengths.max()) // LENGTH_STEP) * LENGTH_STEP, backbone.positions)
    ids = np.full((COUNT, width), backbone.padding, dtype=np.int32)
    for place, row_ids in enumerate(rows):
        ids[place, : len(row_ids)] = row_ids
    return TokenTable(ids, np.zeros(ids.shape, dtype=np.int8), lengths, {})


def _vocabulary(backbone: Backbone) -> NDArray[np.int64]:
    """Return the pieces of words: no marks, and no places that a vocabulary keeps free."""
    special = set(backbone.tokenizer.get_added_tokens_decoder())
    named = backbone.tokenizer.get_vocab(with_added_tokens=True)
    free = {place for name, place in named.items() if name.startswith("[") and name.endswith("]")}
    return np.array(sorted(set(named.values()) - special - free), dtype=np.int64)


def _marks(backbone: Backbone) -> tuple[list[int], list[int]]:
    """Return the marks before and after a text."""
    encoded = backbone.tokenizer.encode("a")
    plain = [place for place, mark in enumerate(encoded.special_tokens_mask) if not mark]
    first, last = (plain[0], plain[-1] + 1) if plain else (1, 1)
    return list(encoded.ids[:first]), list(encoded.ids[last:])
