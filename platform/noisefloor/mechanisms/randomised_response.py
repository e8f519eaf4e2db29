"""Randomised response: on one bit, and on one of k symbols.

Memoised response: one permanent answer per bit, and a fresh answer about it each period.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from noisefloor import checks, distributions
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import base
from noisefloor.mechanisms.unary import all_rows
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import Source

_TABLE = 1024
"""Up to this many symbols the response is one draw of a finite distribution; beyond, two steps."""


@dataclass(frozen=True, slots=True)
class BinaryResponse:
    """Tell the bit, or its opposite with a known probability.

    Guarantee:  pure DP, epsilon = ln((2**64 - flip) / flip), per release.
    Neighbours: bit = item = user: one user holds one bit (local model).
    Domain:     booleans or integers 0 and 1; anything else is refused.
    Reference:  Warner 1965, doi 10.1080/01621459.1965.10480775.
    """

    epsilon: float
    flip: int = field(init=False)

    @distributions.in_sixty_digits
    def __post_init__(self) -> None:
        epsilon = checks.check_epsilon(self.epsilon)
        object.__setattr__(
            self,
            "flip",
            distributions.ceil64(distributions.ratio(1, 1 + distributions.exp(epsilon))),
        )

    def randomise(self, values: object, source: Source) -> NDArray[np.bool_]:
        """Return one bit per user."""
        return flip_bits(checks.check_bits(values), self.flip, source.stage("flip"))

    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return the guarantee of the flip as rounded."""
        if neighbours not in (Neighbours.BIT, Neighbours.ITEM, Neighbours.USER):
            return base.unsupported(self, neighbours)
        return Guarantee(
            distributions.epsilon_of(distributions.ONE - self.flip, self.flip), neighbours
        )

    def log_likelihood(self, reports: base.Reports, value: object) -> checks.Floats:
        """Return ln P(report | value)."""
        same, other = (
            base.log_of(distributions.ONE - self.flip, distributions.ONE),
            base.log_of(self.flip, distributions.ONE),
        )
        return np.where(np.asarray(reports, dtype=np.bool_) == bool(value), same, other)

    def tally(self, reports: base.Reports) -> base.Tally:
        """Return the number of ones."""
        return np.array([np.count_nonzero(reports)])

    def estimate(self, tally: base.Tally, n: int) -> base.Estimate:
        """Return the share of users whose bit is one."""
        lie = self.flip / distributions.ONE
        return base.response_estimate(tally, base.check_reports_counted(n), hold=1 - lie, lack=lie)

    def outputs(self) -> base.Reports:
        """Return both reports."""
        return np.array([False, True])

    def worst_pairs(
        self, neighbours: Neighbours = Neighbours.USER
    ) -> Sequence[tuple[object, object]]:
        """Return the only pair there is."""
        return [(False, True)]


