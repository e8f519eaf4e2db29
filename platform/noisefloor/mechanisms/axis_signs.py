"""An axis: the line of a vector, whichever way it points, reported as signs that lean along it.

In how many rows of signs two places agree: what a second moment is summed from.

Both the mechanism and the frame that carries its reports count so, and neither knows the other.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import Floats, blocks, check_count, check_epsilon, check_reals
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import cosets, direction_signs
from noisefloor.mechanisms.base import Estimate, Reports, Tally, check_reports_counted, unsupported
from noisefloor.mechanisms.subset_selection import log_mixture, raised_epsilon, raised_weight
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import Source


def pair_agreements(bits: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return in how many rows each pair of places agrees."""
    size = bits.shape[1]
    total = np.zeros((size, size), dtype=np.int64)
    for rows in blocks(len(bits), size):
        # Sums of fewer than 2**24 ones and minus ones are exact in single precision.
        signs = bits[rows].astype(np.float32)
        signs *= 2
        signs -= 1
        total += (signs.T @ signs).astype(np.int64)
    upper = total[np.triu_indices(size, 1)]
    return np.asarray((upper + len(bits)) // 2)


@dataclass(frozen=True, slots=True)
class AxisSigns:
    """Report signs whose products, pair by pair, lean towards those of a vector.

    Guarantee:  pure DP, epsilon = ln(hold (rows - top) / ((2**64 - hold) top)), per release.
    Neighbours: item = user: any vector to any other; one user holds one vector (local model).
    Domain:     rows of ``dimension`` reals in [-1, 1]; others are refused. Only the line of a
                vector counts, not its length; zeros give signs that mean nothing.
    Reference:  the mechanism and its proof are those of LeaningSigns; ranking candidates by the
                size of the product is our own.

    A mean vector says nothing of people who like opposite things; the mean of w w' does. It has
    dimension**2 numbers, but a report of signs z stands for z z': the candidate that leans most
    along w, either way, is also the one whose z z' leans most towards w w'. So the report is as
    short as the vector, and its tally is of pairs. The noise of a pair is that of one bit.

    Proof: as for LeaningSigns; for every s and w exactly ``top`` of the ``rows`` candidates
    have the chance hold / top, and the others (2**64 - hold) / (rows - top).

    Attributes:
        dimension: Numbers per vector.
        epsilon: As requested.
        length: Signs per report: by default ``dimension``; else a power of two above it.
        rows: Candidates, a power of two, at least ``length`` so that every pair can be
            distinguished.
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
        dimension = check_count(self.dimension, "dimension", least=2, most=1 << 10)
        epsilon = check_epsilon(self.epsilon)
        length = direction_signs.check_length(self.length, dimension)
        least = 1 << (length - 1).bit_length()
        rows = direction_signs.check_power(
            self.rows or max(least, cosets.rows_for(epsilon, length)), "rows"
        )
        if rows < length:
            raise BadParameter("rows", rows, f">= the length, {length}")
        best = self.top or cosets.best_top(epsilon, rows, rows, 2)[0]
        top = check_count(best, "top", least=1, most=rows - 1)
        hold = raised_weight(epsilon, top, rows)
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
        """The mean squared product of a report with a unit vector, less 1, for normal entries."""
        return cosets.gain_of(self.epsilon, self.rows, self.rows, 2, self.top)

    def randomise(self, values: object, source: Source) -> cosets.Bits:
        """Return one row of ``length`` bits per user, one for plus."""
        vectors = check_reals(values, -1.0, 1.0, width=self.dimension)
        signs, holds = source.stage("signs"), source.stage("hold")
        inside, outside = source.stage("inside"), source.stage("outside")
        rest, matrix = self.rows - self.top, cosets.minus_signs(self.rows, self.length)
        reports = np.empty((len(vectors), self.length), dtype=np.bool_)
        for some in blocks(len(vectors), max(self.length, self.rows)):
            unit = direction_signs.scaled(vectors[some], direction_signs.lengths_of(vectors[some]))
            count = len(unit)
            minus = cosets.draw_signs(signs, count, self.length)
            ranks = self.coset.ranked(self.coset.products(self.coset.whole(unit), minus))
            ranks.partition(rest, axis=1)
            is_inside = holds.bernoulli(self.hold, count)
            within = inside.below(self.top, count).astype(np.intp)
            place = np.where(is_inside, rest + within, outside.below(rest, count))
            row = ranks[np.arange(count), place] & np.int32(self.rows - 1)
            np.equal(minus, matrix[row], out=reports[some])
        return reports

    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return the guarantee of the weight as rounded."""
        if neighbours not in (Neighbours.ITEM, Neighbours.USER):
            return unsupported(self, neighbours)
        return Guarantee(raised_epsilon(self.hold, self.top, self.rows), neighbours)

    def log_likelihood(self, reports: Reports, value: object) -> Floats:
        """Return ln P(report | vector), summed over every s and candidate that give the report."""
        vector = check_reals(
            np.asarray(value, dtype=np.float64)[None], -1.0, 1.0, width=self.dimension
        )
        whole = self.coset.whole(
            direction_signs.scaled(vector, direction_signs.lengths_of(vector))
        )
        rows = np.asarray(reports, dtype=np.bool_)
        share = self.coset.share_on_top(rows, whole[0], self.top)
        logs = log_mixture(share, self.hold, self.top, self.rows)
        return np.asarray(logs + np.log(self.rows) - self.length * np.log(2.0))

    def tally(self, reports: Reports) -> Tally:
        """Return in how many reports each pair of places agrees, row by row of the triangle."""
        return pair_agreements(np.asarray(reports, dtype=np.bool_))

    def moments(self, tally: Tally, n: int) -> Floats:
        """Return the mean of z z' without its diagonal, taken back to ``dimension`` places.

        It is ``gain`` times the mean of w w' for vectors spread over many places; the noise of an
        entry is that of n draws.
        """
        count = check_reports_counted(n)
        square = np.zeros((self.length, self.length))
        square[np.triu_indices(self.length, 1)] = 2 * np.asarray(tally) / count - 1
        square += square.T
        if not self.coset.is_spread:
            return square
        back = cosets.frame(self.length, self.dimension).astype(np.float64)
        return np.asarray(back.T @ square @ back / self.length)

    def estimate(self, tally: Tally, n: int) -> Estimate:
        """Return the mean of w_i w_j for each pair, for unit vectors spread over many places."""
        pairs = self.moments(tally, n)[np.triu_indices(self.dimension, 1)]
        error = np.full(len(pairs), 1 / (self.gain * np.sqrt(n)))
        return Estimate(pairs / self.gain, error)

    def outputs(self) -> Reports:
        """Return every row of signs; refused when there are too many to list."""
        return direction_signs.listed_rows(self.length)

    def worst_pairs(
        self, neighbours: Neighbours = Neighbours.USER
    ) -> Sequence[tuple[object, object]]:
        """Return two vectors whose top sets differ, without ties."""
        vector = direction_signs.untied(self.dimension)
        other = vector.copy()
        other[-1] *= -1
        return [(vector, other), (vector, vector[::-1].copy())]
