"""Texts written by generators, many at once.

Each text has a seed, its first piece, and a length; both are given, since whatever they are drawn
from has a cost of its own. Draws are made for each text and position beforehand, so that a text
depends on its own draws and not on the texts beside it, up to the rounding of matrix products:
these may differ in the last place between machines and numbers of threads, and where a draw lies
that close to a border another piece is written.
"""

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from noisefloor.checks import check_count, check_finite
from noisefloor.errors import BadParameter
from noisefloor.publication.text.generators.model_weights import Module, loaded_modules
from noisefloor.publication.text.generators.text_generator import TextGenerator
from noisefloor.publication.text.generators.training_texts import seed_rows
from noisefloor.randomness import Source

Pieces = NDArray[np.int32]
Offsets = NDArray[np.int64]
Whole = NDArray[np.int64]

TEXTS_AT_ONCE = 128
"""Logits of 128 texts over 3,000 places take 1.5 MB: many more do not stay in fast caches."""

_BLOCK = 64
_FEW_ROWS = 32
"""Below it a call of oneDNN takes longer than the default library: so measured."""
_BELOW_ONE = 1 - 2.0**-40


def generate(
    generator: TextGenerator,
    labels: Whole,
    seeds: NDArray[np.integer],
    lengths: Whole,
    source: Source,
    temperature: float = 1.0,
    *,
    at_once: int = TEXTS_AT_ONCE,
) -> tuple[Pieces, Offsets]:
    """Write texts; post-processing of a generator that is published.

    Args:
        generator: What writes.
        labels: Of each text.
        seeds: The first piece of each text, of the tokeniser. One outside of the vocabulary is
            written as it is; what follows it is what follows unknown pieces.
        lengths: Pieces of each text, at least one.
        source: Draws.
        temperature: What logits are divided by; 0 writes the likeliest piece each time.
        at_once: Texts in a batch.

    Returns:
        The pieces of all texts, of the tokeniser, and where each text begins, and the end. The
        unknown piece is never written but as a seed.

    Raises:
        BadParameter: Labels, seeds or lengths are not as many, or out of range.
    """
    _check(generator, labels, seeds, lengths)
    check_count(at_once, "at_once")
    if check_finite(temperature, "temperature") < 0:
        raise BadParameter("temperature", temperature, ">= 0")
    longest, vocabulary = generator.shape.longest, generator.vocabulary
    drawn = source.stage("pieces").halves_of(len(labels) * longest)[: len(labels) * longest]
    draws = drawn.reshape(len(labels), longest)
    written = np.zeros((len(labels), longest), dtype=np.int64)
    written[:, 0] = vocabulary.places(seeds)
    modules = [_prepared(module) for module in loaded_modules(generator)]
    with torch.inference_mode():
        for number, module in enumerate(modules):
            mine = (labels == number) | generator.is_conditional
            # Long texts first: the rows that are still written are the first ones of a batch.
            order = np.flatnonzero(mine)[np.argsort(-lengths[mine], kind="stable")]
            for start in range(0, len(order), at_once):
                rows = order[start : start + at_once]
                block = written[rows]
                read = seed_rows(block[:, 0], generator.shape)
                _write(module, read, labels[rows], lengths[rows], draws[rows], block, temperature)
                written[rows] = block
    is_written = np.arange(longest) < lengths[:, None]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    own = np.append(vocabulary.pieces, 0)
    pieces = own[written]
    pieces[:, 0] = seeds
    return pieces[is_written].astype(np.int32), offsets


class PackedLinear(nn.Module):
    """A linear layer with weights laid out once for oneDNN, for inference alone.

    Args:
        layer: Whose weights are copied.
    """

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self._weight, self._bias = layer.weight.detach(), layer.bias.detach()
        self._packed = torch.ops.mkldnn._reorder_linear_weight(self._weight, TEXTS_AT_ONCE)

    def forward(self, values: Tensor) -> Tensor:
        """Do what the layer does; few rows are faster with the default library."""
        if len(values) < _FEW_ROWS:
            return functional.linear(values, self._weight, self._bias)
        outputs: Tensor = torch.ops.mkldnn._linear_pointwise(
            values, self._packed, self._bias, "none", [], ""
        )
        return outputs


