"""Mechanisms as papers print them, with their faults: kept to be caught.

Each says what its paper claims and returns what can be proved. Nothing here is repaired, and
nothing outside audits, reproductions and comparisons may use it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from noisefloor import checks
from noisefloor.distributions import ONE, epsilon_of, exp, floor64, in_sixty_digits, ratio
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import base
from noisefloor.mechanisms.laplace import TwoSidedGeometric
from noisefloor.mechanisms.noisy_max import NoisyMax
from noisefloor.mechanisms.randomised_response import count_symbols, shift_distribution
from noisefloor.mechanisms.scores import ScoreGrid
from noisefloor.mechanisms.unary import UnaryEncoding
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import Source


def printed_noisy_max(size: int, epsilon: float, *, high: float, steps: int = 64) -> NoisyMax:
    """Return noisy max with Laplace noise of scale 1 / epsilon on scores in [0, high].

    The ads paper claims epsilon. Its proof lets one score move by 1; here all move, both ways, by
    ``high``: the true cost tends to 2 * high * epsilon as candidates are added.
    """
    scores = ScoreGrid(size, 0.0, high, steps)
    rate = ratio(Decimal(checks.check_epsilon(epsilon)) * Decimal(scores.high), steps)
    return NoisyMax(scores, TwoSidedGeometric(rate))


def printed_clicks(size: int, epsilon: float) -> UnaryEncoding:
    """Return the click vector with epsilon for each bit.

    The ads paper calls the vector epsilon-private; that holds for a bit, and a user has many.
    """
    return UnaryEncoding.symmetric(size, epsilon, neighbours=Neighbours.BIT)


@dataclass(frozen=True, slots=True)
class PrintedResponse:
    """k-ary response whose lies come from size + 1 symbols, of which 0 is nobody's truth.

    Guarantee:  pure DP, epsilon + ln(size / (size - 1)); the paper claims epsilon.
    Neighbours: item = user: any symbol to any other; one user holds one symbol (local model).
    Domain:     integers in range(size), size >= 2; anything else is refused.
    Reference:  SUP.ML paper, algorithm 2, line 5, with the classes 1..L of its algorithm 4.

    Reports are 1 + symbol, or 0 for the symbol that nobody holds.
    """

    size: int
    epsilon: float
    keep: int = field(init=False)

    @in_sixty_digits
    def __post_init__(self) -> None:
        size = checks.check_count(self.size, "size", least=2, most=512)
        power = exp(checks.check_epsilon(self.epsilon))
        # Kept with the printed probability; what is left has to be shared evenly by the lies.
        lie = (ONE - floor64(ratio(power, power + size - 1))) // size
        object.__setattr__(self, "keep", ONE - size * lie)

    @property
    def lie(self) -> int:
        """The weight of each of the ``size`` lies, out of 2**64."""
        return (ONE - self.keep) // self.size

    def randomise(self, values: object, source: Source) -> NDArray[np.unsignedinteger]:
        """Return one of size + 1 symbols per user."""
        symbols = checks.check_integers(values, 0, self.size - 1)
        distribution, shifts = shift_distribution(self.size + 1, self.lie), source.stage("shift")
        reports = np.empty(symbols.shape, dtype=np.uint16)
        for rows in checks.blocks(len(symbols)):
            moved = symbols[rows].astype(np.uint16) + np.uint16(1)
            moved += shifts.draw(distribution, len(moved)).view(np.uint16)
            reports[rows] = np.minimum(moved, moved - np.uint16(self.size + 1))
        return reports

    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return what the distribution really keeps."""
        if neighbours not in (Neighbours.ITEM, Neighbours.USER):
            return base.unsupported(self, neighbours)
        return Guarantee(epsilon_of(self.keep, self.lie), neighbours)

    def log_likelihood(self, reports: base.Reports, value: int) -> checks.Floats:
        """Return ln P(report | value)."""
        same, other = base.log_of(self.keep, ONE), base.log_of(self.lie, ONE)
        return np.where(np.asarray(reports) == value + 1, same, other)

    def tally(self, reports: base.Reports) -> base.Tally:
        """Return the number of reports of each symbol, the unused one first."""
        return count_symbols(reports, self.size + 1)

    def estimate(self, tally: base.Tally, n: int) -> base.Estimate:
        """Return the share of users who hold each symbol."""
        count, hold, lack = base.check_reports_counted(n), self.keep / ONE, self.lie / ONE
        return base.response_estimate(np.asarray(tally)[1:], count, hold=hold, lack=lack)

    def outputs(self) -> base.Reports:
        """Return every report."""
        return np.arange(self.size + 1)

    def worst_pairs(
        self, neighbours: Neighbours = Neighbours.USER
    ) -> Sequence[tuple[object, object]]:
        """Return one pair: by symmetry all are alike."""
        return [(0, self.size - 1)]


