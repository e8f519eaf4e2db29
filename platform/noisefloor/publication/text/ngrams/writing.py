"""Writes made-up documents by the chains of labels, all documents at once, piece by piece.

With a public corpus and a weight for it, the next piece comes from public text with that chance:
from what followed the last two pieces there, by how much more frequent each is in private texts of
the label. It reads better and costs nothing, since only noisy counts are used.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import check_finite
from noisefloor.errors import BadParameter
from noisefloor.publication.text.documents import Documents
from noisefloor.publication.text.ngrams.document_shapes import draw_lengths, spread_labels
from noisefloor.publication.text.ngrams.pair_model import PairModel
from noisefloor.publication.text.ngrams.public_corpus import PublicCorpus, Rows
from noisefloor.randomness import Source

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]

_TRIES = 6
"""Of another piece, where one came that makes a pair of the model with the piece before it."""

_MOST_RATIO = 20.0
"""By which a piece of public text is preferred at most."""


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Rows of weights that are drawn from by their running sums."""

    running: Floats
    starts: Counts
    pieces: Counts

    @classmethod
    def of(cls, weights: Floats, starts: Counts, pieces: Counts) -> "_Rows":
        return cls(np.append(0.0, np.cumsum(weights)), starts, pieces)

    def totals(self, rows: Counts) -> Floats:
        """Return the sum of each row."""
        return self.running[self.starts[rows + 1]] - self.running[self.starts[rows]]

    def draw(self, rows: Counts, uniform: Floats) -> Counts:
        """Return a piece of each row, for a number between 0 and the row's sum."""
        at = np.searchsorted(self.running, self.running[self.starts[rows]] + uniform, "right") - 1
        first, last = self.starts[rows], self.starts[rows + 1] - 1
        last = np.minimum(np.maximum(last, first), len(self.pieces) - 1)
        return self.pieces[np.clip(at, first, last)]


@dataclass(frozen=True, slots=True, eq=False)
class ChainSampler:
    """Draws next pieces from the chain of a label; made by ``of``."""

    _rows: _Rows
    _rests: Floats
    _others: Floats
    _known: Counts

    @classmethod
    def of(
        cls, model: PairModel, label: int, is_written: NDArray[np.bool_] | None = None
    ) -> "ChainSampler":
        """Return a sampler of a chain.

        Args:
            model: The chains.
            label: Of the chain.
            is_written: Which pieces may be drawn; all if left out.
        """
        chain, size = model.chains[label], model.size
        allowed = np.ones(size, dtype=np.bool_) if is_written is None else is_written
        starts = np.searchsorted(model.before, np.arange(size + 2))
        rows = _Rows.of(chain.pairs * allowed[model.pieces], starts, model.pieces)
        others = np.cumsum(chain.others * allowed)
        return cls(rows, chain.rests, others, model.before * size + model.pieces)

    def draw(self, last: Counts, source: Source) -> Counts:
        """Return a next piece after each last one; ``size`` stands for the start of a text."""
        size = len(self._others)
        own = self._rows.totals(last)
        drawn = source.stage("pairs").uniforms(len(last)) * (own + self._rests[last])
        chosen = self._rows.draw(last, np.minimum(drawn, own))
        open_ = np.flatnonzero(drawn >= own)
        for again in range(_TRIES):
            uniform = source.stage("others", again).uniforms(open_.size) * self._others[-1]
            picked = np.minimum(np.searchsorted(self._others, uniform, "right"), size - 1)
            chosen[open_] = picked
            open_ = open_[_is_known(self._known, last[open_] * size + picked)]
            if not open_.size:
                break
        return chosen


@dataclass(frozen=True)
class NgramWriter:
    """Writes documents.

    Attributes:
        model: The chains.
        bin_width: How many lengths are in a bin.
        longest: The largest length.
        public: A public corpus to cross the chains with, if any.
        public_weight: The chance that a piece comes from public text, where that has one.
    """

    model: PairModel
    bin_width: int
    longest: int
    public: PublicCorpus | None = None
    public_weight: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= check_finite(self.public_weight, "public_weight") <= 1:
            raise BadParameter("public_weight", self.public_weight, "in [0, 1]")
        if self.public_weight and self.public is None:
            raise BadParameter("public", "<none>", "a public corpus, to take pieces from")

    def write(self, count: int, source: Source) -> Documents:
        """Write documents; the order of labels is drawn last."""
        model = self.model
        labels = spread_labels(model.documents, count)
        lengths = draw_lengths(
            model.lengths, labels, self.bin_width, self.longest, source.child("lengths")
        )
        table = np.zeros((count, int(lengths.max())), dtype=np.int32)
        for label in range(len(model.chains)):
            rows = np.flatnonzero(labels == label)
            if rows.size:
                stream = source.child("pieces", label)
                table[rows] = self._written(label, rows.size, table.shape[1], stream)
        order = np.argsort(source.child("order").words(count), kind="stable")
        lengths, labels, table = lengths[order], labels[order], table[order]
        is_in = np.arange(table.shape[1]) < lengths[:, None]
        return Documents(table[is_in], np.append(0, np.cumsum(lengths)), labels)

    def _written(self, label: int, count: int, length: int, source: Source) -> NDArray[np.int32]:
        chain, crossed = ChainSampler.of(self.model, label), self._crossed(label)
        table = np.empty((count, length), dtype=np.int32)
        twice = last = np.full(count, self.model.size, dtype=np.int64)
        for place in range(length):
            step = source.child(place)
            chosen = chain.draw(last, step)
            if crossed is not None:
                chosen = self._cross(crossed, twice, last, chosen, step)
            table[:, place] = chosen
            twice, last = last, chosen
        return table

    def _crossed(self, label: int) -> tuple[Rows, _Rows] | None:
        """Return public rows, weighed by how much more frequent pieces are under a label."""
        if self.public is None or not self.public_weight:
            return None
        triples = self.public.triples
        ratio = self.model.shares[label] / np.maximum(self.public.frequencies, 1e-12)
        weights = triples.counts * np.minimum(ratio[triples.pieces], _MOST_RATIO)
        return triples, _Rows.of(weights, triples.starts, triples.pieces)

    def _cross(
        self,
        crossed: tuple[Rows, _Rows],
        twice: Counts,
        last: Counts,
        chosen: Counts,
        step: Source,
    ) -> Counts:
        triples, rows = crossed
        is_public = step.stage("source").uniforms(len(last)) < self.public_weight
        found, is_seen = triples.find(twice * (self.model.size + 1) + last)
        take = np.flatnonzero(is_public & is_seen)
        uniform = step.stage("public").uniforms(take.size) * rows.totals(found[take])
        chosen = chosen.copy()
        chosen[take] = rows.draw(found[take], uniform)
        return chosen


def _is_known(known: Counts, keys: Counts) -> NDArray[np.bool_]:
    if not known.size:
        return np.zeros(len(keys), dtype=np.bool_)
    found = known[np.minimum(np.searchsorted(known, keys), known.size - 1)]
    return np.asarray(found == keys)
