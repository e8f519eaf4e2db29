"""Curves: the number that was swept most runs along the axis, the rest tells curves apart."""

import math

import pytest

from noisefloor_sim.pipelines.api import Findings, Metric, PointFindings
from noisefloor_sim.pipelines.plotting import Axis, metric_along_axis, student_interval, value_at
from worlds import small_world

NOTHING = Findings((), ())
EPSILON = "pipelines.clicks.epsilon"
USUAL = {EPSILON: "claimed epsilon"}
DAYS = Axis("days", "days")


def point(value: float = 0.0, **settings: object) -> PointFindings:
    keys = tuple((key.replace("__", "."), found) for key, found in settings.items())
    return PointFindings(keys, small_world(), Findings((Metric("error", value, n=1),), ()))


def test_epsilon_runs_along_the_axis_unless_another_number_takes_more_values() -> None:
    assert Axis.of([PointFindings((), small_world(), NOTHING)], USUAL).key == EPSILON
    swept = [point(days=days, pipelines__clicks__epsilon=1.0) for days in (1, 7, 30)]
    assert Axis.of(swept, USUAL).key == "days"
    assert Axis.of(swept[:1], USUAL).key == EPSILON


def test_seeds_and_flags_are_no_axis() -> None:
    points = [point(seed=seed, flag=bool(seed % 2)) for seed in range(5)]
    assert Axis.of(points, USUAL).key == EPSILON


def test_curves_are_named_after_what_else_was_swept() -> None:
    one = point(days=7, pipelines__clicks__form="split", seed=3)
    assert DAYS.curve_of(one) == "corrected, form split"
    assert Axis(EPSILON, "").curve_of(one) == "corrected, days 7, form split"


def test_replicates_are_averaged_along_the_axis() -> None:
    points = [point(value, days=days, seed=value) for days in (1, 7) for value in (1.0, 3.0)]
    (by_place,) = DAYS.grouped(points).values()
    places, found = metric_along_axis(by_place, "error")
    assert places == [1.0, 7.0]
    assert [metric.value for metric in found] == [2.0, 2.0]
    assert metric_along_axis(by_place, "missing") == ([], [])


def test_a_point_lies_where_the_scenario_says_if_the_key_was_not_swept() -> None:
    assert Axis(EPSILON, "").place(point()) == 2.0
    assert value_at(small_world(), "population.users") == 1500


def test_among_keys_that_take_as_many_values_the_first_usual_one_wins() -> None:
    usual = {"days": "days", EPSILON: "claimed epsilon"}
    points = [point(days=days, pipelines__clicks__epsilon=float(days)) for days in (1, 7)]
    assert Axis.of(points, usual).key == "days"
    assert Axis.of(points, USUAL).label == "claimed epsilon"


def test_replicates_with_intervals_share_one_that_shrinks_by_the_root_of_their_number() -> None:
    measured = [
        PointFindings((("days", 1),), small_world(), Findings((Metric("error", *ends, n=1),), ()))
        for ends in ((1.0, 0.0, 2.0), (2.0, 0.0, 4.0), (3.0, 0.0, 6.0), (2.0, 0.0, 4.0))
    ]
    (found,) = metric_along_axis({1.0: measured}, "error")[1]
    # Half-widths of 1, 2, 3 and 2: their mean over the root of four.
    assert (found.value, found.low, found.high, found.n) == (2.0, 1.0, 3.0, 4)


def test_replicates_without_intervals_get_one_from_how_they_differ() -> None:
    points = [point(value, days=1, seed=value) for value in (1.0, 2.0, 3.0)]
    (by_place,) = DAYS.grouped(points).values()
    (found,) = metric_along_axis(by_place, "error")[1]
    # Student's 97.5 % point with two degrees of freedom is 4.303; the error is 1 / sqrt(3).
    assert found.high - 2 == pytest.approx(4.302653 / math.sqrt(3), rel=1e-6)
    assert student_interval([1.0, 2.0, 3.0]) == pytest.approx((found.low, found.high))
    (single,) = metric_along_axis({1.0: points[:1]}, "error")[1]
    assert math.isnan(single.low)
    assert student_interval([1.0]) == (-math.inf, math.inf)
