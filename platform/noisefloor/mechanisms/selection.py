"""Picking one of many by other means: permute-and-flip, exponential mechanism, k-ary response.

Randomised response on a set: name one of the best few, or one of the others, at random.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import Array, Floats, blocks, check_count, check_epsilon
from noisefloor.distributions import ONE, ceil64, epsilon_of, exp, in_sixty_digits
from noisefloor.mechanisms import base
from noisefloor.mechanisms.randomised_response import KaryResponse
from noisefloor.mechanisms.scores import ScoreGrid, SelectionMechanism, add_margin, aim_below
from noisefloor.mechanisms.subset_selection import raised_epsilon, raised_weight
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import Source

_FEW = 8
"""Up to this many places are found by one argmax after the other; more by sorting."""


@dataclass(frozen=True, slots=True)
class TopSetResponse(SelectionMechanism):
    """Name one of the ``top`` best candidates, each e**epsilon times as likely as each other one.

    Guarantee:  pure DP, epsilon = ln(hold (size - top) / ((2**64 - hold) top)). Every row has a
                top set of the same size, so this ratio is met and never passed. Per request:
                requests add up.
    Neighbours: item = user: any row of scores to any other (local model).
    Domain:     rows of ``size`` reals in [low, high]; others are refused. Ties go to the first.
    Reference:  Kairouz, Oh, Viswanath 2014, arXiv 1407.1338 (``top`` = 1, ArgmaxResponse); the
                set in place of the best is our own derivation.

    Two steps, because candidates of equal 64-bit weights may not sum to 2**64 (3 of 6 do not): a
    first draw says whether the report is of the top set, and a fair choice names one of its side.

    Attributes:
        size: Number of candidates.
        epsilon: As requested.
        top: Candidates in the top set.
        hold: Weight, out of 2**64, with which the report is of the top set.
    """

    size: int
    epsilon: float
    top: int
    low: float = 0.0
    high: float = 1.0
    hold: int = field(init=False)

    def __post_init__(self) -> None:
        size = self.scores.size
        top = check_count(self.top, "top", least=1, most=size - 1)
        object.__setattr__(self, "hold", raised_weight(check_epsilon(self.epsilon), top, size))

    @property
    def scores(self) -> ScoreGrid:  # type: ignore[override]  # follows from the parameters
        """The declared range of the scores."""
        return ScoreGrid(self.size, self.low, self.high)

    def randomise(self, values: object, source: Source) -> NDArray[np.unsignedinteger]:
        """Return the index of the candidate each user asks for."""
        rows = self.scores.check(values)
        draws, members, others = (source.stage(name) for name in ("hold", "member", "other"))
        reports = np.empty(len(rows), dtype=np.min_scalar_type(self.size - 1))
        for some in blocks(len(rows), self.size):
            best, answered = top_places(rows[some], self.top), reports[some]
            is_inside = draws.bernoulli(self.hold, len(best))
            inside, outside = np.flatnonzero(is_inside), np.flatnonzero(~is_inside)
            answered[inside] = best[inside, members.below(self.top, inside.size)]
            other = others.below(self.size - self.top, outside.size).astype(np.intp)
            answered[outside] = _skipping(other, best[outside])
        return reports

    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return the guarantee of the weight as rounded."""
        if neighbours not in (Neighbours.ITEM, Neighbours.USER):
            return base.unsupported(self, neighbours)
        return Guarantee(raised_epsilon(self.hold, self.top, self.size), neighbours)

    @property
    def _member(self) -> float:
        return self.hold / ONE / self.top

    @property
    def _other(self) -> float:
        return (ONE - self.hold) / ONE / (self.size - self.top)

    def chances(self, value: object) -> Floats:
        """Return the chance of each candidate."""
        row = self.scores.check(np.asarray(value, dtype=np.float64)[None])
        result = np.full(self.size, self._other)
        result[top_places(row, self.top)] = self._member
        return result

    def estimate(self, tally: base.Tally, n: int) -> base.Estimate:
        """Return the share of users for whom each candidate is in the top set."""
        count = base.check_reports_counted(n)
        return base.response_estimate(tally, count, hold=self._member, lack=self._other)

    def worst_pairs(
        self, neighbours: Neighbours = Neighbours.USER
    ) -> Sequence[tuple[object, object]]:
        """Return rows whose top sets are the first and the last; by symmetry that is enough."""
        first, last = np.full(self.size, self.low), np.full(self.size, self.low)
        first[: self.top], last[-self.top :] = self.high, self.high
        return [(first, last)]


