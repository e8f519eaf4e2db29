"""Figures that several pipelines share."""

import pytest

from noisefloor_sim.pipelines.api import Findings, Metric, PointFindings
from noisefloor_sim.pipelines.attack_figures import attack_figures, attack_plots
from noisefloor_sim.pipelines.plotting import (
    Axis,
    interval_ends,
    is_logarithmic,
    measured_curves,
)
from noisefloor_sim.report import Plot, Table
from noisefloor_sim.report.readings import caption
from noisefloor_sim.scenario import Attack
from worlds import small_world

DAYS = Axis("days", "days")


def point(days: int, *metrics: Metric) -> PointFindings:
    return PointFindings((("days", days),), small_world(), Findings(metrics, ()))


def test_a_band_is_drawn_only_where_every_metric_has_an_interval() -> None:
    sure, vague = Metric("a", 1.0, 0.5, 1.5), Metric("a", 2.0)
    assert interval_ends([sure, sure]) == ([0.5, 0.5], [1.5, 1.5])
    assert interval_ends([sure, vague]) == (None, None)


def test_a_game_is_drawn_with_what_theory_says_of_it() -> None:
    metrics = [
        Metric("attack.bit.success", 0.6, 0.5, 0.7),
        Metric("attack.bit.bound", 0.8),
        Metric("attack.bit.closed_form", 0.61),
        Metric("attack.bit.prior", 0.5),
    ]
    groups = DAYS.grouped([point(1, *metrics), point(7, *metrics)])
    attacks = {"bit": Attack("a bit"), "other": Attack("not mounted")}
    (plot,) = attack_plots(groups, DAYS, attacks, {"bit": "Half is a guess."})
    assert plot.title == "How often the adversary is right: a bit"
    assert [curve.role for curve in plot.curves] == [
        "measured",
        "closed-form",
        "bound",
        "baseline",
    ]
    assert plot.describes == (
        "Share of right guesses with its 95 % interval, beside its closed form, the bound that is "
        "proved and a guess without the reports. Half is a guess."
    )
    assert caption(plot).removeprefix(plot.describes) == (
        " The 95 % intervals of all 2 measured values contain the closed form. None of 2 measured "
        "values is above the bound. None of 2 is above the baseline by more than its interval. "
        "The prior is the same at every point of a curve, 0.5; the advantage over it is 0.1."
    )
    assert plot.log_x
    assert measured_curves(groups, "nothing") == []


def test_zero_has_no_place_on_a_logarithmic_axis() -> None:
    assert is_logarithmic(DAYS.grouped([point(1), point(7)]))
    assert not is_logarithmic(DAYS.grouped([point(0), point(7)]))


def game(prior: float) -> list[Metric]:
    return [
        Metric("attack.bit.success", 0.6, 0.5, 0.7),
        Metric("attack.bit.prior", prior),
        Metric("attack.bit.advantage", 0.6 - prior),
    ]


def test_a_curve_over_several_secrets_says_so() -> None:
    groups = DAYS.grouped([point(1, *game(0.5)), point(7, *game(0.1))])
    (plot,) = attack_plots(groups, DAYS, {"bit": Attack("a bit")})
    said = "The prior differs along a curve, 0.1 to 0.5: its points are not about one secret."
    assert caption(plot).endswith(said)


def test_every_point_is_listed_and_one_place_alone_is_not_drawn() -> None:
    points = [point(1, *game(0.5)), point(7, *game(0.5))]
    attacks = {"bit": Attack("a bit")}
    plot, table = attack_figures(DAYS.grouped(points), DAYS, attacks)
    assert isinstance(plot, Plot)
    assert isinstance(table, Table)
    assert [row[2] for row in table.rows] == [1.0, 7.0]
    assert table.rows[0][3:8] == (0.6, 0.5, 0.7, 0.5, pytest.approx(0.1))
    (alone,) = attack_figures(DAYS.grouped(points[:1]), DAYS, attacks)
    assert isinstance(alone, Table)
