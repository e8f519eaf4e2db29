"""Verdicts: intervals that decide or leave open, and how rarely they decide wrongly."""

import math

import numpy as np
import pytest
from scipy.stats import nct

from noisefloor.errors import BadParameter
from noisefloor.randomness import SeededSource
from noisefloor_sim.papers import verdicts
from noisefloor_sim.papers.intervals import Runs, distance, interval
from noisefloor_sim.papers.supml.runs import SupmlSetting
from noisefloor_sim.papers.verdicts import (
    NOT,
    REPRODUCED,
    UNDECIDED,
    GapTest,
    Judge,
    JudgedClaim,
    MeanTest,
    PrintedClaim,
    ReproductionVerdict,
    RunTest,
    Test,
    TestResult,
    all_hold,
    sentence,
)

ONE, OTHER = SupmlSetting("wdbc", epsilon=1.0), SupmlSetting("wdbc", epsilon=2.0)
RUNS = {ONE: [80.0, 82.0, 84.0, 86.0], OTHER: [70.0, 71.0, 75.0, 74.0]}
ALONE = Judge(1)


def claim(*tests: Test) -> PrintedClaim:
    return PrintedClaim("key", "wdbc", "what", "printed", tests)


@pytest.fixture
def lenient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decide at 5 %, so that few runs decide."""
    monkeypatch.setattr(verdicts, "FALSE_DECISION", 0.05)


def verdict(test: Test, runs: Runs = RUNS) -> ReproductionVerdict:
    return ALONE.judge(claim(test), runs).verdict


def test_the_interval_is_students_and_widens_with_overlap_and_fewer_errors() -> None:
    mean, low, high = interval(RUNS[ONE])
    assert mean == 83
    assert high - mean == mean - low == pytest.approx(3.182 * 2.582 / 2, rel=1e-3)
    _, _, folds = interval(RUNS[ONE], overlap=1 / 9)
    assert folds - mean == pytest.approx((high - mean) * math.sqrt(1 + 4 / 9))
    assert interval(RUNS[ONE], 1e-5)[2] > 5 * (high - mean) + mean
    assert interval([5.0]) == (5.0, -math.inf, math.inf)


def test_runs_that_are_all_alike_vary_by_a_step() -> None:
    assert interval([5.0, 5.0, 5.0, 5.0]) == (5, 5, 5)
    _, low, high = interval([5.0, 5.0, 5.0, 5.0], step=0.2)
    assert high - 5 == 5 - low == pytest.approx(3.182 * 0.1, rel=1e-3)


@pytest.mark.parametrize("degrees", [1, 3, 15, 23, 95])
def test_the_interval_of_a_distance_inverts_the_noncentral_t(degrees: int) -> None:
    count = degrees + 1
    shape = np.linspace(-1, 1, count)
    shape /= np.std(shape, ddof=1)
    for far in (0.0, 0.7, 4.0):
        found, low, high = distance(far, shape.tolist(), 1e-4)
        root, statistic = math.sqrt(count), math.sqrt(count) * far
        assert found == pytest.approx(far)
        assert nct.sf(statistic, degrees, root * low) == pytest.approx(5e-5, rel=0.01)
        assert nct.cdf(statistic, degrees, root * high) == pytest.approx(5e-5, rel=0.01)
    assert distance(1.0, [5.0], 0.05)[1:] == (-math.inf, math.inf)
    assert distance(1.0, [5.0, 5.0], 0.05)[1:] == (-math.inf, math.inf)


def test_an_order_a_bound_and_an_equality_are_ranges_of_a_gap(lenient: None) -> None:
    def said(gaps: list[float], least: float, most: float) -> ReproductionVerdict:
        runs = {ONE: gaps, OTHER: [0.0] * len(gaps)}
        return verdict(GapTest("g", ONE, OTHER, least, most), runs)

    above, below, either = [4.0, 5.0, 6.0], [-4.0, -5.0, -6.0], [-5.0, 0.0, 5.0]
    order, bound, equality = (0.0, math.inf), (-math.inf, 0.0), (-9.0, 9.0)
    assert [said(one, *order) for one in (above, below, either)] == [REPRODUCED, NOT, UNDECIDED]
    assert [said(one, *bound) for one in (above, below, either)] == [NOT, REPRODUCED, UNDECIDED]
    near, far = [0.1, 0.0, -0.1], [19.0, 20.0, 21.0]
    assert [said(one, *equality) for one in (near, far, either)] == [REPRODUCED, NOT, UNDECIDED]


def test_runs_are_paired_before_their_gap_is_judged(lenient: None) -> None:
    assert verdict(GapTest("g", ONE, OTHER)) == REPRODUCED
    assert verdict(GapTest("g", OTHER, ONE)) == NOT
    longer = RUNS | {ONE: [*RUNS[ONE], 0.0]}  # a run that the other does not have
    assert verdict(GapTest("g", ONE, OTHER), longer) == REPRODUCED


def test_a_mean_has_to_lie_in_its_range(lenient: None) -> None:
    ranges = ((70.0, 90.0), (90.0, 95.0), (83.0, 84.0))
    said = [verdict(MeanTest("m", ONE, *one)) for one in ranges]
    assert said == [REPRODUCED, NOT, UNDECIDED]


def test_a_printed_run_may_be_two_deviations_away(lenient: None) -> None:
    runs = {ONE: (83 + np.resize([-1.0, 1.0], 40)).tolist()}
    said = [verdict(RunTest("r", ONE, one), runs) for one in (84.0, 90.0, 85.0)]
    assert said == [REPRODUCED, NOT, UNDECIDED]
    assert verdict(RunTest("r", ONE, 83.0)) == REPRODUCED
    assert verdict(RunTest("r", ONE, 83.0), {ONE: [83.0]}) == UNDECIDED


def test_a_few_runs_leave_open_what_many_decide() -> None:
    judge, test = Judge(200), GapTest("g", ONE, OTHER)
    gaps = np.resize([9.0, 10.0, 11.0, 10.0], 16).tolist()
    few, many = ({ONE: gaps[:n], OTHER: [0.0] * n} for n in (4, 16))
    assert judge.judge(claim(test), few).verdict == UNDECIDED
    assert judge.judge(claim(test), many).verdict == REPRODUCED
    assert judge.judge(claim(GapTest("g", OTHER, ONE)), many).verdict == NOT


def judged(*said: ReproductionVerdict) -> JudgedClaim:
    ends = {REPRODUCED: (1.0, 2.0), NOT: (-2.0, -1.0), UNDECIDED: (-1.0, 2.0)}
    results = (
        TestResult(one.value, sum(ends[one]) / 2, *ends[one], 0.0, math.inf, 0.0, 1.0, 4)
        for one in said
    )
    return JudgedClaim(claim(GapTest("g", ONE, OTHER)), tuple(results))


def test_a_claim_is_refuted_by_one_test_and_reproduced_by_all_of_them() -> None:
    expected = {
        (REPRODUCED,): REPRODUCED,
        (REPRODUCED, REPRODUCED): REPRODUCED,
        (REPRODUCED, UNDECIDED): UNDECIDED,
        (REPRODUCED, UNDECIDED, NOT): NOT,
        (NOT, NOT): NOT,
    }
    for said, verdict_ in expected.items():
        one = judged(*said)
        assert one.verdict == verdict_
        assert one.deciding.verdict == verdict_


def test_a_claim_without_a_test_is_refused() -> None:
    with pytest.raises(BadParameter, match="at least one for key"):
        claim()


def test_the_sentence_and_the_answer_follow_from_the_verdicts() -> None:
    yes, no, open_ = judged(REPRODUCED), judged(NOT), judged(UNDECIDED)
    assert sentence({"As printed": [yes, yes, no, open_], "Corrected": [yes], "None": []}) == (
        "As printed: of 4 claims 2 are reproduced, 1 are not reproduced, 1 are undecided. "
        "Corrected: of 1 claims 1 are reproduced, 0 are not reproduced, 0 are undecided."
    )
    assert all_hold([yes, yes]) is True
    assert all_hold([yes, open_]) is None
    assert all_hold([yes, open_, no]) is False


def test_no_interval_goes_beyond_what_can_be_reached() -> None:
    judge = Judge(10**6, largest=100)
    tests = (GapTest("g", ONE, OTHER), MeanTest("m", ONE, 80.0))
    gap, mean = judge.judge(claim(*tests), RUNS).results
    assert (gap.low, gap.high, mean.low, mean.high) == (-100, 100, 0, 100)


def test_what_is_shown_is_what_decides() -> None:
    found = ALONE.judge(claim(GapTest("g", ONE, OTHER)), RUNS).results[0]
    assert (found.value, found.low, found.high) == interval([10.0, 11.0, 9.0, 12.0], 1e-3)
    assert verdicts.ends(found.low, found.high) == "2.16 to 18.84"
    assert verdicts.requirement(found) == "above 0"
    run = ALONE.judge(claim(RunTest("r", ONE, 84.0)), RUNS).results[0]
    assert verdicts.measured(run) == "0.39 SD (runs 83.00 ± 2.58)"
    assert verdicts.requirement(run) == "-2 to 2"
    assert verdicts.ends(-math.inf, math.inf) == "any number"


WORLDS, TESTS, FALSE_ALARM = 5_000, 10, 1e-6


def false_decisions(runs: int, error: float) -> int:
    """Return how many of many reproductions call a true order false, or a false one true.

    Ten gaps of true mean 1e-9, so that "above 0" holds and "below 0" does not: whatever is decided
    against that is false.
    """
    draws = SeededSource(1, "false decisions", runs).generator()
    values = 1e-9 + draws.standard_normal((WORLDS, TESTS, runs))
    mean, deviation = values.mean(axis=2), values.std(axis=2, ddof=1)
    # The factor that turns a deviation into a half width, from the interval under test.
    base = [0.0] * (runs - 1) + [1.0]
    centre, _, high = interval(base, error)
    half = deviation * (high - centre) / float(np.std(base, ddof=1))
    return int(np.count_nonzero((mean + half < 0).any(axis=1) | (mean - half > 0).any(axis=1)))


@pytest.mark.statistical
@pytest.mark.parametrize("runs", [4, 16])
def test_any_false_decision_is_as_rare_as_stated(runs: int) -> None:
    """5,000 reproductions of 10 tests at 1e-2 in all; false alarm 1e-6, by the binomial."""
    from scipy.stats import binom

    wrong = false_decisions(runs, 1e-2 / TESTS)
    assert wrong <= binom.isf(FALSE_ALARM, WORLDS, 1e-2)
    uncorrected = false_decisions(runs, 1e-2)  # no division by the number of tests: found
    assert uncorrected > binom.isf(FALSE_ALARM, WORLDS, 1e-2)


def test_a_computed_quantity_needs_no_runs_and_takes_no_share_of_the_error() -> None:
    inside, outside = (verdicts.exactly("sum", value, 1.0, 2.0) for value in (1.5, 2.5))
    bounds = verdicts.ComputedTest("epsilon", 1.5, 1.5, 9.0, most=2.0)
    assert [verdict(one, {}) for one in (inside, outside, bounds)] == [REPRODUCED, NOT, UNDECIDED]
    both = claim(inside, outside)
    assert ALONE.judge(both, {}).deciding.value == 2.5
    assert both.settings() == []
    gap = GapTest("gap", ONE, OTHER)
    assert verdicts.tests_in({"any": [claim(inside, gap), both]}) == 1
