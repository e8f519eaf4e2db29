"""Verdicts: does a printed claim hold, does it fail, or do the seeds not suffice to say?

A claim is a conjunction of tests. Each test has a quantity that is estimated from independent
runs, and the range in which the quantity has to lie for the claim to hold:

- an order, a bound or an equality is about the mean of paired differences (``GapTest``);
- a printed mean is about our mean (``MeanTest``);
- a printed number of a single run is about its distance from our mean, in standard deviations of
  one run (``RunTest``);
- a quantity that follows from printed numbers, sizes or an accountant is computed and not
  estimated (``ComputedTest``): its ends are bounds, and it takes no share of the error.

A test passes if the confidence interval of its quantity lies inside the range, fails if it lies
outside, and is undecided otherwise. A claim is reproduced if all of its tests pass, is not
reproduced as soon as one fails, and is undecided otherwise.

The error of each interval is ``FALSE_DECISION`` divided by the number of all tests of a
reproduction (Bonferroni). So all intervals contain their quantities at once, and no claim is
decided wrongly, except with that probability, however many runs there are. Two reproductions
with different numbers of runs therefore say *reproduced* and *not reproduced* of one claim with
twice that probability at most. The intervals assume that quantities are normally distributed over
runs; with few runs they are wide, and most claims are undecided.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

import numpy as np

from noisefloor.errors import BadParameter
from noisefloor_sim.papers.intervals import Runs, Setting, deviation_of, distance, gaps, interval

FALSE_DECISION = 1e-3
"""The probability that any claim of a reproduction is decided wrongly, at most."""

RUN_DEVIATIONS = 2.0
"""A printed number of one run agrees with ours if it is at most this many deviations away."""


class ReproductionVerdict(StrEnum):
    """What is said of a claim, and of each of its tests."""

    NOT = "not reproduced"
    UNDECIDED = "undecided"
    REPRODUCED = "reproduced"


NOT, UNDECIDED, REPRODUCED = ReproductionVerdict


@dataclass(frozen=True, slots=True)
class GapTest:
    """The first setting is above the second by ``least`` to ``most``, on average over runs."""

    name: str
    first: Setting
    second: Setting
    least: float = 0.0
    most: float = math.inf

    def settings(self) -> tuple[Setting, ...]:
        """Return what has to be run."""
        return self.first, self.second


@dataclass(frozen=True, slots=True)
class MeanTest:
    """The mean of a setting is between ``least`` and ``most``."""

    name: str
    setting: Setting
    least: float
    most: float = math.inf

    def settings(self) -> tuple[Setting, ...]:
        """Return what has to be run."""
        return (self.setting,)


@dataclass(frozen=True, slots=True)
class RunTest:
    """The printed number could be one more run of a setting."""

    name: str
    setting: Setting
    printed: float

    def settings(self) -> tuple[Setting, ...]:
        """Return what has to be run."""
        return (self.setting,)


@dataclass(frozen=True, slots=True)
class ComputedTest:
    """A quantity that nothing has to be run for is between ``least`` and ``most``.

    Attributes:
        name: Of the test.
        value: The quantity.
        low: It is at least this, where only bounds are known;
        high: and at most this.
        least: The claim needs at least this,
        most: and at most this.
    """

    name: str
    value: float
    low: float
    high: float
    least: float = -math.inf
    most: float = math.inf

    def settings(self) -> tuple[Setting, ...]:
        """Return what has to be run: nothing."""
        return ()


Test: TypeAlias = GapTest | MeanTest | RunTest | ComputedTest


def exactly(name: str, value: float, least: float = -math.inf, most: float = math.inf) -> Test:
    """Return the test of a quantity that is known."""
    return ComputedTest(name, value, value, value, least, most)


@dataclass(frozen=True, slots=True)
class PrintedClaim:
    """One claim of a paper.

    Attributes:
        key: Short name.
        data: Which data set.
        what: In words.
        printed: As in the paper.
        tests: At least one; the claim holds if all of them do.
        is_noisy: Whether it takes more runs than most to decide it.
    """

    key: str
    data: str
    what: str
    printed: str
    tests: tuple[Test, ...]
    is_noisy: bool = False

    def __post_init__(self) -> None:
        if not self.tests:
            raise BadParameter("tests", self.tests, f"at least one for {self.key}")

    def settings(self) -> list[Setting]:
        """Return all that has to be run."""
        return [setting for test in self.tests for setting in test.settings()]


@dataclass(frozen=True, slots=True)
class TestResult:
    """What one test gave.

    Attributes:
        name: Of the test.
        value: The estimate of its quantity.
        low: Lower end of the interval that decides.
        high: Upper end.
        least: The quantity has to be at least this,
        most: and at most this.
        mean: Of the runs, or of their paired differences.
        deviation: Standard deviation of one run, or of one paired difference.
        runs: How many.
        unit: Of the quantity, where it is not that of the runs.
    """

    __test__ = False  # not for pytest

    name: str
    value: float
    low: float
    high: float
    least: float
    most: float
    mean: float
    deviation: float
    runs: int
    unit: str = ""

    @property
    def verdict(self) -> ReproductionVerdict:
        """Whether the interval lies inside the range, outside, or on its border."""
        if self.low >= self.least and self.high <= self.most:
            return REPRODUCED
        return NOT if self.low > self.most or self.high < self.least else UNDECIDED

    @property
    def clearance(self) -> float:
        """How far inside the range the estimate lies, in half widths of its interval."""
        half = (self.high - self.low) / 2
        inside = min(self.value - self.least, self.most - self.value)
        return inside / half if half else inside


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """A claim with what its tests gave."""

    claim: PrintedClaim
    results: tuple[TestResult, ...]

    @property
    def verdict(self) -> ReproductionVerdict:
        """Not reproduced if a test fails, reproduced if all pass, undecided otherwise."""
        found = {one.verdict for one in self.results}
        if NOT in found:
            return NOT
        return UNDECIDED if UNDECIDED in found else REPRODUCED

    @property
    def deciding(self) -> TestResult:
        """The test that the verdict hangs on: the one that fails, or that is closest to it."""
        order = list(ReproductionVerdict)
        return min(self.results, key=lambda one: (order.index(one.verdict), one.clearance))


@dataclass(frozen=True, slots=True)
class Judge:
    """Decides claims at one error for each interval.

    Attributes:
        tests: How many tests the reproduction has in all.
        steps: For each data set the smallest difference of two runs: one record of it. Runs that
            are all alike are taken to vary by as much.
        overlap: Of folds, that share records to train on: test records over training records,
            which widens intervals of means (Nadeau and Bengio 2003, section 5). 0 for runs that
            are independent.
        largest: What a run can reach at most, 0 being the least: no interval goes beyond.
    """

    tests: int
    steps: Mapping[str, float] = field(default_factory=dict)
    overlap: float = 0.0
    largest: float = math.inf

    @property
    def error(self) -> float:
        """The probability that an interval does not contain its quantity."""
        return FALSE_DECISION / self.tests

    def judge(self, claim: PrintedClaim, runs: Runs) -> JudgedClaim:
        """Return what the runs say of a claim."""
        step = self.steps.get(claim.data, 0.0)
        return JudgedClaim(claim, tuple(self._result(test, runs, step) for test in claim.tests))

    def judge_variants(self, variants: "Variants", runs: Runs) -> "Judged":
        """Return what the runs say of all claims of all variants."""
        return {
            name: [self.judge(claim, runs) for claim in claims]
            for name, claims in variants.items()
        }

    def _result(self, test: Test, runs: Runs, step: float) -> TestResult:
        if isinstance(test, ComputedTest):
            known = (test.value, test.low, test.high)
            return TestResult(test.name, *known, test.least, test.most, test.value, 0.0, 0)
        if isinstance(test, GapTest):
            values: Sequence[float] = gaps(test.first, test.second, runs)
        else:
            values = runs[test.setting]
        mean, deviation = float(np.mean(values)), deviation_of(values, step)
        if isinstance(test, RunTest):
            ends = distance(test.printed, values, self.error, step)
            bounds, unit = (-RUN_DEVIATIONS, RUN_DEVIATIONS), "SD"
        else:
            found, low, high = interval(values, self.error, step, self.overlap)
            least = -self.largest if isinstance(test, GapTest) else 0.0
            ends = found, max(low, least), min(high, self.largest)
            bounds, unit = (test.least, test.most), ""
        return TestResult(test.name, *ends, *bounds, mean, deviation, len(values), unit)


Variants: TypeAlias = Mapping[str, Sequence[PrintedClaim]]
"""Lists of claims by what they are judged of: the algorithms as printed first."""

Judged: TypeAlias = Mapping[str, Sequence[JudgedClaim]]
"""The same lists, judged."""


def tests_in(variants: Variants) -> int:
    """Return how many tests all claims of all variants have, computed ones left out."""
    tests = [one for some in variants.values() for claim in some for one in claim.tests]
    return sum(not isinstance(one, ComputedTest) for one in tests)


def sentence(judged: Judged) -> str:
    """Say how many claims are reproduced, variant by variant."""
    return " ".join(_counted(name, claims) for name, claims in judged.items() if claims)


def _counted(variant: str, judged: Sequence[JudgedClaim]) -> str:
    counts = Counter(one.verdict for one in judged)
    return (
        f"{variant}: of {len(judged)} claims {counts[REPRODUCED]} are reproduced, "
        f"{counts[NOT]} are not reproduced, {counts[UNDECIDED]} are undecided."
    )


def all_hold(judged: Sequence[JudgedClaim]) -> bool | None:
    """Whether every claim is reproduced; None if none fails and some are undecided."""
    found = {one.verdict for one in judged}
    if NOT in found:
        return False
    return None if UNDECIDED in found else True


def number(value: float, digits: int = 2) -> str:
    """Write a number with some digits."""
    return f"{value:.{digits}f}"


def measured(result: TestResult, digits: int = 2) -> str:
    """Write the estimate of a quantity; for a distance also the runs that it is measured in."""
    value = f"{number(result.value, digits)} {result.unit}".rstrip()
    if not result.unit:
        return value
    spread = (
        f"{number(result.mean, digits)} \N{PLUS-MINUS SIGN} {number(result.deviation, digits)}"
    )
    return f"{value} (runs {spread})"


def ends(low: float, high: float, digits: int = 2) -> str:
    """Write an interval, or that it holds every number."""
    if low == -math.inf and high == math.inf:
        return "any number"
    return f"{number(low, digits)} to {number(high, digits)}"


def requirement(result: TestResult, digits: int = 2) -> str:
    """Write in which range a quantity has to lie."""

    def write(value: float) -> str:
        return f"{value:.{digits}f}".rstrip("0").rstrip(".")

    if math.isinf(result.most):
        return "above 0" if result.least == 0 else f"at least {write(result.least)}"
    if math.isinf(result.least):
        return f"at most {write(result.most)}"
    return f"{write(result.least)} to {write(result.most)}"