def _prepared(module: Module) -> Module:
    """Return a module whose linear layers, which take most of the time, are packed if possible.

    oneDNN was seen to take half as long for batches as the default.
    """
    if torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call] # torch's own
        for parent in list(module.modules()):
            for name, layer in parent.named_children():
                if isinstance(layer, nn.Linear):
                    setattr(parent, name, PackedLinear(layer))
    return module


def _write(
    module: Module,
    read: Whole,
    labels: Whole,
    lengths: Whole,
    draws: NDArray[np.uint32],
    written: Whole,
    temperature: float,
) -> None:
    """Write texts of one model, the longest first, after the seeds in their first column."""
    pieces = torch.from_numpy(written[:, 0].copy())
    states = module.begin(torch.from_numpy(read), torch.from_numpy(labels.astype(np.int64)))
    uniform = torch.from_numpy((draws.astype(np.float64) + 0.5) * 2.0**-32)
    count = len(labels)
    for place in range(1, int(lengths.max(initial=0))):
        still = int(np.count_nonzero(lengths > place))
        if still < count:
            count = still
            pieces, states = pieces[:count], module.first(states, count)
        logits, states = module.advance(pieces, states)
        pieces = _chosen(logits, uniform[:count, place], temperature)
        written[:count, place] = pieces.numpy()


def _chosen(logits: Tensor, uniform: Tensor, temperature: float) -> Tensor:
    """Return a piece of each row, never the last one."""
    logits[:, -1] = -math.inf
    if temperature == 0:
        return logits.argmax(1)
    return draw_places(
        torch.softmax(logits if temperature == 1 else logits / temperature, 1), uniform
    )


def draw_places(chances: Tensor, uniform: Tensor) -> Tensor:
    """Return a place of each row by the inverse of its distribution function.

    Sums of blocks of probabilities come first, then single ones within a block: a running sum
    over all of them takes as long as the matrix product that they came from.

    Args:
        chances: Of each place, by row; they add up to about 1.
        uniform: A number in [0, 1) for each row.
    """
    size = chances.shape[1]
    whole = size // _BLOCK * _BLOCK
    sums = chances[:, :whole].view(len(chances), -1, _BLOCK).sum(2)
    if whole < size:
        sums = torch.cat([sums, chances[:, whole:].sum(1, keepdim=True)], 1)
    block, rest = _found(sums, uniform)
    places = block.unsqueeze(1) * _BLOCK + torch.arange(_BLOCK)
    # Beyond the last place there is the last one again, with probability zero.
    own = chances.gather(1, places.clamp(max=size - 1)).masked_fill_(places >= size, 0.0)
    return block * _BLOCK + _found(own, rest)[0]


def _found(chances: Tensor, aims: Tensor) -> tuple[Tensor, Tensor]:
    """Return where shares of a total lie among chances, and how far within what is found there."""
    bounds = chances.double().cumsum_(1)
    aims = (aims * bounds[:, -1]).unsqueeze(1)
    # The first whose bound is above the aim; a share below one finds none of probability zero.
    found = torch.searchsorted(bounds, aims, right=True).clamp_(max=chances.shape[1] - 1)
    own = chances.gather(1, found).double()
    within = 1 - (bounds.gather(1, found) - aims) / own
    return found.squeeze(1), within.clamp_(0, _BELOW_ONE).squeeze(1)


def _check(
    generator: TextGenerator, labels: Whole, seeds: NDArray[np.integer], lengths: Whole
) -> None:
    for name, some in (("seeds", seeds), ("lengths", lengths)):
        if some.shape != labels.shape:
            raise BadParameter(name, some.shape, f"one for each of {len(labels)} labels")
    if not len(labels):
        return
    if not (0 <= labels.min() and labels.max() < len(generator.labels)):
        raise BadParameter("labels", "<labels>", f"below {len(generator.labels)}")
    if not (1 <= lengths.min() and lengths.max() <= generator.shape.longest):
        raise BadParameter("lengths", "<lengths>", f"in [1, {generator.shape.longest}]")
    if seeds.min() < 0:
        raise BadParameter("seeds", "<seeds>", "pieces of the tokeniser")
