"""Click-through rates: estimated clicks over counted impressions, with intervals that cover."""

import math

import numpy as np
import pytest
from scipy.stats import binomtest, norm

from noisefloor.mechanisms.base import Estimate
from noisefloor.randomness import new_run
from noisefloor_sim.pipelines import PIPELINES
from noisefloor_sim.pipelines.api import Metric, PointFindings
from noisefloor_sim.pipelines.clicks import CLICKS
from noisefloor_sim.pipelines.clicks.day_statistics import ClickDayStatistics
from noisefloor_sim.pipelines.clicks.estimates import (
    DayEstimate,
    estimate_metrics,
    rate_metrics,
    released_estimates,
    sum_of,
)
from noisefloor_sim.pipelines.clicks.pipeline import ClickPipeline
from noisefloor_sim.pipelines.scoring import proportion_metric
from noisefloor_sim.runs.engine import Engine
from noisefloor_sim.scenario import Scenario
from worlds import small_world, with_clicks, with_section


def metrics(scenario: Scenario) -> dict[str, Metric]:
    with new_run():
        found = Engine(scenario, PIPELINES).run().findings["clicks"]
    return {metric.name: metric for metric in found.metrics}


def stats(*reported: int) -> ClickDayStatistics:
    day = ClickDayStatistics.empty(len(reported), len(reported))
    day.reported += np.array(reported)
    return day


def test_a_rate_is_all_estimated_clicks_over_all_counted_impressions() -> None:
    scenario = small_world()
    with new_run():
        engine = Engine(scenario, PIPELINES)
        found = {m.name: m for m in engine.run().findings["clicks"].metrics}
    servers = engine.hosted.servers
    counted = np.sum([servers.impressions(day) for day in range(3)], axis=0)
    for ad in range(6):
        clicks = sum(found[f"estimate.day_{day}.ad_{ad}"].value for day in range(3))
        rate = found[f"ctr.ad_{ad}"]
        assert rate.n == counted[ad]
        assert rate.value == pytest.approx(clicks / counted[ad])


@pytest.mark.statistical
def test_intervals_cover_as_often_as_they_say() -> None:
    # 60 ads, every bit answered: fewer than 46 of 60 intervals of 95 % cover with probability
    # below 1e-6. The twin: the one-click form drops clicks, and its intervals do not know.
    scenario = with_section(small_world(days=6, variant="paper"), "behaviour", ads=60)
    assert metrics(scenario)["ctr_coverage"].value >= 46 / 60
    lossy = with_clicks(small_world(days=6), epsilon=8.0)
    assert metrics(lossy)["ctr_coverage"].value < 0.5


def test_rates_are_scored_against_what_a_server_that_sees_all_would_count() -> None:
    days = [
        DayEstimate(0, 100, Estimate(np.array([9.0, 4.0, 0.0]), np.array([3.0, 0.5, 1.0]))),
        DayEstimate(1, 100, Estimate(np.array([3.0, 4.0, 0.0]), np.array([4.0, 0.5, 1.0]))),
    ]
    shown = np.array([100, 50, 0])
    found = {
        m.name: m
        for m in rate_metrics(
            days, [stats(5, 2, 0), stats(5, 2, 0)], shown, share_randomness=False
        )
    }
    assert found["ctr.ad_0"].value == pytest.approx(0.12)
    assert found["ctr.ad_0"].high == pytest.approx(0.12 + 1.96 * 0.05, abs=1e-4)
    assert found["ctr.ad_0"].low == pytest.approx(0.12 - 1.96 * 0.05, abs=1e-4)
    assert found["ctr_error"].value == pytest.approx(math.sqrt((0.02**2 + 0.08**2) / 2))
    assert found["ctr_coverage"].value == 0.5
    assert "ctr.ad_2" not in found
    # A truth above the interval is missed as one below it is.
    above = rate_metrics(days, [stats(5, 6, 0), stats(5, 6, 0)], shown, share_randomness=False)
    assert {metric.name: metric.value for metric in above}["ctr_coverage"] == 0.5


