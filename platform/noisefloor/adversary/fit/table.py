"""Exact tests of counts against declared probabilities, all of them together at one level.

A test is an event with a declared probability that was tried a number of times: a bit that is one
where the input is zero, two bits that are one together. Trials of one cell are independent, so its
count is binomial, exactly. Cells are integers that add up over cohorts, days and shards, and the
tests are made once, at the end: all share the level by Bonferroni's rule, which needs no
independence between tests.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from noisefloor.checks import Floats
from noisefloor.errors import BadParameter

LEVEL = 1e-10
"""The probability that an honest flow is called a misfit at one point of a sweep.

With up to ten flows at a point and a thousand points it is at most 1e-6 for a whole run.
"""

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class FitResult:
    """What all tests of a flow say together.

    Attributes:
        tests: How many there were: cells that were tried at least once.
        p_value: The smallest p-value times the number of tests, at most 1.
        worst: The test with that p-value in words, with its figures.
        rejects: Whether the level is passed: the reports do not follow their distribution.
        finds_planted: Whether the tests would reject the planted fault, where one is declared.
    """

    tests: int
    p_value: float
    worst: str
    rejects: bool
    finds_planted: bool

    @property
    def misfit(self) -> str:
        """The rejected test in words; empty if none was rejected."""
        return self.worst if self.rejects else ""


@dataclass(slots=True)
class _Cells:
    """Cells of one name: counts so far and what is declared of them."""

    hits: Counts
    trials: Counts
    declared: Floats
    planted: Floats | None
    given: ArrayLike


@dataclass(slots=True)
class FitTable:
    """Counts of many cells by name, and the tests of them.

    Attributes:
        cells: By the name of the tests.
    """

    cells: dict[str, _Cells] = field(default_factory=dict)

    def add(
        self,
        name: str,
        hits: ArrayLike,
        trials: ArrayLike,
        declared: ArrayLike,
        planted: ArrayLike | None = None,
    ) -> None:
        """Add counts to the cells of a name.

        Args:
            name: What happened, in words: it stands in the sentence of a rejected test.
            hits: How often it did, one count a cell.
            trials: How often it was tried, independently.
            declared: Its probability, the same at each call.
            planted: Its probability under the planted fault, where it differs.
        """
        found = self.cells.get(name)
        if found is None:
            tried = np.atleast_1d(np.asarray(trials, dtype=np.int64))
            chance = _spread(declared, tried)
            fault = None if planted is None else _spread(planted, tried)
            zeros = np.zeros_like(tried)
            found = self.cells[name] = _Cells(zeros, zeros.copy(), chance, fault, declared)
        elif found.given is not declared and not np.array_equal(found.given, declared):
            raise BadParameter("declared", name, "the same at each call")
        found.hits += hits
        found.trials += trials

    def merge(self, other: "FitTable") -> None:
        """Add the counts of another table, such as that of another shard."""
        for name, one in other.cells.items():
            self.add(name, one.hits, one.trials, one.given, one.planted)

    def result(self, level: float = LEVEL) -> FitResult:
        """Make all tests."""
        tests = sum(int(np.count_nonzero(one.trials)) for one in self.cells.values())
        if not tests:
            return FitResult(0, 1.0, "", rejects=False, finds_planted=False)
        found = []
        for name, one in sorted(self.cells.items()):
            p_values, away = two_sided(one.hits, one.trials, one.declared), _deviations(one)
            place = int(np.lexsort((-away, p_values))[0])
            found.append((float(p_values[place]), -float(away[place]), name, place))
        worst, _, name, place = min(found)
        figures = _sentence(name, self.cells[name], place)
        p_value = min(1.0, worst * tests)
        finds = self._finds_planted(level / tests)
        return FitResult(tests, p_value, figures, rejects=p_value < level, finds_planted=finds)

    def _finds_planted(self, threshold: float) -> bool:
        """Whether the counts that the planted fault is expected to give would be rejected."""
        for one in self.cells.values():
            if one.planted is not None and one.trials.any():
                expected = np.rint(one.trials * one.planted).astype(np.int64)
                if two_sided(expected, one.trials, one.declared).min() < threshold:
                    return True
        return False


def _deviations(cells: _Cells) -> Floats:
    """Return how many standard deviations counts are away: p-values of zero are all alike."""
    expected = cells.trials * cells.declared
    spread = np.sqrt(np.maximum(expected * (1 - cells.declared), 1e-12))
    return np.asarray(np.abs(cells.hits - expected) / spread)


def two_sided(hits: Counts, trials: Counts, declared: Floats) -> Floats:
    """Return exact binomial p-values: twice the smaller tail, at most 1; 1 without a trial."""
    from scipy.special import betainc, betaincc  # lazy: scipy is slow to import

    k, n, p = (np.asarray(one, dtype=np.float64) for one in (hits, trials, declared))
    # Of k = 0 and k = n one tail is certain, and the functions are not defined there.
    above = np.where(k > 0, betainc(np.maximum(k, 1), n - np.maximum(k, 1) + 1, p), 1.0)
    below = np.where(k < n, betaincc(k + 1, np.maximum(n - k, 1), p), 1.0)
    found = np.minimum(1.0, 2 * np.minimum(above, below))
    return np.asarray(np.where(n > 0, found, 1.0))


def _spread(chances: ArrayLike, like: Counts) -> Floats:
    return np.array(np.broadcast_to(np.asarray(chances, dtype=np.float64), like.shape))


def _sentence(name: str, cells: _Cells, place: int) -> str:
    hits, trials = int(cells.hits[place]), int(cells.trials[place])
    share = hits / trials if trials else 0.0
    cell = f", cell {place}" if cells.trials.size > 1 else ""
    declared = float(cells.declared[place])
    return f"{name}{cell}: a share of {share:.4g} of {trials:,}, where {declared:.4g} is declared"
