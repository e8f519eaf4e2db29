"""A caption says what is plotted, and of what may be seen only what is true of the data."""

import math
from collections.abc import Sequence

import pytest

from noisefloor.errors import BadParameter
from noisefloor_sim.report import Curve, Figures, Plot, Reading, Role, Table, readings
from noisefloor_sim.report.readings import caption

X = (1.0, 2.0)


def plot(*curves: Curve, topics: Sequence[Sequence[Reading[Plot]]] = ()) -> Plot:
    return Plot("t", "What is plotted.", "x", "y", curves, readings=topics)


def measured(*y: float, half: float | None = 0.1, name: str = "a") -> Curve:
    if half is None:
        return Curve(name, X, y, group="g")
    return Curve(name, X, y, [one - half for one in y], [one + half for one in y], group="g")


def line(role: Role, *y: float, group: str = "g", name: str = "line") -> Curve:
    return Curve(name, X, y, role=role, group=group)


def seen(shown: Plot | Table) -> str:
    """Return the caption behind the description."""
    return caption(shown).removeprefix(shown.describes).strip()


def never(shown: Plot) -> Figures | None:
    return None


def always(shown: Plot) -> Figures | None:
    return {"n": len(shown.curves)}


def test_the_first_true_reading_of_each_topic_is_printed_with_its_figures() -> None:
    false, true = Reading("False {n}.", never), Reading("True of {n}.", always)
    other = Reading("Second.", always)
    shown = plot(measured(1, 2), topics=[[false, true, other], [false], [other]])
    assert caption(shown) == "What is plotted. True of 1. Second."


def test_without_a_true_reading_the_caption_says_what_is_plotted_and_no_more() -> None:
    assert caption(plot(measured(1, 2), topics=[[Reading("False.", never)]])) == "What is plotted."
    assert caption(plot(measured(1, 2))) == "What is plotted."


def test_a_plot_says_what_is_plotted() -> None:
    with pytest.raises(BadParameter, match="describes"):
        Plot("t", " ", "x", "y", [measured(1, 2)])


@pytest.mark.parametrize(
    ("closed_form", "said"),
    [
        ((0.55, 0.7), "The 95 % intervals of all 2 measured values contain the closed form."),
        (
            (0.55, 0.9),
            "The 95 % intervals of 1 of 2 measured values contain the closed form; the others are "
            "up to 0.2 away.",
        ),
        ((math.nan, math.nan), ""),
    ],
)
def test_a_closed_form_is_compared_with_intervals(
    closed_form: tuple[float, float], said: str
) -> None:
    shown = plot(
        measured(0.6, 0.7), line("closed-form", *closed_form), topics=[readings.CLOSED_FORM]
    )
    assert seen(shown) == said
    bare = plot(
        measured(0.6, 0.7, half=None), line("closed-form", 0.6, 0.7), topics=[readings.CLOSED_FORM]
    )
    assert seen(bare) == ""


@pytest.mark.parametrize(
    ("bound", "said"),
    [
        ((0.6, 0.7), "None of 2 measured values is above the bound."),
        (
            (0.55, 0.8),
            "1 of 2 measured values are above the bound, none by more than its interval.",
        ),
        ((0.4, 0.5), "2 of 2 measured values are above the bound, by up to 0.2."),
    ],
)
@pytest.mark.parametrize("group", ["g", "shared"])
def test_a_bound_of_the_group_or_of_all_is_kept_or_passed(
    bound: tuple[float, float], said: str, group: str
) -> None:
    shown = plot(measured(0.6, 0.7), line("bound", *bound, group=group), topics=[readings.BOUND])
    assert seen(shown) == said


def test_a_bound_of_another_group_is_not_compared() -> None:
    other = Curve("b", X, (0.1, 0.1), group="h")
    shown = plot(
        measured(0.6, 0.7),
        other,
        line("bound", 0.5, 0.5, group="h"),
        line("bound", 0.9, 0.9),
        topics=[readings.BOUND],
    )
    assert seen(shown) == "None of 4 measured values is above the bound."


def test_a_baseline_is_passed_by_more_than_the_interval_or_is_not() -> None:
    within = plot(measured(0.6, 0.55), line("baseline", 0.5, 0.5), topics=[readings.BASELINE])
    assert seen(within) == "None of 2 is above the baseline by more than its interval."
    beyond = plot(measured(0.7, 0.55), line("baseline", 0.5, 0.5), topics=[readings.BASELINE])
    assert seen(beyond) == (
        "1 of 2 are above the baseline by more than their interval, by up to 0.2."
    )


def test_points_are_counted_on_the_better_side_of_a_named_line() -> None:
    popular, best = line("baseline", 1, 1, name="popular"), line("baseline", 3, 3, name="best")
    topics = [
        readings.against("popular"),
        readings.against("best", is_lower_better=True),
        readings.against("missing"),
        readings.below(2, "half of the best"),
    ]
    assert seen(plot(measured(0.5, 2), popular, best, topics=topics)) == (
        "1 of 2 points are above “popular”. 2 of 2 points are below “best”. "
        "1 of 2 points are below 2, half of the best."
    )


@pytest.mark.parametrize(
    ("y", "said"),
    [
        ((1, 2), "The curve rises along the axis, within the intervals."),
        ((2, 1), "The curve falls along the axis, within the intervals."),
        ((1, 1.05), ""),  # the intervals overlap
        ((1, math.nan), ""),
    ],
)
def test_a_trend_is_said_only_of_curves_that_run_one_way(
    y: tuple[float, float], said: str
) -> None:
    assert seen(plot(measured(*y), topics=[readings.TREND])) == said
    opposite = Curve("b", X, (2, 0) if y[0] < 1.5 else (0, 2))
    assert seen(plot(measured(*y), opposite, topics=[readings.TREND])) == ""


def test_a_curve_that_turns_by_more_than_its_intervals_has_no_trend() -> None:
    turning = Curve("a", (1.0, 2.0, 3.0), (1, 3, 2), (0.9, 2.9, 1.9), (1.1, 3.1, 2.1))
    assert seen(plot(turning, topics=[readings.TREND])) == ""
    level = Curve("a", (1.0, 2.0, 3.0), (1, 2.05, 2), (0.9, 1.9, 1.9), (1.1, 2.1, 2.1))
    assert (
        seen(plot(level, topics=[readings.TREND]))
        == "The curve rises along the axis, within the intervals."
    )


def test_columns_of_tables_are_counted_and_ranged() -> None:
    topics = [
        readings.column_range("b", "From {span}."),
        readings.column_range("missing", "From {span}."),
        readings.column_count("b", lambda one: one > 1, some="{k} of {n}.", none="None of {n}."),
    ]
    rows = [("x", 1.0), ("y", 2), ("z", None), ("n", math.nan), ("s", "text")]
    assert seen(Table("t", "", ("a", "b"), rows, topics)) == "From 1 to 2. 1 of 2."
    assert seen(Table("t", "", ("a", "b"), rows[:1], topics)) == "From 1. None of 1."
    assert seen(Table("t", "", ("a", "b"), [], topics)) == ""
