"""Counts lengths, pieces and pairs of documents, each table once, with the noise of a plan."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.errors import BadParameter
from noisefloor.publication.noised_vectors import NoisedVector, ResidualObserver
from noisefloor.publication.text.documents import Documents
from noisefloor.publication.text.ngrams import count_tables as tables
from noisefloor.publication.text.ngrams.ngram_plan import NgramPlan
from noisefloor.publication.text.ngrams.piece_estimates import LengthEstimates, PieceEstimates
from noisefloor.publication.text.ngrams.public_corpus import PublicCorpus
from noisefloor.randomness import Source

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class PieceCounts:
    """What was counted without pairs, after its noise.

    Attributes:
        lengths: How long documents are.
        estimates: How frequent pieces are.
    """

    lengths: LengthEstimates
    estimates: PieceEstimates


@dataclass(frozen=True, slots=True, eq=False)
class NgramCounts:
    """What was counted, after its noise.

    Attributes:
        lengths: How long documents are.
        estimates: How frequent pieces are.
        cells: The pairs that were looked at.
        pairs: Noisy counts of those that are counted, in counts.
        pair_noise: Variance of the noise of each.
        rests: Noisy counts of all other pairs after a piece, where they have a cell.
        rest_noise: Variance of the noise of each.
    """

    lengths: LengthEstimates
    estimates: PieceEstimates
    cells: tables.PairCells
    pairs: Floats
    pair_noise: Floats
    rests: Floats
    rest_noise: Floats


def count_ngrams(
    documents: Documents,
    plan: NgramPlan,
    public: PublicCorpus,
    source: Source,
    residuals: ResidualObserver | None = None,
) -> NgramCounts:
    """Count documents with the noise of a plan; each call is a release of its own.

    Args:
        documents: None longer than the plan's longest.
        plan: What is counted, with how much noise.
        public: Says what is frequent.
        source: Of the noise.
        residuals: For simulations alone: gets each table before and after its noise.
    """
    watch = _Watched(source, residuals)
    found = _counted(documents, plan, public.frequencies, watch)
    lengths, estimates = found.lengths, found.estimates
    cells = tables.pair_cells(plan, public, lengths, estimates)
    noisy, noise = watch.release("pairs", tables.pair_table(documents, plan, cells))
    count = int(cells.is_counted.sum())
    return NgramCounts(
        lengths, estimates, cells, noisy[:count], noise[:count], noisy[count:], noise[count:]
    )


def count_pieces(
    documents: Documents,
    plan: NgramPlan,
    frequencies: Floats,
    source: Source,
    residuals: ResidualObserver | None = None,
) -> PieceCounts:
    """Count lengths and pieces alone; as ``count_ngrams``, of a plan without pairs.

    Args:
        documents: None longer than the plan's longest.
        plan: What is counted, with how much noise.
        frequencies: The public share of each piece of the vocabulary.
        source: Of the noise.
        residuals: For simulations alone.
    """
    return _counted(documents, plan, frequencies, _Watched(source, residuals))


def _counted(
    documents: Documents, plan: NgramPlan, frequencies: Floats, watch: "_Watched"
) -> PieceCounts:
    if documents.count and documents.lengths.max() > plan.longest:
        raise BadParameter("documents", "<documents>", f"of at most {plan.longest} pieces")
    noisy, _ = watch.release("lengths", tables.length_table(documents, plan))
    by_label = noisy.astype(np.int64).reshape(plan.classes, plan.bins)
    lengths = LengthEstimates.of(by_label, plan.bin_width, plan.longest)
    return PieceCounts(lengths, _estimated(documents, plan, frequencies, lengths, watch))


@dataclass(frozen=True, slots=True)
class _Watched:
    """Releases tables in turn, and shows them to an observer."""

    source: Source
    residuals: ResidualObserver | None

    def release(self, name: str, table: tables.CountedTable) -> tuple[Floats, Floats]:
        """Return noisy counts, and the variance of the noise of each."""
        counting = table.counting
        clean = counting.sums(table.found)
        noisy = clean + counting.noise(self.source.child(name))
        grid, deviations = counting.bound.grid, counting.deviations
        if self.residuals is not None:
            # From the bound that is proved, and not from the noise that is drawn.
            unit = grid * np.sqrt(counting.bound.norm_squared * 2.0**counting.exponents)
            self.residuals(
                NoisedVector(name, noisy.astype(np.float64), clean.astype(np.float64), unit=unit)
            )
        return noisy / grid, deviations**2


def _estimated(
    documents: Documents,
    plan: NgramPlan,
    frequencies: Floats,
    lengths: LengthEstimates,
    watch: _Watched,
) -> PieceEstimates:
    counted = tables.counted_pieces(plan, frequencies, lengths)
    table = tables.piece_table(documents, plan, frequencies, lengths, counted)
    noisy, noise = watch.release("pieces", table)
    cut, shape = counted.size + 1, (plan.classes, counted.size)
    return PieceEstimates.of(
        counted,
        noisy[:cut],
        noise[:cut],
        noisy[cut:].reshape(shape),
        noise[cut:].reshape(shape),
        frequencies,
        lengths.documents,
    )
