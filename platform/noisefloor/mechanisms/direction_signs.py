"""A direction, reported as a vector of signs that leans towards it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import Floats, blocks, check_count, check_epsilon, check_reals
from noisefloor.errors import BadParameter, OutOfDomain
from noisefloor.mechanisms import cosets
from noisefloor.mechanisms.base import Estimate, Reports, Tally, check_reports_counted, unsupported
from noisefloor.mechanisms.subset_selection import log_mixture, raised_epsilon, raised_weight
from noisefloor.mechanisms.unary import all_rows
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import Source, Words

GRID = 1 << 15
"""Lengths of vectors are taken to the nearest of 0, ..., GRID, in units of 1 / GRID."""

_SLACK = 2.0**-16
"""A unit vector in single precision may be this much too long."""

_LISTABLE = 16


@dataclass(frozen=True, slots=True)
class DirectionSigns:
    """Report signs that agree with a vector more often than not.

    Guarantee:  pure DP, epsilon = ln(hold (K - top) / ((2**64 - hold) top)), per release, where
                K = 2 * rows.
    Neighbours: item = user: any vector to any other; one user holds one vector (local model).
    Domain:     rows of ``dimension`` reals of Euclidean length at most 1; others are refused. A
                shorter vector is first rounded to full length, forwards or backwards.
    Reference:  Asi, Feldman, Talwar 2022, arXiv 2205.02466 (PrivUnit in its Gaussian form, the
                ideal); Isik et al. 2023, arXiv 2306.04924 (the closest few of a random codebook).
                The coset as a codebook is our own.

    A sign vector s is drawn without looking at the vector w. The K candidates are plus and minus
    s times each of ``rows`` rows of a Hadamard matrix. The ``top`` of them whose product with w
    is largest share the weight ``hold``, the others the rest, evenly; one is drawn and sent.

    Proof: for every s and w, exactly ``top`` candidates have the chance hold / top and the others
    the chance (2**64 - hold) / (K - top), out of 2**64. So given s, the chances of a candidate
    under any two vectors have at most the stated ratio. The distribution of s is the same for all
    vectors, so the same holds for s and the candidate together, and for the candidate sent alone.
    How the rounding of short vectors mixes two vectors changes nothing in that.

    A report leans by ``gain`` towards a vector that is spread over many places, as if all
    directions had been possible. Towards one that has only few places it leans by more or by
    less; ``length`` above ``dimension`` spreads every vector first, and costs bits.

    Attributes:
        dimension: Numbers per vector.
        epsilon: As requested.
        length: Signs per report: by default ``dimension``; else a power of two above it.
        rows: Half the number of candidates, a power of two; by default for epsilon.
        top: Candidates in the top set; by default those that gain most.
        hold: Weight, out of 2**64, with which a candidate of the top set is sent.
    """

    dimension: int
    epsilon: float
    length: int = 0
    rows: int = 0
    top: int = 0
    hold: int = field(init=False)

    def __post_init__(self) -> None:
        dimension = check_count(self.dimension, "dimension", most=1 << 16)
        epsilon = check_epsilon(self.epsilon)
        length = check_length(self.length, dimension)
        rows = check_power(self.rows or cosets.rows_for(epsilon, length), "rows")
        best = self.top or cosets.best_top(epsilon, rows, 2 * rows, 1)[0]
        top = check_count(best, "top", least=1, most=rows)
        hold = raised_weight(epsilon, top, 2 * rows)
        for name, value in zip(
            ("length", "rows", "top", "hold"), (length, rows, top, hold), strict=True
        ):
            object.__setattr__(self, name, value)

    @property
    def coset(self) -> cosets.Coset:
        """How vectors meet their candidates."""
        return cosets.Coset(self.dimension, self.length, self.rows)

    @property
    def gain(self) -> float:
        """The mean product of a report with a unit vector, by the normal distribution."""
        return cosets.gain_of(self.epsilon, self.rows, 2 * self.rows, 1, self.top)

    def randomise(self, values: object, source: Source) -> cosets.Bits:
        """Return one row of ``length`` bits per user, one for plus."""
        vectors = check_reals(values, -1 - _SLACK, 1 + _SLACK, width=self.dimension)
        lengths = lengths_of(vectors)
        if lengths.size and lengths.max() > 1 + _SLACK:
            raise OutOfDomain("Expected vectors of length at most 1; one is longer.")
        draws = _Draws.of(source)
        reports = np.empty((len(vectors), self.length), dtype=np.bool_)
        for some in blocks(len(vectors), max(self.length, self.rows)):
            forward = _rounded(draws.side, lengths[some])
            unit = scaled(vectors[some], np.where(forward, lengths[some], -lengths[some]))
            self._lean(self.coset.whole(unit), draws, reports[some])
        return reports

    def _lean(self, whole: cosets.Single, draws: "_Draws", reports: cosets.Bits) -> None:
        """Choose one candidate for each vector, and write its signs."""
        count, rest = len(whole), self.rows - self.top
        minus = cosets.draw_signs(draws.signs, count, self.length)
        products = self.coset.products(whole, minus)
        ranks = self.coset.ranked(products)
        ranks.partition(rest, axis=1)
        is_inside = draws.hold.bernoulli(self.hold, count)
        inside = draws.inside.below(self.top, count).astype(np.intp)
        # Others: first what leans too little, then all candidates that lean the other way.
        outside = draws.outside.below(2 * self.rows - self.top, count).astype(np.intp)
        opposite = ~is_inside & (outside >= rest)
        place = np.where(is_inside, rest + inside, np.where(opposite, outside - rest, outside))
        each = np.arange(count)
        row = ranks[each, place] & np.int32(self.rows - 1)
        flip = (products[each, row] < 0) ^ opposite
        np.equal(minus, cosets.minus_signs(self.rows, self.length)[row], out=reports)
        reports ^= flip[:, None]

    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return the guarantee of the weight as rounded."""
        if neighbours not in (Neighbours.ITEM, Neighbours.USER):
            return unsupported(self, neighbours)
        return Guarantee(raised_epsilon(self.hold, self.top, 2 * self.rows), neighbours)

    def log_likelihood(self, reports: Reports, value: object) -> Floats:
        """Return ln P(report | vector), summed over every s and candidate that give the report.

        By the group of the rows, these are as many as there are candidates, and their products
        are those of one coset, in another order.
        """
        vector = check_reals(
            np.asarray(value, dtype=np.float64)[None],
            -1 - _SLACK,
            1 + _SLACK,
            width=self.dimension,
        )
        length = lengths_of(vector)
        forward = int(_points(length)[0]) / (2 * GRID) + 0.5
        whole = self.coset.whole(scaled(vector, length))
        rows = np.asarray(reports, dtype=np.bool_)
        on_top = self.coset.share_on_top(rows, whole[0], self.top)
        own = np.where(rows, whole, -whole).sum(axis=1)
        # A product of 0 counts as leaning for one of the two signs of its row.
        ahead = on_top * np.where(own > 0, 1.0, np.where(own < 0, 0.0, 0.5))
        behind = on_top * np.where(own < 0, 1.0, np.where(own > 0, 0.0, 0.5))
        share, candidates = forward * ahead + (1 - forward) * behind, 2 * self.rows
        logs = log_mixture(share, self.hold, self.top, candidates)
        return np.asarray(logs + np.log(candidates) - self.length * np.log(2.0))

    def tally(self, reports: Reports) -> Tally:
        """Return the number of plus signs in each place."""
        counts = np.zeros(self.length, dtype=np.int64)
        for rows in blocks(len(reports), self.length):
            counts += np.asarray(reports[rows]).sum(axis=0, dtype=np.uint32)
        return counts

    def estimate(self, tally: Tally, n: int) -> Estimate:
        """Return the mean vector, for vectors that are spread over many places."""
        count = check_reports_counted(n)
        mean = 2 * np.asarray(tally) / count - 1
        error = np.full(self.dimension, 1 / (self.gain * np.sqrt(count)))
        if self.coset.is_spread:
            mean = mean @ cosets.frame(self.length, self.dimension) / np.sqrt(self.length)
        return Estimate(mean / self.gain, error)

    def outputs(self) -> Reports:
        """Return every row of signs; refused when there are too many to list."""
        return listed_rows(self.length)

    def worst_pairs(
        self, neighbours: Neighbours = Neighbours.USER
    ) -> Sequence[tuple[object, object]]:
        """Return two opposite vectors whose products do not tie."""
        vector = untied(self.dimension)
        return [(vector, -vector)]


