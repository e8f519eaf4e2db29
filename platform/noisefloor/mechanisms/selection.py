"""Picking one of many by other means: permute-and-flip, exponential mechanism, k-ary response."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import Floats, blocks, check_count, check_epsilon
from noisefloor.laws import ONE
from noisefloor.mechanisms.base import Estimate, Reports, Tally, unsupported
from noisefloor.mechanisms.randomised_response import KaryResponse
from noisefloor.mechanisms.scores import Chooser, Scores, add_margin, aim_below
from noisefloor.mechanisms.thresholds import ceil64, epsilon_of, exp, in_sixty_digits
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import Source

_WHOLE = 1 << 52
"""The weight of the best score in the exponential mechanism; 1,024 of them fit in 2**63."""


@dataclass(frozen=True, slots=True)
class PermuteAndFlip(Chooser):
    """Take candidates in random order, accept each with e**(-rate * distance from the best).

    Guarantee:  pure DP, epsilon = the exact worst log-ratio over all rows; the rate is calibrated
                to it. Per request: requests add up.
    Neighbours: user: any row of scores to any other (local model).
    Domain:     rows of 2 to 1,024 reals in [low, high], taken to the grid; others are refused.
    Reference:  McKenna and Sheldon 2020, arXiv 2010.12603. For the worst pair see Scores.
    """

    size: int
    epsilon: float
    low: float = 0.0
    high: float = 1.0
    steps: int = 64
    accept: tuple[int, ...] = field(init=False, repr=False)

    @in_sixty_digits
    def __post_init__(self) -> None:
        check_count(self.size, "size", least=2, most=1024)
        epsilon = check_epsilon(self.epsilon)
        least = _worst_acceptance(self.scores.size, aim_below(epsilon))
        rate = -math.log(least) / self.steps
        accept = [ceil64(exp(-Decimal(rate) * step)) for step in range(self.steps + 1)]
        object.__setattr__(self, "accept", tuple(accept))

    @property
    def scores(self) -> Scores:  # type: ignore[override]  # follows from the parameters
        """The declared range of the scores."""
        return Scores(self.size, self.low, self.high, self.steps)

    def randomise(self, values: object, source: Source) -> NDArray[np.unsignedinteger]:
        """Return the index of the candidate each user asks for.

        The first accepted in a random order is a uniform choice among all that are accepted.
        """
        scores = self.scores
        rows = scores.check(values)
        coins, picks = source.stage("flip"), source.stage("pick")
        # The best is always accepted; 2**64 does not fit in a word, so it is set afterwards.
        table = np.array([ONE - 1, *self.accept[1:]], dtype=np.uint64)
        reports = np.empty(len(rows), dtype=np.min_scalar_type(self.size - 1))
        for some in blocks(len(rows), self.size):
            grid = scores.grid(rows[some])
            distance = grid.max(axis=1, keepdims=True) - grid
            accepted = coins.bernoulli_each(table[distance]) | (distance == 0)
            rank = accepted.cumsum(axis=1, dtype=np.uint32)
            chosen = picks.below(rank[:, -1], len(rank))
            reports[some] = (rank > chosen[:, None]).argmax(axis=1)
        return reports

    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return ln((1 - (1 - a)**size) / a**2), a the chance to accept the farthest."""
        if neighbours is not Neighbours.USER:
            return unsupported(self, neighbours)
        return Guarantee(add_margin(_worst_ratio(self.size, self.accept[-1] / ONE)), neighbours)

    def chances(self, value: object) -> Floats:
        """Return the chance of each candidate: a_j times the integral of the others' refusals.

        The integrand over the place x in the order is a polynomial, so that Gauss-Legendre
        quadrature with size / 2 nodes is exact.
        """
        row = self.scores.row(value)
        accept = np.array(self.accept, dtype=np.float64)[row.max() - row] / ONE
        nodes, weights = np.polynomial.legendre.leggauss(self.size // 2 + 1)
        refused = 1 - accept[:, None] * (nodes + 1) / 2
        result = np.empty(self.size)
        for place in range(self.size):
            others = np.delete(refused, place, axis=0).prod(axis=0)
            result[place] = accept[place] * (others @ weights) / 2
        return result


def _worst_ratio(size: int, accept: float) -> float:
    """Return the log-ratio of the corner rows of permute-and-flip."""
    # 1 - (1 - a)**size, without cancelling when a is small.
    best = -math.expm1(size * math.log1p(-accept)) if accept < 1 else 1.0
    return math.log(best) - 2 * math.log(accept)


def _worst_acceptance(size: int, epsilon: float) -> float:
    """Return the chance to accept the farthest at which the worst case is epsilon."""
    low, high = math.exp(-epsilon) / 2, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if _worst_ratio(size, middle) > epsilon else (low, middle)
    return high


@dataclass(frozen=True, slots=True)
class ExponentialMechanism(Chooser):
    """Pick a candidate with probability proportional to e**(rate * score).

    Guarantee:  pure DP, epsilon = the exact worst log-ratio over all rows, from integer weights;
                the rate is calibrated to it. Per request: requests add up.
    Neighbours: user: any row of scores to any other (local model).
    Domain:     rows of 2 to 1,024 reals in [low, high], taken to the grid; others are refused.
    Reference:  McSherry and Talwar 2007, doi 10.1109/FOCS.2007.66. For the
                worst pair see Scores.
    """

    size: int
    epsilon: float
    low: float = 0.0
    high: float = 1.0
    steps: int = 64
    weights: tuple[int, ...] = field(init=False, repr=False)

    @in_sixty_digits
    def __post_init__(self) -> None:
        check_count(self.size, "size", least=2, most=1024)
        others, power = self.scores.size - 1, exp(check_epsilon(self.epsilon))
        # The worst ratio is x (1 + others x) / (x + others), x the ratio of best to worst weight:
        # others x**2 + (1 - e**eps) x - others e**eps = 0.
        half = (power - 1) / (2 * others)
        best = half + (half * half + power).sqrt()
        rate = best.ln() / self.steps
        weights = [
            math.ceil(_WHOLE * exp(-rate * (self.steps - step))) for step in range(self.steps + 1)
        ]
        object.__setattr__(self, "weights", tuple(weights))

    @property
    def scores(self) -> Scores:  # type: ignore[override]  # follows from the parameters
        """The declared range of the scores."""
        return Scores(self.size, self.low, self.high, self.steps)

    def randomise(self, values: object, source: Source) -> NDArray[np.unsignedinteger]:
        """Return the index of the candidate each user asks for."""
        scores = self.scores
        rows, picks = scores.check(values), source.stage("pick")
        table = np.array(self.weights, dtype=np.uint64)
        reports = np.empty(len(rows), dtype=np.min_scalar_type(self.size - 1))
        for some in blocks(len(rows), self.size):
            ends = table[scores.grid(rows[some])].cumsum(axis=1)
            chosen = picks.below_wide(ends[:, -1])
            reports[some] = (ends > chosen[:, None]).argmax(axis=1)
        return reports

    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return the ratio of the corner rows, from the integer weights."""
        if neighbours is not Neighbours.USER:
            return unsupported(self, neighbours)
        worst, best, others = self.weights[0], self.weights[-1], self.size - 1
        epsilon = epsilon_of(best * (worst + others * best), worst * (best + others * worst))
        return Guarantee(epsilon, neighbours)

    def chances(self, value: object) -> Floats:
        """Return the chance of each candidate."""
        weights = np.array(self.weights, dtype=np.float64)[self.scores.row(value)]
        return np.asarray(weights / weights.sum())


@dataclass(frozen=True, slots=True)
class ArgmaxResponse:
    """Name the best candidate by k-ary response: the whole epsilon goes into the index.

    Guarantee:  pure DP, that of the k-ary response. Per request: requests add up.
    Neighbours: user: any row of scores to any other (local model).
    Domain:     rows of ``size`` reals in [low, high]; others are refused. Ties go to the first.
    Reference:  Kairouz, Oh, Viswanath 2014, arXiv 1407.1338, applied to the argmax.
    """

    size: int
    epsilon: float
    low: float = 0.0
    high: float = 1.0
    response: KaryResponse = field(init=False)

    @in_sixty_digits
    def __post_init__(self) -> None:
        object.__setattr__(self, "response", KaryResponse(self.scores.size, self.epsilon))

    @property
    def scores(self) -> Scores:
        """The declared range of the scores."""
        return Scores(self.size, self.low, self.high)

    def randomise(self, values: object, source: Source) -> NDArray[np.unsignedinteger]:
        """Return the index of the candidate each user asks for."""
        rows, respond = self.scores.check(values), self.response.responder(source)
        reports = np.empty(len(rows), dtype=np.min_scalar_type(self.size - 1))
        for some in blocks(len(rows), self.size):
            reports[some] = respond(rows[some].argmax(axis=1))
        return reports

    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return the guarantee of the response."""
        return self.response.guarantee(neighbours)

    def log_likelihood(self, reports: Reports, value: object) -> Floats:
        """Return ln P(index | row of scores)."""
        row = self.scores.check(np.asarray(value, dtype=np.float64)[None])[0]
        return self.response.log_likelihood(reports, int(row.argmax()))

    def tally(self, reports: Reports) -> Tally:
        """Return how often each candidate was named."""
        return self.response.tally(reports)

    def estimate(self, tally: Tally, n: int) -> Estimate:
        """Return the share of users for whom each candidate is the best."""
        return self.response.estimate(tally, n)

    def outputs(self) -> Reports:
        """Return every index."""
        return np.arange(self.size)

    def worst_pairs(
        self, neighbours: Neighbours = Neighbours.USER
    ) -> Sequence[tuple[object, object]]:
        """Return rows with different best candidates; by symmetry one pair is enough."""
        first, second = np.full(self.size, self.low), np.full(self.size, self.low)
        first[0], second[-1] = self.high, self.high
        return [(first, second)]
