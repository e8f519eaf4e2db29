"""The frozen part of an encoder, run once for each text: what is trained starts from its output.

Where ``train_layers`` top layers are trained, all below them give the same numbers at every step.
They run once, without gradients, and their output is kept: hidden states of every piece for the
layers above, and the mean over pieces of chosen layers as features. All is float32; hidden states
take 4 x width bytes a piece (MiniLM: 1.5 kB), padded to the longest record, and ``states_bytes``
says how much that is before it is done.

A record is padded to its own length, rounded up, and runs with others that have the same: what it
becomes follows from that record alone.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import check_count
from noisefloor.errors import BadParameter
from noisefloor.publication.fine_tuning.backbone import Backbone, additive_mask, run_layer
from noisefloor.publication.fine_tuning.tokens import TokenTable

if TYPE_CHECKING:
    from torch import Tensor

Floats = NDArray[np.float32]
Progress = Callable[[int], None]
"""Is called with the number of records that were run since the last call."""

MOST_STATE_BYTES = 8 << 30
PIECES_AT_ONCE = 4096
"""Pieces in a batch: on few cores larger ones are no faster, and fall out of the caches."""


def no_progress(count: int) -> None:
    """Show nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class FrozenStates:
    """What the frozen part of an encoder made of records.

    Attributes:
        hidden: Input of the first trained layer, padded: [records, positions, width]; no positions
            where no layer is trained.
        lengths: Pieces of each record, marks included.
        pooled: The mean over pieces of each chosen frozen layer, side by side: [records, width x
            layers].
    """

    hidden: Floats
    lengths: NDArray[np.int64]
    pooled: Floats

    @property
    def mask(self) -> Floats:
        """1 for pieces and 0 for padding: [records, positions]."""
        places = np.arange(self.hidden.shape[1])
        return (places < self.lengths[:, None]).astype(np.float32)


def states_bytes(backbone: Backbone, count: int, longest: int) -> int:
    """Return the memory that hidden states of records take."""
    return 4 * backbone.width * count * longest


def check_states_bytes(backbone: Backbone, count: int, longest: int) -> None:
    """Refuse a number of records whose hidden states do not fit into memory."""
    if states_bytes(backbone, count, longest) > MOST_STATE_BYTES:
        rule = f"so few that their hidden states take at most {MOST_STATE_BYTES >> 30} GiB"
        raise BadParameter("records", "<records>", rule)


def check_pooled(backbone: Backbone, pooled: Sequence[int]) -> tuple[int, ...]:
    """Return the layers whose means are features, counted from 1, or refuse them."""
    chosen = tuple(check_count(one, "pooled_layers", most=backbone.depth) for one in pooled)
    if not chosen or list(chosen) != sorted(set(chosen)):
        raise BadParameter("pooled_layers", list(chosen), "layers in rising order, at least one")
    return chosen


def mean_over_pieces(hidden: "Tensor", mask: "Tensor") -> "Tensor":
    """Return the mean of the vectors of a text's pieces, [examples, width]."""
    summed = (hidden * mask[..., None]).sum(dim=1)
    return summed / mask.sum(dim=1, keepdim=True).clamp(min=1.0)


class FrozenRun(Protocol):
    """Runs what is frozen of an encoder, or knows what it gives."""

    def __call__(
        self,
        backbone: Backbone,
        tokens: TokenTable,
        pooled: Sequence[int],
        *,
        train_layers: int,
        progress: Progress,
    ) -> FrozenStates:
        """Return what ``run_frozen`` returns."""


_KEPT_BY: ContextVar[FrozenRun | None] = ContextVar("kept_by", default=None)


@contextmanager
def kept_by(run: FrozenRun) -> Iterator[None]:
    """Let something that keeps outputs of frozen layers stand in for a while.

    They are as private as the texts are: it is for one process that holds these anyway.
    """
    token = _KEPT_BY.set(run)
    try:
        yield
    finally:
        _KEPT_BY.reset(token)


def run_frozen(
    backbone: Backbone,
    tokens: TokenTable,
    pooled: Sequence[int],
    *,
    train_layers: int = 0,
    progress: Progress = no_progress,
) -> FrozenStates:
    """Run what is frozen of an encoder on records, once, or take what was kept of it.

    Args:
        backbone: The encoder.
        tokens: The pieces of the records.
        pooled: Layers whose means are features, counted from 1; those that are trained are left
            to the training.
        train_layers: Top layers that are trained.
        progress: Is told what was done.
    """
    run = _KEPT_BY.get()
    return (run_layers if run is None else run)(
        backbone, tokens, pooled, train_layers=train_layers, progress=progress
    )


def run_layers(
    backbone: Backbone,
    tokens: TokenTable,
    pooled: Sequence[int],
    *,
    train_layers: int = 0,
    progress: Progress = no_progress,
) -> FrozenStates:
    """Run the layers, whatever is kept; see ``run_frozen``."""
    frozen = backbone.depth - backbone.check_trained(train_layers)
    chosen = [one for one in check_pooled(backbone, pooled) if one <= frozen]
    positions = tokens.ids.shape[1] if train_layers else 0
    check_states_bytes(backbone, tokens.count, positions)
    hidden = np.zeros((tokens.count, positions, backbone.width), dtype=np.float32)
    features = np.empty((tokens.count, backbone.width * len(chosen)), dtype=np.float32)
    for rows, length in _batches(tokens):
        kept, means = _run_batch(backbone, tokens, rows, length, frozen, chosen)
        features[rows] = means
        if train_layers:
            hidden[rows, :length] = kept
        progress(len(rows))
    return FrozenStates(hidden, tokens.lengths, features)


def _batches(tokens: TokenTable) -> Iterator[tuple[NDArray[np.int64], int]]:
    """Yield rows of one padded length, the longest first, so that memory is asked for once."""
    padded = tokens.padded_lengths
    for length in sorted(set(padded.tolist()), reverse=True):
        rows = np.flatnonzero(padded == length)
        step = max(1, PIECES_AT_ONCE // length)
        for start in range(0, len(rows), step):
            yield rows[start : start + step], length


def _run_batch(
    backbone: Backbone,
    tokens: TokenTable,
    rows: NDArray[np.int64],
    length: int,
    frozen: int,
    chosen: Sequence[int],
) -> tuple[Floats, Floats]:
    """Return the last hidden states of a batch, 0 in padding, and the means of chosen layers."""
    import torch

    ids, kinds = (
        torch.from_numpy(one[rows, :length].astype(np.int64))
        for one in (tokens.ids, tokens.segments)
    )
    places = torch.arange(length)
    mask = (places < torch.from_numpy(tokens.lengths[rows])[:, None]).float()
    added, means = additive_mask(mask), []
    with torch.inference_mode():
        hidden = backbone.embed(ids, kinds)
        for number, layer in enumerate(backbone.layers[:frozen], start=1):
            hidden = run_layer(layer, hidden, added)
            if number in chosen:
                means.append(mean_over_pieces(hidden, mask))
        joined = torch.cat(means, dim=1) if means else hidden.new_empty(len(rows), 0)
        return (hidden * mask[..., None]).numpy(), joined.numpy()