def test_coverage_is_the_share_of_truths_within_the_interval_that_is_listed() -> None:
    # Estimates of 10 with an error of 1: 1.95 off is inside, 1.97 is not, on either side. An
    # estimate without an error has nothing to cover.
    truths, errors = [12, 12, 8, 8, 3], [1 / 0.975, 1 / 0.985, 1 / 0.975, 1 / 0.985, 0.0]
    day = DayEstimate(0, 100, Estimate(np.full(5, 10.0), np.array(errors)))
    found = {metric.name: metric for metric in estimate_metrics([day], [stats(*truths)])}
    listed = [found[f"estimate.day_0.ad_{ad}"] for ad in range(5)]
    inside = [one.low <= truth <= one.high for one, truth in zip(listed, truths, strict=True)]
    assert inside == [True, False, True, False, False]
    assert (found["coverage"].value, found["coverage"].n) == (0.5, 4)


def test_a_share_has_the_exact_95_percent_interval() -> None:
    for right, of in ((0, 10), (3, 40), (40, 40)):
        found = proportion_metric("share", right, of)
        ends = binomtest(right, of).proportion_ci(0.95, "exact")
        assert (found.low, found.high) == pytest.approx((ends.low, ends.high), rel=1e-9)
        assert (found.value, found.n) == (right / of, of)


def test_a_normal_interval_reaches_1_96_standard_errors() -> None:
    found = Metric.normal("any", 5.0, 2.0, 7)
    assert (found.low, found.high) == pytest.approx(norm.interval(0.95, 5, 2), rel=1e-9)
    assert (found.value, found.n) == (5.0, 7)


def test_hidden_impressions_give_no_rates() -> None:
    days = [DayEstimate(0, 100, Estimate(np.array([9.0]), np.array([3.0])))]
    assert rate_metrics(days, [stats(5)], np.array([0]), share_randomness=False) == []
    assert rate_metrics([], [stats(5)], np.array([10]), share_randomness=False) == []


def test_errors_of_shared_randomness_add_up_linearly() -> None:
    parts = [
        Estimate(np.array([1.0]), np.array([3.0])),
        Estimate(np.array([2.0]), np.array([4.0])),
    ]
    assert sum_of(parts, share_randomness=False).standard_error == pytest.approx([5.0])
    assert sum_of(parts, share_randomness=True).standard_error == pytest.approx([7.0])
    assert sum_of(parts, share_randomness=True).value == pytest.approx([3.0])


@pytest.mark.statistical
def test_permanent_answers_have_intervals_that_allow_for_shared_randomness() -> None:
    # 60 ads, 6 days of nearly the same answers; limits as above. The twin: errors added in
    # squares, as if each day had coins of its own, are less than half as wide as they should be.
    steady = with_section(small_world(days=6), "behaviour", ads=60)
    steady = with_clicks(steady, form="memoised", epsilon=60.0, first_share=0.95)
    with new_run():
        engine = Engine(steady, PIPELINES)
        engine.run()
    clicks = engine.pipelines["clicks"]
    assert isinstance(clicks, ClickPipeline)
    days = released_estimates(clicks.mechanism, engine.aggregator, "clicks", 6)
    servers = engine.hosted.servers
    shown = np.sum([servers.impressions(day) for day in range(6)], axis=0)
    covered = [
        rate_metrics(days, clicks.days, shown, share_randomness=share_randomness)[1].value
        for share_randomness in (True, False)
    ]
    assert covered[0] >= 46 / 60
    assert covered[1] < 46 / 60


def test_the_report_lists_a_few_ads_and_says_how_good_the_rates_are() -> None:
    scenario = with_section(small_world(), "behaviour", ads=30)
    with new_run():
        found = Engine(scenario, PIPELINES).run().findings["clicks"]
    tables = {
        item.title: item
        for item in CLICKS.section([PointFindings((), scenario, found)]).items
        if "ates" in item.title
    }
    assert len(tables) == 2
    assert max(len(getattr(table, "rows", ())) for table in tables.values()) == 20
