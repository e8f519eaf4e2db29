"""Unary encodings: a vector of bits, each answered on its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from noisefloor import checks
from noisefloor.distributions import ONE, ceil64, exp, in_sixty_digits, log_ratio, ratio, round_up
from noisefloor.errors import BadParameter, OutOfDomain
from noisefloor.mechanisms import base
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import Source

_LISTABLE = 16
"""Vectors of up to this many bits can be enumerated."""


@dataclass(frozen=True, slots=True)
class UnaryEncoding:
    """Answer every bit of a vector on its own: ones stay with one probability, zeros with another.

    Guarantee:  pure DP; per bit max(ln(p/q), ln((1-q)/(1-p))), for a moved one the sum of the
                two, for a user the worst over all vectors with at most ``most_ones`` ones.
    Neighbours: bit, item, move-one and user are distinguished (local model).
    Domain:     rows of ``size`` bits with at most ``most_ones`` ones; anything else is refused.
    Reference:  Wang, Blocki, Li, Jha 2017, arXiv 1705.04421 (SUE and OUE).

    Attributes:
        size: Bits per user.
        stay: Weight, out of 2**64, with which a one is reported as one (p).
        rise: Weight with which a zero is reported as one (q).
        most_ones: Public cap on the ones a user may hold.
    """

    size: int
    stay: int
    rise: int
    most_ones: int

    def __post_init__(self) -> None:
        checks.check_count(self.size, "size")
        checks.check_count(self.most_ones, "most_ones", least=1, most=self.size)
        if not 0 < self.rise < self.stay < ONE:
            raise BadParameter("rise", self.rise, "in (0, stay), and stay below 2**64")

    @classmethod
    @in_sixty_digits
    def symmetric(
        cls,
        size: int,
        epsilon: float,
        *,
        most_ones: int | None = None,
        neighbours: Neighbours = Neighbours.USER,
    ) -> "UnaryEncoding":
        """Flip ones and zeros alike, so that ``guarantee(neighbours)`` meets epsilon.

        The bits that neighbours may differ in share epsilon: one for BIT and ITEM, two for
        MOVE_ONE, min(2 * most_ones, size) for USER.
        """
        cap = checks.check_count(size if most_ones is None else most_ones, "most_ones", most=size)
        differing = _differing_bits(size, cap, neighbours)
        share = ratio(Decimal(checks.check_epsilon(epsilon, parts=differing)), differing)
        flip = ceil64(ratio(1, 1 + exp(share)))
        return cls(size, ONE - flip, flip, cap)

    @classmethod
    @in_sixty_digits
    def optimised(cls, size: int, epsilon: float) -> "UnaryEncoding":
        """Keep ones with probability 1/2 and raise few zeros: best for one value a user (OUE)."""
        checks.check_count(size, "size", least=2)
        return cls(size, ONE // 2, ceil64(ratio(1, 1 + exp(checks.check_epsilon(epsilon)))), 1)

    def encode(self, values: object) -> NDArray[np.bool_]:
        """Return the one-hot rows of integers in range(size)."""
        symbols = checks.check_integers(values, 0, self.size - 1)
        rows = np.zeros((len(symbols), self.size), dtype=np.bool_)
        for some in checks.blocks(len(symbols)):
            places = np.arange(some.start, some.stop) * self.size + symbols[some].astype(np.int64)
            rows.reshape(-1)[places] = True
        return rows

    def randomise(self, values: object, source: Source) -> NDArray[np.bool_]:
        """Return one row of bits per user."""
        bits = checks.check_bits(values, width=self.size)
        zeros, ones = source.stage("zeros"), source.stage("ones")
        reports = np.empty(bits.shape, dtype=np.bool_)
        for rows in checks.blocks(len(bits), self.size):
            some, answered = bits[rows].reshape(-1), reports[rows].reshape(-1)
            zeros.bernoulli(self.rise, some.size, out=answered)
            if not self._is_symmetric or self.most_ones < self.size:
                places = self._ones_of(some)
            if self._is_symmetric:
                answered ^= some
            else:
                answered[places] = ones.bernoulli(self.stay, places.size)
        return reports

    def randomise_values(self, values: object, source: Source) -> NDArray[np.bool_]:
        """Return what ``randomise(encode(values), source)`` returns, without the encoding."""
        symbols = checks.check_integers(values, 0, self.size - 1)
        zeros, ones = source.stage("zeros"), source.stage("ones")
        reports = np.empty((len(symbols), self.size), dtype=np.bool_)
        for rows in checks.blocks(len(symbols), self.size):
            answered = reports[rows].reshape(-1)
            zeros.bernoulli(self.rise, answered.size, out=answered)
            places = np.arange(0, answered.size, self.size) + symbols[rows].astype(np.int64)
            if self._is_symmetric:
                answered[places] ^= True
            else:
                answered[places] = ones.bernoulli(self.stay, places.size)
        return reports

    @property
    def _is_symmetric(self) -> bool:
        return self.stay + self.rise == ONE

    def _ones_of(self, bits: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Return where the ones are in flattened rows, and refuse rows with too many."""
        places = np.flatnonzero(bits)
        owner = places // self.size
        if np.any(owner[self.most_ones :] == owner[: -self.most_ones]):
            raise OutOfDomain(f"Expected rows with at most {self.most_ones} ones; one has more.")
        return places

    @in_sixty_digits
    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return the guarantee for neighbours that differ in one bit, a moved one, or anything."""
        fall = log_ratio(self.stay, self.rise)  # a one becomes a zero, the report is one
        rise = log_ratio(ONE - self.rise, ONE - self.stay)  # a zero becomes a one, it is zero
        if neighbours in (Neighbours.BIT, Neighbours.ITEM):
            return Guarantee(round_up(max(fall, rise)), neighbours)
        if neighbours is Neighbours.MOVE_ONE and self.size > 1:
            return Guarantee(round_up(fall + rise), neighbours)
        if neighbours is Neighbours.USER:
            most = min(self.most_ones, self.size)
            rest = min(most, self.size - most)
            return Guarantee(round_up(most * max(fall, rise) + rest * min(fall, rise)), neighbours)
        return base.unsupported(self, neighbours)

    def log_likelihood(self, reports: base.Reports, value: object) -> checks.Floats:
        """Return ln P(row | value's row)."""
        bits = checks.check_bits(np.atleast_2d(np.asarray(value)), width=self.size)[0]
        one = np.where(bits, base.log_of(self.stay, ONE), base.log_of(self.rise, ONE))
        zero = np.where(bits, base.log_of(ONE - self.stay, ONE), base.log_of(ONE - self.rise, ONE))
        rows = np.asarray(reports, dtype=np.float64)
        return np.asarray(rows @ (one - zero) + zero.sum())

    def tally(self, reports: base.Reports) -> base.Tally:
        """Return the number of ones in each place."""
        counts = np.zeros(self.size, dtype=np.int64)
        # Bytes add up fastest in two bytes; from eight places on, a block has too few rows to
        # overflow them.
        narrow = np.uint16 if self.size >= 8 else np.uint32
        for rows in checks.blocks(len(reports), self.size):
            counts += reports[rows].view(np.uint8).sum(axis=0, dtype=narrow)
        return counts

    def estimate(self, tally: base.Tally, n: int) -> base.Estimate:
        """Return, for each place, the share of users whose bit is one."""
        return base.response_estimate(
            tally, base.check_reports_counted(n), hold=self.stay / ONE, lack=self.rise / ONE
        )

    def outputs(self) -> base.Reports:
        """Return every row of bits; refused when there are too many to list."""
        if self.size > _LISTABLE:
            raise BadParameter("size", self.size, f"<= {_LISTABLE} for the reports to be listed")
        return all_rows(self.size)

    def worst_pairs(
        self, neighbours: Neighbours = Neighbours.USER
    ) -> Sequence[tuple[object, object]]:
        """Return vectors that differ in as many bits as the relation allows, both ways."""
        empty = np.zeros(self.size, dtype=np.bool_)
        first, last = empty.copy(), empty.copy()
        if neighbours is Neighbours.USER:
            first[: self.most_ones] = True
            last[max(self.most_ones, self.size - self.most_ones) :] = True
            return [(first, last), (first, empty)]
        first[0], last[-1] = True, True
        return [(first, last if neighbours is Neighbours.MOVE_ONE else empty)]


def all_rows(size: int) -> NDArray[np.bool_]:
    """Return every row of ``size`` bits."""
    codes = np.arange(1 << size)[:, None] >> np.arange(size)
    return np.asarray(codes & 1, dtype=np.bool_)


def _differing_bits(size: int, most_ones: int, neighbours: Neighbours) -> int:
    """Return in how many bits two neighbouring vectors may differ."""
    if neighbours is Neighbours.USER:
        return min(2 * most_ones, size)
    if neighbours is Neighbours.MOVE_ONE:
        return 2
    if neighbours in (Neighbours.BIT, Neighbours.ITEM):
        return 1
    raise BadParameter("neighbours", neighbours.value, "to be bit, item, move-one or user")
