"""Figures: what plotly.js is given, and what it could not draw."""

import json
import math

import plotly.graph_objects
import pytest

from noisefloor_sim.report import Curve, Plot, axes, figure, wording
from sim.report import sample


def plot(*curves: Curve, **changes: object) -> Plot:
    return Plot("t", "r", "x", "y", curves, **changes)  # type: ignore[arg-type]  # a test's short cut


def traces(some: Plot) -> list[dict[str, object]]:
    data = figure.figure(some)["data"]
    assert isinstance(data, list)
    return data


@pytest.mark.parametrize(
    "make",
    [
        sample.attack_plot, sample.utility_plot, sample.frontier_plot, sample.budget_plot,
        sample.timeline_plot, sample.devices_plot, sample.activity_plot,
    ],
)  # fmt: skip
def test_plotly_knows_every_word_of_a_figure_and_json_can_hold_it(make: object) -> None:
    assert callable(make)
    built = figure.figure(make())
    plotly.graph_objects.Figure(built)  # refuses unknown attributes and bad values
    json.dumps(built, allow_nan=False)


def test_roles_differ_in_stroke_and_groups_in_colour_and_marker() -> None:
    x = [1.0, 2.0]
    looks = figure.styles(
        plot(
            Curve("a", x, x, x, x, group="one"),
            Curve("a bound", x, x, role="bound", group="one"),
            Curve("a form", x, x, role="closed-form", group="one"),
            Curve("b", x, x),
            Curve("blind", x, x, role="baseline"),
        )
    )
    assert [look.dash for look in looks] == ["solid", "dash", "dot", "solid", "solid"]
    assert looks[0].colour == looks[1].colour == looks[2].colour != looks[3].colour
    assert looks[0].symbol != looks[3].symbol
    assert looks[4].colour == figure.GREY
    assert [look.has_area for look in looks] == [True, False, False, False, False]


def test_a_band_lies_beneath_and_its_three_traces_belong_together() -> None:
    x = [1.0, 2.0]
    data = traces(plot(Curve("a", x, x, [0, 1], [2, 3]), Curve("b", x, x)))
    assert [trace["meta"] for trace in data] == [0, 0, 0, 1]
    assert data[1]["fill"] == "tonexty"
    assert data[0]["y"] == [0, 1]


def test_infinite_points_are_gaps_and_the_page_says_so() -> None:
    some = plot(Curve("proved", [1.0, 2.0, 3.0], [1.0, math.inf, math.nan], role="bound"))
    assert traces(some)[0]["y"] == [1.0, None, None]
    assert figure.gaps(some).startswith("Not drawn: 2 of 3 points of “proved”")
    assert not figure.gaps(plot(Curve("a", [1.0], [1.0])))


def test_a_band_that_reaches_zero_ends_at_the_foot_of_a_log_axis() -> None:
    curve = Curve("a", [1.0, 2.0], [1.0, 10.0], [0.0, 5.0], [2.0, 20.0])
    low = axes.drawable(plot(curve, log_y=True), curve).low
    assert low is not None
    assert low[0] is not None
    assert 0 < low[0] <= 1.0


def test_a_sweep_has_its_ticks_where_its_points_are() -> None:
    axis = axes.x_axis(sample.attack_plot())
    assert axis["ticktext"] == ["0.25", "0.5", "1", "2", "4", "8"]


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0.9, 1100.0, [1, 10, 100, 1000]),
        (1.5, 600.0, [2, 5, 10, 20, 50, 100, 200, 500]),
        (2.0, 6.5, [2, 3, 4, 5, 6]),
        (0.513, 0.582, [0.513, 0.582]),
        (1e-9, 1e9, [1e-9, 1e-6, 1e-3, 1, 1e3, 1e6, 1e9]),
    ],
)
def test_ticks_of_a_log_axis_are_round_and_few(
    low: float, high: float, ticks: list[float]
) -> None:
    assert axes.log_ticks(low, high) == ticks


def test_markup_is_taken_from_every_text_that_plotly_reads() -> None:
    assert wording.literal("<a href='x'>$1$ & %{y}") == (
        "&lt;a href='x'&gt;&#36;1&#36; &amp; %{y}"
    )
    some = Plot("t", "r", "%{y}<b>", "y", [Curve("<i>n", ["<b>k"], [1.0])], kind="bar")
    (trace,) = traces(some)
    assert trace["name"] == "&lt;i&gt;n"
    assert trace["x"] == ["&lt;b&gt;k"]
    assert "&#37;&#123;y}&lt;b&gt;: %{x}" in str(trace["hovertemplate"])


def test_names_that_look_like_dates_or_numbers_stay_names() -> None:
    assert axes.x_axis(plot(Curve("a", ["2026-01-01", "7"], [1.0, 2.0])))["type"] == "category"


def test_long_names_of_categories_are_cut_in_the_middle() -> None:
    axis = axes.x_axis(plot(Curve("a", ["pad-and-sample, 12 clicks", "short"], [1.0, 2.0])))
    assert axis["ticktext"] == ["pad-and-… clicks", "short"]
    assert axis["tickangle"] == 0
    many = axes.x_axis(plot(Curve("a", [f"category {i}" for i in range(9)], [1.0] * 9)))
    assert many["tickangle"] == -35


def test_one_point_and_no_finite_point_can_be_drawn() -> None:
    for log in (False, True):
        for y in (3.0, math.inf, 0.0):
            some = plot(Curve("a", [1.0], [y], [y], [y]), log_x=log, log_y=log)
            assert json.dumps(figure.figure(some), allow_nan=False)


def test_many_bars_become_an_area_and_few_stay_bars() -> None:
    many, few = (list(range(size)) for size in (168, 7))
    assert traces(plot(Curve("a", many, many), kind="bar"))[0]["fill"] == "tozeroy"
    assert traces(plot(Curve("a", few, few), kind="bar"))[0]["type"] == "bar"


def test_of_many_numbered_categories_some_are_named() -> None:
    days = [str(day) for day in range(1, 31)]
    axis = axes.x_axis(plot(Curve("a", days, [1.0] * 30)))
    assert axis["ticktext"] == [str(day) for day in range(1, 31, 3)]
    assert axis["tickangle"] == 0
    week = axes.x_axis(plot(Curve("a", days[:7], [1.0] * 7)))
    assert week["ticktext"] == days[:7]
