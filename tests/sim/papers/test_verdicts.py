"""Verdicts: a printed run against where one more run would fall, orders against paired gaps."""

import math

import numpy as np
import pytest

from noisefloor.randomness import SeededSource
from noisefloor_sim.papers.supml_runs import SupmlSetting
from noisefloor_sim.papers.verdicts import (
    DEPENDS,
    NOT,
    REPRODUCED,
    UNDECIDED,
    AccuracyReading,
    CrossingReading,
    Fit,
    GapReading,
    JudgedFigure,
    MeanReading,
    PrintedFigure,
    ReadingResult,
    all_come_out,
    crossing,
    interval,
    judge,
    sentence,
)

ONE, OTHER = SupmlSetting("wdbc", epsilon=1.0), SupmlSetting("wdbc", epsilon=2.0)
RUNS = {ONE: [80.0, 82.0, 84.0, 86.0], OTHER: [70.0, 71.0, 75.0, 74.0]}


def item(
    value: float,
    *readings: AccuracyReading | MeanReading | GapReading | CrossingReading,
    **rest: bool,
) -> PrintedFigure:
    return PrintedFigure("key", "wdbc", "what", "printed", value, readings, **rest)


def test_the_interval_of_one_more_run_is_wider_than_that_of_the_mean() -> None:
    mean, of_mean, of_one = interval(RUNS[ONE])
    assert mean == 83
    assert of_mean == pytest.approx(3.182 * 2.582 / 2, rel=1e-3)
    assert of_one == pytest.approx(of_mean * math.sqrt(5), rel=1e-9)
    assert interval([5.0]) == (5.0, math.inf, math.inf)


def test_a_printed_number_is_taken_for_one_run() -> None:
    assert judge(item(90.0, AccuracyReading("a", ONE)), RUNS).verdict == REPRODUCED
    assert judge(item(95.0, AccuracyReading("a", ONE)), RUNS).verdict == NOT
    mixed = judge(item(88.0, AccuracyReading("a", ONE), AccuracyReading("b", OTHER)), RUNS)
    assert mixed.verdict == DEPENDS
    assert mixed.reading == "a"


def test_an_order_needs_a_gap_whose_interval_is_above_zero() -> None:
    def verdict(value: float, gaps: list[float], **rest: bool) -> str:
        runs = {ONE: gaps, OTHER: [0.0] * len(gaps)}
        return judge(item(value, GapReading("g", ONE, OTHER), **rest), runs).verdict

    above, below, either = [4.0, 5.0, 6.0], [-4.0, -5.0, -6.0], [-5.0, 0.0, 5.0]
    for rest in ({}, {"or_equal": True}):
        assert [verdict(0.0, gaps, **rest) for gaps in (above, below, either)] == [
            REPRODUCED, NOT, UNDECIDED,
        ]  # fmt: skip
    at_most = [verdict(0.0, gaps, at_most=True) for gaps in (above, below, either)]
    assert at_most == [NOT, REPRODUCED, UNDECIDED]
    equal = [0.0, 0.0, 0.0]
    assert verdict(0.0, equal) == NOT
    assert verdict(0.0, equal, or_equal=True) == verdict(0.0, equal, at_most=True) == REPRODUCED


def test_an_interval_that_excludes_nothing_decides_nothing() -> None:
    wide = {ONE: [0.0, 100.0], OTHER: [50.0]}
    for value in (0.0, 50.0, 100.0):
        assert judge(item(value, AccuracyReading("n", ONE)), wide).verdict == UNDECIDED
        assert judge(item(value, AccuracyReading("n", OTHER)), wide).verdict == UNDECIDED
        assert judge(item(value, MeanReading("m", OTHER, 0.5)), wide).verdict == UNDECIDED
    assert judge(item(0.0, GapReading("g", OTHER, OTHER)), wide).verdict == UNDECIDED
    once = {ONE: [-1.0], OTHER: [1.0]}
    crossed = CrossingReading("c", (OTHER, ONE), (ONE, OTHER))
    assert judge(item(1.5, crossed), once).verdict == UNDECIDED


def judged(*fits: Fit) -> JudgedFigure:
    found = (ReadingResult(fit.value, 0.0, 0.0, 0.0, 0.0, 0.0, fit, 2) for fit in fits)
    return JudgedFigure(item(0.0), tuple(found))