def top_places(rows: Array, top: int) -> NDArray[np.intp]:
    """Return the places of the ``top`` largest of each row, largest first; ties by place."""
    left = rows.astype(rows.dtype if rows.dtype.kind == "f" else np.float64)
    if top > _FEW:
        return np.argsort(-left, axis=1, kind="stable")[:, :top]
    places, every = np.empty((len(left), top), dtype=np.intp), np.arange(len(left))
    for rank in range(top):
        places[:, rank] = left.argmax(axis=1)
        left[every, places[:, rank]] = -np.inf
    return places


def _skipping(others: NDArray[np.intp], members: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return candidate number ``others`` of those that are not members, row by row."""
    for member in np.sort(members, axis=1).T:
        others = others + (others >= member)
    return others


_WHOLE = 1 << 52
"""The weight of the best score in the exponential mechanism; 1,024 of them fit in 2**63."""


@dataclass(frozen=True, slots=True)
class PermuteAndFlip(SelectionMechanism):
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
    def scores(self) -> ScoreGrid:  # type: ignore[override]  # follows from the parameters
        """The declared range of the scores."""
        return ScoreGrid(self.size, self.low, self.high, self.steps)

    def randomise(self, values: object, source: Source) -> NDArray[np.unsignedinteger]:
        """Return the index of the candidate each user asks for.

        The first accepted in a random order is a uniform choice among all that are accepted.
        """
        scores = self.scores
        rows = scores.check(values)
        draws, picks = source.stage("flip"), source.stage("pick")
        # The best is always accepted; 2**64 does not fit in a word, so it is set afterwards.
        table = np.array([ONE - 1, *self.accept[1:]], dtype=np.uint64)
        reports = np.empty(len(rows), dtype=np.min_scalar_type(self.size - 1))
        for some in blocks(len(rows), self.size):
            grid = scores.grid(rows[some])
            distance = grid.max(axis=1, keepdims=True) - grid
            accepted = draws.bernoulli_each(table[distance]) | (distance == 0)
            rank = accepted.cumsum(axis=1, dtype=np.uint32)
            chosen = picks.below(rank[:, -1], len(rank))
            reports[some] = (rank > chosen[:, None]).argmax(axis=1)
        return reports

    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return ln((1 - (1 - a)**size) / a**2), a the chance to accept the farthest."""
        if neighbours is not Neighbours.USER:
            return base.unsupported(self, neighbours)
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
class ExponentialMechanism(SelectionMechanism):
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
    def scores(self) -> ScoreGrid:  # type: ignore[override]  # follows from the parameters
        """The declared range of the scores."""
        return ScoreGrid(self.size, self.low, self.high, self.steps)

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
            return base.unsupported(self, neighbours)
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
    def scores(self) -> ScoreGrid:
        """The declared range of the scores."""
        return ScoreGrid(self.size, self.low, self.high)

    def randomise(self, values: object, source: Source) -> NDArray[np.unsignedinteger]:
        """Return the index of the candidate each user asks for."""
        rows, respond = self.scores.check(values), self.response.sampler(source)
        reports = np.empty(len(rows), dtype=np.min_scalar_type(self.size - 1))
        for some in blocks(len(rows), self.size):
            reports[some] = respond(rows[some].argmax(axis=1))
        return reports

    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return the guarantee of the response."""
        return self.response.guarantee(neighbours)

    def log_likelihood(self, reports: base.Reports, value: object) -> Floats:
        """Return ln P(index | row of scores)."""
        row = self.scores.check(np.asarray(value, dtype=np.float64)[None])[0]
        return self.response.log_likelihood(reports, int(row.argmax()))

    def tally(self, reports: base.Reports) -> base.Tally:
        """Return how often each candidate was named."""
        return self.response.tally(reports)

    def estimate(self, tally: base.Tally, n: int) -> base.Estimate:
        """Return the share of users for whom each candidate is the best."""
        return self.response.estimate(tally, n)

    def outputs(self) -> base.Reports:
        """Return every index."""
        return np.arange(self.size)

    def worst_pairs(
        self, neighbours: Neighbours = Neighbours.USER
    ) -> Sequence[tuple[object, object]]:
        """Return rows with different best candidates; by symmetry one pair is enough."""
        first, second = np.full(self.size, self.low), np.full(self.size, self.low)
        first[0], second[-1] = self.high, self.high
        return [(first, second)]
