"""Fraud in click statistics: fakes gain what the formulas say, and nothing else changes."""

from typing import Any

import numpy as np
import pytest

from noisefloor.ads.clicks.click_report import ClickEncoding, ClickReport
from noisefloor.ads.clicks.delivered_click import DeliveredClick
from noisefloor.ads.clicks.memoised_clicks import MemoisedClicks
from noisefloor.adversary.ads.poisoning import mimic_bias
from noisefloor.distributions import ONE
from noisefloor.errors import BadParameter
from noisefloor.mechanisms.unary import UnaryEncoding
from noisefloor.randomness import SeededSource, new_run
from noisefloor_sim.pipelines import PIPELINES
from noisefloor_sim.pipelines.api import Metric, PointFindings
from noisefloor_sim.pipelines.clicks import CLICKS
from noisefloor_sim.pipelines.clicks.fraud import Forger, day_encoding
from noisefloor_sim.pipelines.clicks.reporting import ClickReporting
from noisefloor_sim.runs.engine import Engine
from noisefloor_sim.scenario import Scenario
from worlds import small_world, with_clicks, with_section

DEVIATIONS = 4.9
"""A normal variable is farther out with probability below 1e-6."""

FORGERIES = ("maximal", "evasive", "input")


def attacked(scenario: Scenario, **threat: Any) -> Scenario:
    settings = {"fakes": 0.2, "pushed_ad": 4} | threat
    return with_section(scenario, "threat", **settings)


def world(form: str, epsilon: float, **block: Any) -> Scenario:
    return with_clicks(small_world(days=6), form=form, epsilon=epsilon, **block)


def metrics(scenario: Scenario, order: list[int] | None = None) -> dict[str, Metric]:
    with new_run():
        found = Engine(scenario, PIPELINES, order=order).run().findings["clicks"]
    return {metric.name: metric for metric in found.metrics}


def assert_gains(scenario: Scenario) -> None:
    """The bias is that of the formula; the twin, twice the share of fakes, is not."""
    found = metrics(scenario)
    bias, formula = found["fraud.bias"], found["fraud.bias_formula"].value
    allowed = DEVIATIONS / 1.96 * (bias.high - bias.low) / 2
    assert abs(bias.value - formula) < allowed
    # Every formula is proportional to the share of fakes.
    assert abs(bias.value - 2 * formula) > allowed
    assert found["fraud.share"].value == pytest.approx(0.2, abs=2e-3)


@pytest.mark.statistical
@pytest.mark.parametrize("forgery", FORGERIES)
@pytest.mark.parametrize(("form", "epsilon"), [("one-click", 2.0), ("split", 6.0)])
def test_fakes_gain_what_the_formula_says(form: str, epsilon: float, forgery: str) -> None:
    # 6 days of about 1,400 honest reports and 350 fakes; false alarm 1e-6 by 4.9 standard errors.
    assert_gains(attacked(world(form, epsilon), forgery=forgery))


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("form", "epsilon", "forgery"),
    [
        ("capped", 8.0, "maximal"),
        ("pad-and-sample", 4.0, "maximal"),
        ("pad-and-sample", 4.0, "evasive"),
        ("memoised", 16.0, "evasive"),
        ("memoised", 16.0, "input"),
        ("delivered", 2.0, "maximal"),
        ("delivered", 2.0, "input"),
    ],
)
def test_every_form_has_its_formula(form: str, epsilon: float, forgery: str) -> None:
    # As above; the days of permanent answers share coins, so their interval is the widest.
    assert_gains(attacked(world(form, epsilon, most_clicks=2), forgery=forgery))


@pytest.mark.statistical
def test_reports_that_are_sent_again_count_as_honest_ones() -> None:
    poor = world("one-click", 2.0, exhausted="memory").model_copy(update={"budget": 4.0})
    assert_gains(attacked(poor))


def test_without_fakes_nothing_is_said_of_fraud() -> None:
    assert not [name for name in metrics(small_world()) if name.startswith("fraud")]


def test_fakes_leave_the_honest_as_they_were() -> None:
    scenario = small_world(days=4, budget=4.0)
    honest, fake = metrics(scenario), metrics(attacked(scenario))
    alike = ("spent", "fresh", "refused", "reports", "exhausted", "clicks_mean", "reported_share")
    for name, metric in honest.items():
        if name.startswith(alike):
            assert repr(fake[name]) == repr(metric)
    assert fake["error_rms"].value > honest["error_rms"].value