@dataclass(frozen=True, slots=True)
class PrintedBinning:
    """Binning by ceiling, then k-ary response: the minimum falls into a class 0 of its own.

    Guarantee:  none: only the minimum can be reported as class 0. The paper claims epsilon.
    Neighbours: item = user: any value to any other; one user holds one value (local model).
    Domain:     reals in [low, high]; anything else is refused.
    Reference:  SUP.ML paper, algorithm 4 (WAT, continuous branch) followed by its algorithm 2.

    Reports are the classes 1..classes, and 0 where the minimum is kept.
    """

    classes: int
    epsilon: float
    low: float = -1.0
    high: float = 1.0
    keep: int = field(init=False)

    @in_sixty_digits
    def __post_init__(self) -> None:
        checks.check_count(self.classes, "classes", least=2, most=1 << 16)
        if not checks.check_finite(self.low, "low") < checks.check_finite(self.high, "high"):
            raise BadParameter("high", self.high, f"> low={self.low!r}")
        power = exp(checks.check_epsilon(self.epsilon))
        object.__setattr__(self, "keep", floor64(ratio(power, power + self.classes - 1)))

    def classify(self, values: NDArray[np.floating]) -> NDArray[np.int64]:
        """Return ceil((x - low) * classes / (high - low)), which is 0 at the minimum."""
        place = (values - self.low) * self.classes / (self.high - self.low)
        # A rounded product may lie a hair above the last class; the paper's would not.
        return np.asarray(np.minimum(np.ceil(place), self.classes), dtype=np.int64)

    def randomise(self, values: object, source: Source) -> NDArray[np.uint32]:
        """Return one class per user."""
        reals = checks.check_reals(values, self.low, self.high)
        draws, lies, strays = (source.stage(name) for name in ("keep", "lie", "stray"))
        reports = np.empty(len(reals), dtype=np.uint32)
        for rows in checks.blocks(len(reals)):
            true = self.classify(reals[rows])
            lie = lies.below(self.classes - 1, len(true)).astype(np.int64) + 1
            lie += lie >= true
            # A class 0 has no place among the lies to leave out: all classes are open to it.
            lie[true == 0] = strays.below(
                self.classes, int(np.count_nonzero(true == 0))
            ) + np.uint32(1)
            reports[rows] = np.where(draws.bernoulli(self.keep, len(true)), true, lie)
        return reports

    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return no guarantee, and why."""
        return Guarantee.none("only the minimum is ever reported as class 0", neighbours)

    def log_likelihood(self, reports: base.Reports, value: float) -> checks.Floats:
        """Return ln P(class | value)."""
        true = int(self.classify(np.array([value]))[0])
        cells = np.asarray(reports, dtype=np.int64)
        others = self.classes - (true > 0)
        lie = np.where(cells > 0, base.log_of(ONE - self.keep, ONE * others), -math.inf)
        return np.where(cells == true, base.log_of(self.keep, ONE), lie)

    def tally(self, reports: base.Reports) -> base.Tally:
        """Return the number of reports of each class, class 0 first."""
        return count_symbols(reports, self.classes + 1)

    def estimate(self, tally: base.Tally, n: int) -> base.Estimate:
        """Return the share of users in each class, as the paper debiases it: class 0 is lost."""
        count, hold = base.check_reports_counted(n), self.keep / ONE
        lack = (1 - hold) / (self.classes - 1)
        return base.response_estimate(np.asarray(tally)[1:], count, hold=hold, lack=lack)

    def outputs(self) -> base.Reports:
        """Return every class, and class 0."""
        return np.arange(self.classes + 1)

    def worst_pairs(
        self, neighbours: Neighbours = Neighbours.USER
    ) -> Sequence[tuple[object, object]]:
        """Return the minimum and the maximum."""
        return [(self.low, self.high)]
