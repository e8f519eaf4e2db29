"""Verdicts: a printed run against where one more run would fall, orders against paired gaps."""

import math

import numpy as np
import pytest

from noisefloor_sim.reproduce.settings import Setting
from noisefloor_sim.reproduce.verdicts import (
    DEPENDS,
    NOT,
    REPRODUCED,
    Crossing,
    Gap,
    Item,
    Number,
    crossing,
    interval,
    judge,
)

ONE, OTHER = Setting("wdbc", epsilon=1.0), Setting("wdbc", epsilon=2.0)
RUNS = {ONE: [80.0, 82.0, 84.0, 86.0], OTHER: [70.0, 71.0, 75.0, 74.0]}


def item(value: float, *readings: Number | Gap | Crossing, **rest: bool) -> Item:
    return Item("key", "wdbc", "what", "printed", value, readings, **rest)


def test_the_interval_of_one_more_run_is_wider_than_that_of_the_mean() -> None:
    mean, of_mean, of_one = interval(RUNS[ONE])
    assert mean == 83
    assert of_mean == pytest.approx(3.182 * 2.582 / 2, rel=1e-3)
    assert of_one == pytest.approx(of_mean * math.sqrt(5), rel=1e-9)
    assert interval([5.0]) == (5.0, math.inf, math.inf)


def test_a_printed_number_is_taken_for_one_run() -> None:
    assert judge(item(90.0, Number("a", ONE)), RUNS).verdict == REPRODUCED
    assert judge(item(95.0, Number("a", ONE)), RUNS).verdict == NOT
    mixed = judge(item(88.0, Number("a", ONE), Number("b", OTHER)), RUNS)
    assert mixed.verdict == DEPENDS
    assert mixed.reading == "a"


def test_an_order_needs_a_gap_whose_interval_is_above_zero() -> None:
    assert judge(item(0.0, Gap("g", ONE, OTHER)), RUNS).verdict == REPRODUCED
    assert judge(item(0.0, Gap("g", OTHER, ONE)), RUNS).verdict == NOT
    assert judge(item(0.0, Gap("g", ONE, ONE)), RUNS).verdict == NOT
    assert judge(item(0.0, Gap("g", ONE, ONE), or_equal=True), RUNS).verdict == REPRODUCED
    assert judge(item(3.0, Gap("g", ONE, OTHER), at_most=True), RUNS).verdict == NOT
    assert judge(item(11.0, Gap("g", ONE, OTHER), at_most=True), RUNS).verdict == REPRODUCED


def test_a_crossing_lies_where_the_gap_turns_positive_for_good() -> None:
    epsilons = np.array([10.0, 20.0, 30.0])
    assert crossing(epsilons, np.array([-1.0, 1.0, 2.0])) == 15
    assert crossing(epsilons, np.array([1.0, -1.0, 3.0])) == 22.5
    assert crossing(epsilons, np.array([1.0, 1.0, 1.0])) == 0
    assert math.isinf(crossing(epsilons, np.array([1.0, 1.0, -1.0])))


def test_a_printed_crossing_is_set_against_seeds_drawn_again() -> None:
    early = tuple(Setting("wdbc", k=1, epsilon=e) for e in (10.0, 20.0))
    late = tuple(Setting("wdbc", k=2, epsilon=e) for e in (10.0, 20.0))
    runs = {one: [50.0, 50.0, 50.0] for one in early}
    runs |= {late[0]: [49.0, 48.0, 47.0], late[1]: [53.0, 52.0, 51.0]}
    found = judge(item(15.0, Crossing("c", early, late)), runs)
    assert found.found[0].value == 15
    assert found.found[0].low < 15 < found.found[0].high
    assert found.verdict == REPRODUCED
    assert judge(item(30.0, Crossing("c", early, late)), runs).verdict == NOT
    single = judge(item(14.0, Crossing("c", early, late, single=True)), runs).found[0]
    assert (single.low, single.high) == (12.5, 17.5)
    assert single.agrees