@dataclass(frozen=True, slots=True)
class KaryResponse:
    """Tell the symbol, or one of the other k - 1 with equal, known probability.

    Guarantee:  pure DP, epsilon = ln(keep / lie), per release.
    Neighbours: item = user: any symbol to any other; one user holds one symbol (local model).
    Domain:     integers in range(size), size >= 2; anything else is refused.
    Reference:  Kairouz, Oh, Viswanath 2014, arXiv 1407.1338 (randomised response).
    """

    size: int
    epsilon: float
    keep: int = field(init=False)
    distribution: distributions.FiniteDistribution | None = field(
        init=False, repr=False, compare=False
    )

    @distributions.in_sixty_digits
    def __post_init__(self) -> None:
        size = checks.check_count(self.size, "size", least=2, most=1 << 31)
        epsilon = checks.check_epsilon(self.epsilon)
        power = distributions.exp(epsilon)
        if size <= _TABLE:
            lie = distributions.ceil64(distributions.ratio(1, power + size - 1))
            object.__setattr__(self, "keep", distributions.ONE - (size - 1) * lie)
            object.__setattr__(self, "distribution", shift_distribution(size, lie))
        else:
            object.__setattr__(
                self, "keep", distributions.floor64(distributions.ratio(power, power + size - 1))
            )
            object.__setattr__(self, "distribution", None)

    @property
    def lie(self) -> Fraction:
        """The weight of each lie, out of 2**64; whole where the distribution is a table."""
        return Fraction(distributions.ONE - self.keep, self.size - 1)

    def randomise(self, values: object, source: Source) -> NDArray[np.unsignedinteger]:
        """Return one symbol per user."""
        symbols = checks.check_integers(values, 0, self.size - 1)
        respond = self.sampler(source)
        reports = np.empty(symbols.shape, dtype=np.min_scalar_type(self.size - 1))
        for rows in checks.blocks(len(symbols)):
            reports[rows] = respond(symbols[rows])
        return reports

    def sampler(self, source: Source) -> "KarySampler":
        """Return the step that answers for one block of users after the other."""
        return KarySampler(self, source.stage("keep"), source.stage("lie"))

    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return the guarantee of the weights as rounded."""
        if neighbours not in (Neighbours.ITEM, Neighbours.USER):
            return base.unsupported(self, neighbours)
        return Guarantee(
            distributions.epsilon_of(self.keep * (self.size - 1), distributions.ONE - self.keep),
            neighbours,
        )

    def log_likelihood(self, reports: base.Reports, value: object) -> checks.Floats:
        """Return ln P(report | value)."""
        same, other = (
            base.log_of(self.keep, distributions.ONE),
            base.log_of(distributions.ONE - self.keep, distributions.ONE * (self.size - 1)),
        )
        return np.where(np.asarray(reports) == value, same, other)

    def tally(self, reports: base.Reports) -> base.Tally:
        """Return the number of reports of each symbol."""
        return count_symbols(reports, self.size)

    def estimate(self, tally: base.Tally, n: int) -> base.Estimate:
        """Return the share of users who hold each symbol."""
        return base.response_estimate(
            tally,
            base.check_reports_counted(n),
            hold=self.keep / distributions.ONE,
            lack=float(self.lie / distributions.ONE),
        )

    def outputs(self) -> base.Reports:
        """Return every symbol."""
        return np.arange(self.size)

    def worst_pairs(
        self, neighbours: Neighbours = Neighbours.USER
    ) -> Sequence[tuple[object, object]]:
        """Return one pair: by symmetry all are alike."""
        return [(0, self.size - 1)]


@dataclass(frozen=True, slots=True)
class KarySampler:
    """The k-ary answer for one block of symbols after the other, from two streams."""

    response: KaryResponse
    kept: Source
    lies: Source

    def __call__(self, symbols: NDArray[np.integer]) -> NDArray[np.unsignedinteger]:
        """Return the protected symbols: each is shifted cyclically by a random amount."""
        size, count = self.response.size, len(symbols)
        if self.response.distribution is not None:
            moved = symbols.astype(np.uint16)
            moved += self.kept.draw(self.response.distribution, count).view(np.uint16)
            # Unsigned: subtracting the size from what is smaller wraps to something huge.
            return np.asarray(np.minimum(moved, moved - np.uint16(size)))
        moved = symbols.astype(np.uint64)
        lying = np.flatnonzero(~self.kept.bernoulli(self.response.keep, count))
        moved[lying] += self.lies.below(size - 1, lying.size).astype(np.uint64) + np.uint64(1)
        return np.asarray(np.minimum(moved, moved - np.uint64(size)))


def shift_distribution(size: int, lie: int) -> distributions.FiniteDistribution:
    """Return the distribution of the cyclic shift: 0 is the truth, all others weigh ``lie``."""
    return distributions.FiniteDistribution.of(
        [distributions.ONE - (size - 1) * lie] + [lie] * (size - 1)
    )


def count_symbols(reports: base.Reports, size: int) -> base.Tally:
    """Count each symbol, in blocks: bincount wants 8-byte integers and would copy them all."""
    counts = np.zeros(size, dtype=np.int64)
    for rows in checks.blocks(len(reports)):
        counts += np.bincount(reports[rows], minlength=size)
    return counts


def flip_bits(bits: NDArray[np.bool_], flip: int, draws: Source) -> NDArray[np.bool_]:
    """Return the bits, each flipped with probability ``flip / 2**64``."""
    flipped = np.empty(bits.shape, dtype=np.bool_)
    for rows in checks.blocks(len(bits)):
        some = bits[rows]
        np.not_equal(some, draws.bernoulli(flip, len(some)), out=flipped[rows])
    return flipped


_LISTABLE = 16


@dataclass(frozen=True, slots=True)
class MemoisedResponse:
    """Flip the bit once for ever, then flip that answer afresh for each report.

    Guarantee:  pure DP, epsilon of the joint distribution of ``periods`` reports; it grows from
                ``epsilon_first`` with one report towards ``epsilon_permanent`` and never passes
                it, so long as the bit stays the same and the permanent answer is kept.
    Neighbours: bit = item = user: one user holds one bit (local model).
    Domain:     booleans or integers 0 and 1; anything else is refused.
    Reference:  Erlingsson, Pihur, Korolova 2014, arXiv 1407.6981 (RAPPOR).

    Attributes:
        epsilon_permanent: What any number of reports may reveal.
        epsilon_first: What one report may reveal; smaller.
        periods: Reports per call of ``randomise``; each user's row holds that many.
        permanent: Weight, out of 2**64, with which the permanent answer is flipped.
        instant: Weight with which each report flips the permanent answer.
    """

    epsilon_permanent: float
    epsilon_first: float
    periods: int = 1
    permanent: int = field(init=False)
    instant: int = field(init=False)

    @distributions.in_sixty_digits
    def __post_init__(self) -> None:
        ever = checks.check_epsilon(self.epsilon_permanent, "epsilon_permanent")
        first = checks.check_epsilon(self.epsilon_first, "epsilon_first")
        checks.check_count(self.periods, "periods", most=1 << 16)
        if not first < ever:
            raise BadParameter("epsilon_first", first, f"< epsilon_permanent={ever!r}")
        once, total = (
            distributions.ratio(1, 1 + distributions.exp(ever)),
            distributions.ratio(1, 1 + distributions.exp(first)),
        )
        # total = once (1 - again) + (1 - once) again, solved for again.
        again = distributions.ratio(total - once, 1 - 2 * once)
        object.__setattr__(self, "permanent", distributions.ceil64(once))
        object.__setattr__(
            self, "instant", min(distributions.ceil64(again), distributions.ONE // 2)
        )

    def memorise(self, values: object, source: Source) -> NDArray[np.bool_]:
        """Return the permanent answers, to be drawn once and kept on the device."""
        return flip_bits(checks.check_bits(values), self.permanent, source.stage("permanent"))

    def report(self, memory: object, source: Source) -> NDArray[np.bool_]:
        """Return one period's reports about the permanent answers."""
        return flip_bits(checks.check_bits(memory), self.instant, source.stage("instant"))

    def randomise(self, values: object, source: Source) -> NDArray[np.bool_]:
        """Return ``periods`` reports per user: one row each, or a flat array for one period."""
        bits = checks.check_bits(values)
        once, again = source.stage("permanent"), source.stage("instant")
        reports = np.empty((len(bits), self.periods), dtype=np.bool_)
        for rows in checks.blocks(len(bits), self.periods):
            some, answers = bits[rows], reports[rows]
            memory = some ^ once.bernoulli(self.permanent, len(some))
            again.bernoulli(self.instant, answers.size, out=answers.reshape(-1))
            answers ^= memory[:, None]
        return reports if self.periods > 1 else reports[:, 0]

    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return the guarantee of all ``periods`` reports together."""
        if neighbours not in (Neighbours.BIT, Neighbours.ITEM, Neighbours.USER):
            return base.unsupported(self, neighbours)
        return Guarantee(distributions.round_up(self._joint_epsilon()), neighbours)

    @distributions.in_sixty_digits
    def _joint_epsilon(self) -> Decimal:
        """Return the log-ratio of the report row that tells most: all reports equal."""
        kept, flipped = distributions.ONE - self.permanent, self.permanent
        # How much less likely all reports are from the opposite permanent answer.
        fade = distributions.ratio(self.instant, distributions.ONE - self.instant) ** self.periods
        return distributions.ratio(kept + flipped * fade, flipped + kept * fade).ln()

    def log_likelihood(self, reports: base.Reports, value: object) -> checks.Floats:
        """Return ln P(row of reports | value), summed over the hidden permanent answer."""
        rows = np.asarray(reports, dtype=np.bool_).reshape(-1, self.periods)
        agree = np.count_nonzero(rows == bool(value), axis=1)
        stay, flip = (
            math.log1p(-self.instant / distributions.ONE),
            math.log(self.instant / distributions.ONE),
        )
        as_kept = agree * stay + (self.periods - agree) * flip
        as_flipped = agree * flip + (self.periods - agree) * stay
        as_kept += math.log1p(-self.permanent / distributions.ONE)
        as_flipped += math.log(self.permanent / distributions.ONE)
        return np.asarray(np.logaddexp(as_kept, as_flipped))

    def tally(self, reports: base.Reports) -> base.Tally:
        """Return the number of ones in each period."""
        rows = np.asarray(reports).reshape(-1, self.periods)
        return np.asarray(rows.sum(axis=0, dtype=np.int64))

    def estimate(self, tally: base.Tally, n: int) -> base.Estimate:
        """Return the share of users whose bit is one, as each period's reports tell it."""
        once, again = self.permanent / distributions.ONE, self.instant / distributions.ONE
        lie = once * (1 - again) + (1 - once) * again
        return base.response_estimate(tally, base.check_reports_counted(n), hold=1 - lie, lack=lie)

    def outputs(self) -> base.Reports:
        """Return every row of reports; refused when there are too many to list."""
        if self.periods > _LISTABLE:
            raise BadParameter("periods", self.periods, f"<= {_LISTABLE} for reports to be listed")
        rows = all_rows(self.periods)
        return rows if self.periods > 1 else rows[:, 0]

    def worst_pairs(
        self, neighbours: Neighbours = Neighbours.USER
    ) -> Sequence[tuple[object, object]]:
        """Return the only pair there is."""
        return [(False, True)]
