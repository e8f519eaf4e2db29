"""Fluency: how surprised a public language model is by published texts, beside real ones.

The model is a trigram model of public texts (``TrigramModel``) or a pretrained one in a directory
of transformers. Either gives nats for each text; texts of a corpus are compared a piece at a time.
"""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import Floats, check_extra
from noisefloor.errors import BadBackbone, BadParameter
from noisefloor.publication.text.tokeniser import EXTRA

_NORMAL_95 = 1.959964
_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Fluency:
    """What a corpus costs under a language model.

    Attributes:
        nats: The negative log-likelihood a piece, over all pieces.
        error: Its standard error, texts being what is independent.
        texts: With a piece at least.
        pieces: In all of them, of the model's own vocabulary.
    """

    nats: float
    error: float
    texts: int
    pieces: int

    def as_json(self) -> dict[str, Any]:  # Any: JSON
        """Return the figures as one JSON object."""
        interval = [self.nats - _NORMAL_95 * self.error, self.nats + _NORMAL_95 * self.error]
        found = {"nats_a_piece": self.nats, "interval": interval}
        return {**found, "texts": self.texts, "pieces": self.pieces}


@dataclass(frozen=True, slots=True)
class FluencyGap:
    """What published texts cost beside real ones, under one model.

    Attributes:
        published: Of published texts.
        real: Of real texts that no generator has seen.
    """

    published: Fluency
    real: Fluency

    @property
    def nats(self) -> float:
        """By how much a published piece costs more; below 0 where it is more predictable."""
        return self.published.nats - self.real.nats

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the difference, over the draw of texts."""
        half = _NORMAL_95 * math.hypot(self.published.error, self.real.error)
        return self.nats - half, self.nats + half

    def as_json(self) -> dict[str, Any]:  # Any: JSON
        """Return the figures as one JSON object."""
        both = {"published": self.published.as_json(), "real": self.real.as_json()}
        return {**both, "gap": self.nats, "gap_interval": list(self.interval)}


def fluency_of(nats: Floats, pieces: NDArray[np.integer]) -> Fluency:
    """Return the fluency of a corpus from the nats and the number of pieces of each text."""
    some = pieces > 0
    if nats.shape != pieces.shape or np.count_nonzero(some) < 2:
        raise BadParameter("nats", nats.shape, f"one for each text, {pieces.shape}, at least 2")
    cost, length = nats[some], pieces[some].astype(np.float64)
    mean = float(cost.sum() / length.sum())
    # Of a ratio of sums: the spread of what is left when each text costs the mean a piece.
    left = cost - mean * length
    error = float(np.sqrt(len(left) * left.var(ddof=1)) / length.sum())
    return Fluency(mean, error, len(cost), int(length.sum()))


def pretrained_nats(
    texts: Sequence[str], folder: str | os.PathLike[str], longest: int = 128
) -> tuple[Floats, NDArray[np.int64]]:
    """Return the nats and the pieces of each text under a pretrained causal model.

    The first piece of a text follows the model's first mark, or is not counted if it has none.

    Args:
        texts: As they are read.
        folder: A directory of transformers with weights in safetensors; nothing is downloaded.
        longest: The most pieces of a text that are looked at.

    Raises:
        BadBackbone: The directory holds no causal language model that can be used.
    """
    check_extra("Fluency under a pretrained model", EXTRA, "torch", "transformers")
    import torch

    model, tokenizer = _load(Path(folder))
    first = tokenizer.bos_token_id
    rows = [tokenizer.encode(text, add_special_tokens=False)[:longest] for text in texts]
    marked = [row if first is None else [first, *row] for row in rows]
    nats, pieces = np.zeros(len(rows)), np.zeros(len(rows), dtype=np.int64)
    order = np.argsort([len(row) for row in marked], kind="stable")
    for start in range(0, len(order), _AT_ONCE):
        some = order[start : start + _AT_ONCE]
        lengths = np.array([len(marked[row]) for row in some])
        ids = np.zeros((len(some), max(1, int(lengths.max()))), dtype=np.int64)
        for place, row in enumerate(some):
            ids[place, : lengths[place]] = marked[row]
        inside = np.arange(ids.shape[1]) < lengths[:, None]
        with torch.inference_mode():
            given = torch.from_numpy(ids)
            logits = model(given, attention_mask=torch.from_numpy(inside.astype(np.int64))).logits
            chance = torch.log_softmax(logits[:, :-1].double(), dim=-1)
            costs = -chance.gather(2, given[:, 1:, None])[..., 0].numpy()
        nats[some] = np.where(inside[:, 1:], costs, 0.0).sum(axis=1)
        pieces[some] = inside[:, 1:].sum(axis=1)
    return nats, pieces


def _load(folder: Path) -> tuple[Any, Any]:
    """Return model and tokeniser of a directory; weights that were pickled are never read."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    if not any(folder.glob("*.safetensors")):
        raise BadBackbone(folder, "expected a directory with a model in safetensors")
    try:
        model: Any = AutoModelForCausalLM.from_pretrained(
            folder, local_files_only=True, use_safetensors=True
        )
        tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, KeyError) as error:
        raise BadBackbone(
            folder, f"expected a causal language model ({type(error).__name__})"
        ) from None
    return model.eval(), tokenizer
