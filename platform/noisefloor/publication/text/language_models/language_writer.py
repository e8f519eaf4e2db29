"""Writes made-up documents with a language model that noisy counts lead.

First the model writes by itself: that is public, and says which pieces are worth a count, and how
frequent each is without any shift. Then lengths and pieces are counted, with noise, once.
Everything after that is made of the noisy counts: it is post-processing, and costs nothing.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import check_count
from noisefloor.publication.noised_vectors import ResidualObserver
from noisefloor.publication.text.documents import Documents
from noisefloor.publication.text.language_models.language_model import LanguageModel
from noisefloor.publication.text.language_models.piece_shifts import Decoding, Steering
from noisefloor.publication.text.ngrams import (
    NgramPlan,
    PieceCounts,
    ReleasedTables,
    draw_lengths,
    read_pieces,
    release_pieces,
    spread_labels,
)
from noisefloor.randomness import Source

if TYPE_CHECKING:
    from noisefloor.publication.text.language_models.decoding import Decoded

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]

_PLAIN_PART = 0.01
"""Of the model's own shares that is taken from its chances as they are."""


@dataclass(frozen=True, slots=True)
class LanguageWriter:
    """Writes documents.

    Attributes:
        model: What writes.
        decoding: Its prompt and how it draws; public.
        steering: How it is led; public.
    """

    model: LanguageModel
    decoding: Decoding
    steering: Steering = field(default_factory=Steering)

    def write(
        self,
        documents: Documents,
        plan: NgramPlan,
        count: int,
        source: Source,
        residuals: ResidualObserver | None = None,
    ) -> Documents:
        """Count private documents and write made-up ones; each call is a release of its own.

        Args:
            documents: Cut by the model's own tokeniser, none longer than the plan's longest.
            plan: What is counted, with how much noise; without pairs.
            count: How many documents to write.
            source: Of all random numbers.
            residuals: For simulations alone: gets each table before and after its noise.
        """
        check_count(count, "texts")
        plain = self.own_shares(self.decoding.plain, plan.longest, source.child("plain"))
        tables = release_pieces(documents, plan, plain, source.child("counts"), residuals)
        return self.write_from(tables, plan, plain, count, source)

    def write_from(
        self,
        tables: ReleasedTables,
        plan: NgramPlan,
        plain: Floats,
        count: int,
        source: Source,
    ) -> Documents:
        """Write documents from noisy tables alone: post-processing.

        Args:
            tables: As they were released.
            plan: By which they were.
            plain: What the model writes by itself, which said what was counted.
            count: How many documents to write.
            source: Of all random numbers but those of the tables and of ``plain``.
        """
        counts = read_pieces(plan, plain, tables)
        own = self.own_shares(self.decoding, plan.longest, source.child("own"))
        # A piece that was plausible nowhere is rare, not absent.
        own = (1 - _PLAIN_PART) * own + _PLAIN_PART * plain
        shifts = self.shifts(counts, plan, own, source.child("rounds"))
        return self.written(counts, plan, shifts, count, source.child("texts"))

    def own_shares(self, decoding: Decoding, longest: int, source: Source) -> Floats:
        """Return the share of each piece in what the model writes without any shift: public."""
        from noisefloor.publication.text.language_models.decoding import decode

        count = self.steering.texts
        labels, lengths = np.zeros(count, np.int64), np.full(count, longest, np.int64)
        shifts = np.zeros((1, self.model.tokeniser.size))
        return np.asarray(decode(self.model, decoding, shifts, labels, lengths, source).shares[0])

    def shifts(self, counts: PieceCounts, plan: NgramPlan, own: Floats, source: Source) -> Floats:
        """Return by how much each piece is preferred under each label: post-processing."""
        steering, counted = self.steering, counts.estimates.counted
        targets = steering.targets(own, counts.estimates.by_label)
        shifts = steering.first(own, targets, counted, steering.texts * plan.longest)
        labels = np.arange(max(steering.texts, plan.classes), dtype=np.int64) % plan.classes
        for number in range(steering.rounds):
            found = self._decoded(counts, plan, shifts, labels, source.child(number))
            written = found.documents
            places = np.bincount(labels, written.lengths, plan.classes).astype(np.float64)
            shifts = steering.again(shifts, found.shares, targets, counted, places)
        return shifts

    def written(
        self, counts: PieceCounts, plan: NgramPlan, shifts: Floats, count: int, source: Source
    ) -> Documents:
        """Write documents in a random order: post-processing."""
        labels = spread_labels(counts.lengths.documents, count)
        found = self._decoded(counts, plan, shifts, labels, source).documents
        return found[np.argsort(source.child("order").words(count), kind="stable")]

    def _decoded(
        self, counts: PieceCounts, plan: NgramPlan, shifts: Floats, labels: Counts, source: Source
    ) -> "Decoded":
        from noisefloor.publication.text.language_models.decoding import decode

        lengths = draw_lengths(
            counts.lengths.chances, labels, plan.bin_width, plan.longest, source.child("lengths")
        )
        pieces = source.child("pieces")
        return decode(self.model, self.decoding, shifts, labels, lengths, pieces)
