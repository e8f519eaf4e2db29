"""Outputs of frozen layers, kept in memory: many trainings on the same texts run them once.

What becomes of a text follows from that text alone (``frozen_layers``), so outputs are kept text
by text, and a training on other records of the same people finds those that it shares. They are
as private as the texts, never leave the process, and are for simulations, which train hundreds of
models on the same texts. Beyond a number of bytes nothing more is kept, and layers run again.

Floats depend a little on which texts run together: fill a store by one call with all texts, and
every training after it gets the same bytes, in whatever order trainings are made.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from noisefloor.publication.fine_tuning.backbone import Backbone
from noisefloor.publication.fine_tuning.frozen_layers import (
    FrozenStates,
    Progress,
    run_layers,
)
from noisefloor.publication.fine_tuning.tokens import TokenTable

Floats = NDArray[np.float32]

MOST_KEPT_BYTES = 2 << 30


@dataclass(slots=True)
class FrozenStore:
    """Runs frozen layers of one encoder on texts that it has not seen; see ``kept_by``.

    Attributes:
        backbone: The encoder; of another one, as of a copy with trained layers, nothing is kept.
        most_bytes: Beyond this nothing more is kept.
        rows: Means and hidden states of each text, by layers and pieces.
        size: Bytes that are kept.
        texts_run: For how many texts the layers were run.
    """

    backbone: Backbone
    most_bytes: int = MOST_KEPT_BYTES
    rows: dict[tuple[object, ...], tuple[Floats, Floats]] = field(default_factory=dict)
    size: int = 0
    texts_run: int = 0

    def __call__(
        self,
        backbone: Backbone,
        tokens: TokenTable,
        pooled: Sequence[int],
        *,
        train_layers: int,
        progress: Progress,
    ) -> FrozenStates:
        """Return what ``run_frozen`` returns, from what is kept where it is."""
        if backbone is not self.backbone:
            return run_layers(
                backbone, tokens, pooled, train_layers=train_layers, progress=progress
            )
        about = (tuple(pooled), train_layers)
        keys = [(*about, *_pieces(tokens, row)) for row in range(tokens.count)]
        found = {key: self.rows[key] for key in keys if key in self.rows}
        missing = np.array([row for row, key in enumerate(keys) if key not in found], np.int64)
        progress(tokens.count - len(missing))
        if len(missing):
            made = run_layers(
                backbone,
                tokens[missing],
                pooled,
                train_layers=train_layers,
                progress=progress,
            )
            self.texts_run += len(missing)
            for place, row in enumerate(missing.tolist()):
                length = int(made.lengths[place]) if train_layers else 0
                one = made.pooled[place].copy(), made.hidden[place, :length].copy()
                found[keys[row]] = one
                self._keep(keys[row], one)
        return _joined(backbone, tokens, [found[key] for key in keys], is_deep=train_layers > 0)

    def _keep(self, key: tuple[object, ...], one: tuple[Floats, Floats]) -> None:
        size = one[0].nbytes + one[1].nbytes
        if self.size + size <= self.most_bytes:
            self.rows[key] = one
            self.size += size


def _pieces(tokens: TokenTable, row: int) -> tuple[bytes, bytes]:
    length = int(tokens.lengths[row])
    return tokens.ids[row, :length].tobytes(), tokens.segments[row, :length].tobytes()


def _joined(
    backbone: Backbone,
    tokens: TokenTable,
    rows: Sequence[tuple[Floats, Floats]],
    *,
    is_deep: bool,
) -> FrozenStates:
    positions = tokens.ids.shape[1] if is_deep else 0
    hidden = np.zeros((tokens.count, positions, backbone.width), dtype=np.float32)
    for row, (_, states) in enumerate(rows):
        hidden[row, : len(states)] = states
    return FrozenStates(hidden, tokens.lengths, np.stack([one for one, _ in rows]))