def test_fakes_come_in_the_same_frames_in_their_share() -> None:
    scenario = attacked(small_world())
    with new_run():
        engine = Engine(scenario, PIPELINES)
        engine.run()
    flow = getattr(engine.pipelines["clicks"], "flow", None)
    assert isinstance(flow, ClickReporting)
    for day, stats in enumerate(flow.days):
        assert engine.aggregator.release("clicks", day)[1] == stats.honest + stats.fakes
        # Six cohorts, each rounded on its own.
        assert abs(stats.fakes - stats.honest / 4) <= 3


@pytest.mark.parametrize("forgery", FORGERIES)
@pytest.mark.parametrize("form", ["one-click", "delivered"])
def test_cohorts_in_another_order_give_the_same_numbers(form: str, forgery: str) -> None:
    scenario = attacked(with_clicks(small_world(), form=form), forgery=forgery)
    straight, backwards = metrics(scenario), metrics(scenario, [5, 4, 3, 2, 1, 0])
    assert repr(straight) == repr(backwards)


def test_bold_fakes_are_found_where_reports_hold_many_ones_and_evasive_ones_are_not() -> None:
    # 20 ads at epsilon 1: an honest report has five ones, a crafted one has one.
    busy = with_section(world("one-click", 1.0), "behaviour", ads=20)
    bold, sly = (metrics(attacked(busy, forgery=how)) for how in ("maximal", "evasive"))
    assert bold["fraud.found"].value > 0.99
    assert bold["fraud.auc"].value > 0.99
    assert bold["fraud.p_value"].value < 1e-6
    assert sly["fraud.found"].value < 0.05
    assert sly["fraud.p_value"].value > 0.01
    assert sly["fraud.bias"].value < bold["fraud.bias"].value
    # 1,000 honest epochs at 1 %: more than 30 alarms have probability below 1e-6.
    assert all(found["fraud.false_alarms"].value <= 0.03 for found in (bold, sly))


def test_delivered_clicks_have_no_detector() -> None:
    found = metrics(attacked(world("delivered", 2.0)))
    assert "fraud.bias" in found
    assert "fraud.auc" not in found


def test_the_evasive_start_from_the_vector_that_gains_more() -> None:
    for epsilon in (0.5, 2.0, 8.0):
        encoding = UnaryEncoding.optimised(6, epsilon)
        empty, single = (mimic_bias(encoding, fakes=0.1, honest=0.1, ones=ones) for ones in (0, 1))
        assert single > empty
        forger = Forger(ClickReport(6, epsilon, ClickEncoding.ONE_CLICK), 4, 0.1, "evasive")
        assert forger.bias(0.1, 0.1) == pytest.approx(single)


@pytest.mark.statistical
def test_one_day_of_permanent_answers_follows_the_encoding_that_stands_for_it(seed: int) -> None:
    # 40,000 users who hold the first of four ads; 4.9 standard errors. The twin: off by 0.02.
    clicks, n = MemoisedClicks(4, 8.0, 4.0, 3), 40_000
    encoding = day_encoding(clicks)
    assert encoding is not None
    source = SeededSource(seed, "permanent")
    vectors = np.repeat((np.arange(4) == 0)[None], n, axis=0)
    flips = clicks.memorise(n, source.child("memory"))
    rates = clicks.report(vectors, flips, source.child("day")).mean(axis=0)
    chances = np.where(vectors[0], encoding.stay / ONE, encoding.rise / ONE)
    allowed = DEVIATIONS * np.sqrt(chances * (1 - chances) / n)
    assert (np.abs(rates - chances) < allowed).all()
    assert not (np.abs(rates - (chances + 0.02)) < allowed).all()
    assert day_encoding(DeliveredClick(4, 1.0)) is None


def test_an_ad_that_does_not_exist_cannot_be_pushed() -> None:
    with pytest.raises(BadParameter, match=r"threat\.pushed_ad"):
        Engine(attacked(small_world(), pushed_ad=6), PIPELINES)
    Engine(attacked(small_world(), pushed_ad=6, fakes=0.0), PIPELINES)


def test_the_report_shows_fraud_where_there_is_any() -> None:
    points = []
    for fakes in (0.0, 0.2):
        scenario = attacked(small_world(), fakes=fakes)
        with new_run():
            found = Engine(scenario, PIPELINES).run().findings["clicks"]
        points.append(PointFindings((("threat.fakes", fakes),), scenario, found))
    titles = [item.title for item in CLICKS.section(points).items]
    assert "How far fake devices lift the pushed ad" in titles
    assert any("Detecting the fakes" in title for title in titles)
    quiet = [item.title for item in CLICKS.section(points[:1]).items]
    assert not any("ake" in title and "device" in title for title in quiet)