@dataclass(frozen=True, slots=True)
class _Draws:
    """The stages of one release."""

    side: Source
    signs: Source
    hold: Source
    inside: Source
    outside: Source

    @classmethod
    def of(cls, source: Source) -> "_Draws":
        return cls(*(source.stage(name) for name in cls.__slots__))


def check_length(length: int, dimension: int) -> int:
    """Return the signs per report: as many as the vector has, or a larger power of two."""
    if length in (0, dimension):
        return dimension
    return check_power(check_count(length, "length", least=dimension, most=1 << 16), "length")


def check_power(value: int, name: str) -> int:
    """Return a parameter that has to be a power of two."""
    most = cosets.MOST_ROWS if name == "rows" else 1 << 16
    number = check_count(value, name, most=most)
    if number & (number - 1):
        raise BadParameter(name, value, "a power of two")
    return number


def lengths_of(vectors: NDArray[np.floating]) -> cosets.Single:
    """Return the Euclidean length of each row, as computed for that row alone."""
    found = np.empty(len(vectors), dtype=np.float32)
    for some in blocks(len(vectors), vectors.shape[1]):
        rows = np.ascontiguousarray(vectors[some], dtype=np.float32)
        found[some] = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return found


def scaled(vectors: NDArray[np.floating], lengths: cosets.Single) -> cosets.Single:
    """Return the rows over the lengths given; rows of no length stay zero."""
    rows = vectors.astype(np.float32)
    factor = np.zeros_like(lengths)
    np.divide(np.float32(1), lengths, out=factor, where=np.abs(lengths) > 2.0**-40)
    rows *= factor[:, None]
    return rows


def untied(dimension: int) -> Floats:
    """Return a unit vector of which no two sums of signed parts are equal, as far as that goes."""
    parts = 2.0 ** -np.arange(dimension)
    return np.asarray(parts / np.linalg.norm(parts))


def listed_rows(length: int) -> cosets.Bits:
    """Return every row of signs; refused when there are too many to list."""
    if length > _LISTABLE:
        raise BadParameter("length", length, f"<= {_LISTABLE} for the reports to be listed")
    return all_rows(length)


def _points(lengths: cosets.Single) -> Words:
    """Return lengths in grid points."""
    return np.asarray(np.minimum(np.rint(lengths * np.float32(GRID)), GRID), dtype=np.uint64)


def _rounded(draws: Source, lengths: cosets.Single) -> cosets.Bits:
    """Return who rounds forwards: with probability (1 + length) / 2, exactly on the grid."""
    points = _points(lengths)
    # At full length the threshold would be 2**64, which wraps to 0: those do not toss.
    forward = draws.bernoulli_each((points + np.uint64(GRID)) << np.uint64(48))
    return np.asarray(forward | (points == GRID))