def test_a_verdict_is_that_of_its_readings_together() -> None:
    yes, no, open_ = Fit.YES, Fit.NO, Fit.UNDECIDED
    expected = {
        (yes,): REPRODUCED,
        (yes, yes): REPRODUCED,
        (no, no): NOT,
        (yes, no): DEPENDS,
        (yes, no, open_): DEPENDS,
        (yes, open_): UNDECIDED,
        (no, open_): UNDECIDED,
        (open_,): UNDECIDED,
    }
    assert {fits: judged(*fits).verdict for fits in expected} == expected
    assert judged(yes, no, open_).reading == "yes"


def test_the_sentence_and_the_answer_follow_from_the_verdicts() -> None:
    yes, no, open_ = judged(Fit.YES), judged(Fit.NO), judged(Fit.UNDECIDED)
    assert sentence([yes, yes, no, open_]) == (
        "Of 4 printed figures 2 are reproduced, 0 depend on the reading, 1 are not reproduced, "
        "1 are undecided."
    )
    assert all_come_out([yes, yes]) is True
    assert all_come_out([yes, open_]) is None
    assert all_come_out([yes, open_, no]) is False
    assert all_come_out([yes, judged(Fit.YES, Fit.NO)]) is False


def test_runs_are_paired_before_their_gap_is_judged() -> None:
    assert judge(item(0.0, GapReading("g", ONE, OTHER)), RUNS).verdict == REPRODUCED
    assert judge(item(0.0, GapReading("g", OTHER, ONE)), RUNS).verdict == NOT
    for value, verdict in ((3.0, NOT), (11.0, UNDECIDED), (13.0, REPRODUCED)):
        assert (
            judge(item(value, GapReading("g", ONE, OTHER), at_most=True), RUNS).verdict == verdict
        )


def test_a_crossing_lies_where_the_gap_turns_positive_for_good() -> None:
    epsilons = np.array([10.0, 20.0, 30.0])
    assert crossing(epsilons, np.array([-1.0, 1.0, 2.0])) == 15
    assert crossing(epsilons, np.array([1.0, -1.0, 3.0])) == 22.5
    assert crossing(epsilons, np.array([1.0, 1.0, 1.0])) == 0
    assert math.isinf(crossing(epsilons, np.array([1.0, 1.0, -1.0])))


def test_a_printed_crossing_is_set_against_seeds_drawn_again() -> None:
    early = tuple(SupmlSetting("wdbc", k=1, epsilon=e) for e in (10.0, 20.0))
    late = tuple(SupmlSetting("wdbc", k=2, epsilon=e) for e in (10.0, 20.0))
    runs = {one: [50.0, 50.0, 50.0] for one in early}
    runs |= {late[0]: [49.0, 48.0, 47.0], late[1]: [53.0, 52.0, 51.0]}
    found = judge(item(15.0, CrossingReading("c", early, late)), runs)
    assert found.found[0].value == 15
    assert found.found[0].low < 15 < found.found[0].high
    assert found.verdict == REPRODUCED
    assert judge(item(30.0, CrossingReading("c", early, late)), runs).verdict == NOT
    single = judge(item(14.0, CrossingReading("c", early, late, averaged=1)), runs).found[0]
    assert (single.low, single.high) == (12.5, 17.5)
    assert single.value == 15


def test_the_interval_of_a_crossing_leaves_out_25_of_1000_resamples_at_each_end() -> None:
    # One run at a time, each of which crosses at an epsilon of its own.
    shares = (np.arange(200) + 0.5) / 200
    early = tuple(SupmlSetting("wdbc", k=1, epsilon=e) for e in (10.0, 20.0))
    late = tuple(SupmlSetting("wdbc", k=2, epsilon=e) for e in (10.0, 20.0))
    runs = {one: [50.0] * 200 for one in early}
    runs |= {late[0]: (50 - shares).tolist(), late[1]: (51 - shares).tolist()}
    found = judge(item(15.0, CrossingReading("c", early, late, averaged=1)), runs).found[0]
    drawn = SeededSource(1, "crossing", "key", "c").generator().integers(200, size=(1000, 1))
    again = np.sort(10 + 10 * shares[drawn[:, 0]])
    assert (found.low, found.high) == pytest.approx((again[25], again[974]), abs=1e-9)
