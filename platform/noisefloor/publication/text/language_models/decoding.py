"""Draws texts from a language model whose chances of pieces are shifted, many texts at once.

A piece is drawn with chances proportional to exp(logit / temperature + shift): a shift of s
multiplies the odds of a piece by exp(s) wherever it might come. Pieces that the model itself holds
for next to impossible at a place may be left out there, whatever their shift: a shift is the same
everywhere, and is to choose among what can be read. The prompt is read once, and its
cache of keys and values is shared by all texts. Draws are made for each text and place beforehand,
so that a text depends on its own draws and not on the texts beside it, up to the rounding of
matrix products.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from noisefloor.checks import check_count
from noisefloor.errors import BadParameter
from noisefloor.publication.text.documents import Documents
from noisefloor.publication.text.generators import draw_places
from noisefloor.publication.text.language_models.language_model import LanguageModel
from noisefloor.publication.text.language_models.piece_shifts import Decoding
from noisefloor.randomness import Source

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]

TEXTS_AT_ONCE = 128
"""Logits of 128 texts over 49,152 pieces take 25 MB; larger batches were no faster."""

_WORTH_SHRINKING = 0.75
"""A batch gives up its finished rows once no more than this part is left: it copies the cache."""


@dataclass(frozen=True, slots=True, eq=False)
class Decoded:
    """Texts that were drawn.

    Attributes:
        documents: The texts, in the order of their labels as they were given.
        shares: The mean, over all places that were written, of the chances that each piece was
            drawn with, by label: [labels, vocabulary]. It says how often a piece comes far more
            exactly than counting the texts does.
    """

    documents: Documents
    shares: Floats


def decode(
    model: LanguageModel,
    decoding: Decoding,
    shifts: Floats,
    labels: Counts,
    lengths: Counts,
    source: Source,
    *,
    at_once: int = TEXTS_AT_ONCE,
) -> Decoded:
    """Draw texts; marks of the model are never drawn.

    Args:
        model: What writes.
        decoding: Prompt and temperature.
        shifts: Of each piece under each label: [labels, vocabulary], finite.
        labels: Of each text.
        lengths: Pieces of each text, at least one.
        source: Of the draws.
        at_once: Texts in a batch.

    Raises:
        BadParameter: Labels, lengths or shifts are out of range, or the model takes no rows that
            long.
    """
    prompt = _checked_prompt(model, decoding, shifts, labels, lengths)
    check_count(at_once, "at_once")
    longest = int(lengths.max(initial=1))
    drawn = source.stage("pieces").uniforms(len(labels) * longest).reshape(len(labels), longest)
    writing = _Writing.of(model, decoding, shifts, prompt)
    table = np.zeros((len(labels), longest), dtype=np.int32)
    # Long texts first: the rows that are still written are the first ones of a batch.
    order = np.argsort(-lengths, kind="stable")
    with torch.inference_mode():
        for start in range(0, len(order), at_once):
            rows = order[start : start + at_once]
            table[rows] = writing.write(labels[rows], lengths[rows], drawn[rows])
    is_written = np.arange(longest) < lengths[:, None]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    sums = writing.sums.numpy()
    shares = sums / np.maximum(sums.sum(axis=1, keepdims=True), 1e-300)
    return Decoded(Documents(table[is_written], offsets, labels.copy()), shares)


@dataclass(slots=True)
class _Writing:
    """What all batches have in common, and the sums of chances so far."""

    module: Any  # transformers has a class for each family
    prompt: Tensor
    decoding: Decoding
    shifts: Tensor
    barred: Tensor
    sums: Tensor

    @classmethod
    def of(
        cls, model: LanguageModel, decoding: Decoding, shifts: Floats, prompt: list[int]
    ) -> "_Writing":
        added = torch.from_numpy(shifts.astype(np.float32))
        barred = torch.zeros(added.shape[1])
        barred[torch.from_numpy(model.tokeniser.marks)] = -torch.inf
        sums = torch.zeros(added.shape, dtype=torch.float64)
        return cls(model.module, torch.tensor([prompt]), decoding, added, barred, sums)

    def write(self, labels: Counts, lengths: Counts, drawn: Floats) -> NDArray[np.int32]:
        """Write a batch, the longest texts first."""
        found = np.zeros(drawn.shape, dtype=np.int32)
        count = len(labels)
        uniform, kinds = torch.from_numpy(drawn.copy()), torch.from_numpy(labels.copy())
        logits, cached = self._begun(count)
        pieces = kinds
        for place in range(int(lengths[0])):
            still = int(np.count_nonzero(lengths > place))
            if still <= _WORTH_SHRINKING * count:
                count, pieces = still, pieces[:still]
                cached.batch_select_indices(torch.arange(still))
            if place:
                logits = self._advanced(pieces, cached)
            chances = self._chances(logits[:count], kinds[:count])
            self.sums.index_add_(0, kinds[:still], chances[:still].double())
            pieces = draw_places(chances, uniform[:count, place])
            found[:still, place] = pieces[:still].numpy()
        return found

    def _begun(self, count: int) -> tuple[Tensor, Any]:
        """Read the prompt once, and return its last logits and its cache for each text."""
        read = self.module(input_ids=self.prompt, use_cache=True)
        read.past_key_values.batch_repeat_interleave(count)
        return read.logits[:, -1].expand(count, -1), read.past_key_values

    def _advanced(self, pieces: Tensor, cached: Any) -> Tensor:
        found = self.module(input_ids=pieces[:, None], past_key_values=cached, use_cache=True)
        logits: Tensor = found.logits[:, -1]
        return logits

    def _chances(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the chances of all pieces of the tokeniser; a model may have more rows."""
        own = logits[:, : len(self.barred)].float() / self.decoding.temperature + self.barred
        shifted = own + self.shifts[labels]
        if self.decoding.plausible:
            floor = own.amax(1, keepdim=True) + math.log(self.decoding.plausible)
            shifted.masked_fill_(own < floor, -torch.inf)
        return torch.softmax(shifted, dim=1)


def _checked_prompt(
    model: LanguageModel, decoding: Decoding, shifts: Floats, labels: Counts, lengths: Counts
) -> list[int]:
    """Return the pieces of the prompt, or refuse what cannot be written."""
    prompt = model.prompt_pieces(decoding.prompt)
    if not prompt:
        raise BadParameter("prompt", "<text>", "a piece at least")
    size = model.tokeniser.size
    if shifts.ndim != 2 or shifts.shape[1] != size or not np.isfinite(shifts).all():
        raise BadParameter("shifts", shifts.shape, f"finite, of {size} pieces under each label")
    if labels.shape != lengths.shape:
        raise BadParameter("lengths", lengths.shape, f"one for each of {len(labels)} labels")
    if len(labels) and not (0 <= labels.min() and labels.max() < len(shifts)):
        raise BadParameter("labels", "<labels>", f"below {len(shifts)}")
    most = model.positions - len(prompt)
    if len(labels) and not (1 <= lengths.min() and lengths.max() <= most):
        raise BadParameter("lengths", "<lengths>", f"in [1, {most}], with this model and prompt")
    return prompt
