"""Click-through rates: estimated clicks over counted impressions, with intervals that cover."""

import math

import numpy as np
import pytest
from scipy.stats import binomtest, norm

from noisefloor.ads.clicks import ClickEncoding, ClickReport, DroppedClicks
from noisefloor.mechanisms.base import Estimate
from noisefloor.randomness import new_run
from noisefloor_sim.pipelines import PIPELINES
from noisefloor_sim.pipelines.api import Metric, PointFindings
from noisefloor_sim.pipelines.clicks import CLICKS
from noisefloor_sim.pipelines.clicks.day_statistics import ClickDayStatistics
from noisefloor_sim.pipelines.clicks.dropped import UNEVEN, DroppedShare, dropped_metrics
from noisefloor_sim.pipelines.clicks.estimates import (
    ClickCounts,
    ReleasedDay,
    counts_on,
    estimate_metrics,
    rate_metrics,
    released_days,
    sum_of_days,
)
from noisefloor_sim.pipelines.clicks.pipeline import ClickPipeline
from noisefloor_sim.pipelines.scoring import proportion_metric
from noisefloor_sim.runs.engine import Engine
from noisefloor_sim.scenario import Scenario
from worlds import small_world, with_clicks, with_section

PAPER = ClickReport(3, 2.0, ClickEncoding.PER_BIT)
ONE_CLICK = ClickReport(3, 2.0, ClickEncoding.ONE_CLICK)
COUNTED = with_clicks(small_world(), counting_share=0.2)


def metrics(scenario: Scenario) -> dict[str, Metric]:
    with new_run():
        found = Engine(scenario, PIPELINES).run().findings["clicks"]
    return {metric.name: metric for metric in found.metrics}


def by_name(found: list[Metric]) -> dict[str, Metric]:
    return {metric.name: metric for metric in found}


def stats(*rows: list[int]) -> ClickDayStatistics:
    """Return a day of users with these clicks."""
    day = ClickDayStatistics.empty(len(rows[0]), len(rows[0]))
    day.see_reported(np.array(rows, dtype=np.bool_))
    return day


def counts(value: list[float], low: list[float], high: list[float]) -> ClickCounts:
    clicks = Estimate(np.array(value), np.ones(len(value)))
    return ClickCounts(100, clicks, np.array(low), np.array(high), np.array(high) + 1)


def test_a_rate_is_all_estimated_clicks_over_all_counted_impressions() -> None:
    with new_run():
        engine = Engine(COUNTED, PIPELINES)
        found = by_name(list(engine.run().findings["clicks"].metrics))
    servers = engine.hosted.servers
    counted = np.sum([servers.impressions(day) for day in range(3)], axis=0)
    factor = 1 + found["dropped_per_kept"].value
    for ad in range(6):
        clicks = sum(found[f"kept.day_{day}.ad_{ad}"].value for day in range(3))
        rate = found[f"kept_rate.ad_{ad}"]
        assert rate.n == counted[ad]
        # Days are pooled: they differ by as much as the share of users who tell of dropped clicks.
        assert rate.value == pytest.approx(clicks / counted[ad], rel=0.1)
        assert found[f"ctr.ad_{ad}"].value == pytest.approx(factor * rate.value)
        assert found[f"ctr.ad_{ad}"].low == rate.low


def test_a_form_without_a_limit_has_click_through_and_one_with_a_limit_kept_clicks() -> None:
    whole, limited = metrics(small_world(variant="paper")), metrics(small_world())
    assert {"ctr.ad_0", "estimate.day_0.ad_0", "ctr_coverage"} <= set(whole)
    assert not {"kept_rate.ad_0", "kept.day_0.ad_0", "dropped_per_kept"} & set(whole)
    assert {"kept_rate.ad_0", "kept.day_0.ad_0", "kept_rate_coverage"} <= set(limited)
    assert not {"ctr.ad_0", "ctr_coverage", "estimate.day_0.ad_0"} & set(limited)
    assert whole["kept_share"].value == 1.0
    assert 0.6 < limited["kept_share"].value < 0.9


def test_kept_clicks_share_a_user_among_the_ads_that_were_clicked() -> None:
    day = stats([1, 1, 1], [1, 0, 1], [0, 1, 0], [0, 0, 0])
    assert day.reported.tolist() == [2, 2, 2]
    assert day.kept(None).tolist() == [2, 2, 2]
    assert day.kept(1) == pytest.approx([1 / 3 + 1 / 2, 1 / 3 + 1, 1 / 3 + 1 / 2])
    assert day.kept(2) == pytest.approx([2 / 3 + 1, 2 / 3 + 1, 2 / 3 + 1])
    assert day.dropped(DroppedClicks(1, 1.0)) == 2 + 1
    assert day.dropped(DroppedClicks(1, 1.0, most=1)) == 1 + 1
    assert day.dropped(DroppedClicks(2, 1.0)) == 1


def test_rates_are_scored_against_what_a_server_that_sees_all_would_count() -> None:
    shown, day = np.array([100, 50, 0]), stats([1, 1, 0], [1, 0, 0], [1, 0, 0])
    total = counts([5.0, 4.0, 0.0], [2.0, 3.0, 0.0], [6.0, 5.0, 1.0])
    found = by_name(rate_metrics(PAPER, total, [day], shown, None))
    assert (found["ctr.ad_0"].value, found["ctr.ad_0"].n) == (0.05, 100)
    assert (found["ctr.ad_0"].low, found["ctr.ad_0"].high) == pytest.approx((0.02, 0.06))
    assert found["ctr_error"].value == pytest.approx(math.sqrt((0.02**2 + 0.06**2) / 2))
    assert (found["ctr_coverage"].value, found["ctr_coverage"].n) == (0.5, 2)
    assert "ctr.ad_2" not in found
    # Kept: 2.5 and 0.5 users. The click-through begins there, and ends at the uneven share.
    dropped = DroppedShare(0.25, 0.0, 0.5, 10)
    found = by_name(rate_metrics(ONE_CLICK, total, [day], shown, dropped))
    assert found["kept_rate_coverage"].value == 0.5
    assert found["ctr.ad_0"].value == pytest.approx(0.05 * 1.25)
    assert found["ctr.ad_0"].low == pytest.approx(0.02)
    assert found["ctr.ad_0"].high == pytest.approx(0.07 * (1 + UNEVEN * 0.5))


def test_coverage_is_the_share_of_truths_within_the_interval_that_is_listed() -> None:
    # 40 users of 100 hold ad 0, 10 ad 1, and none ad 2: the tally is what is expected of them,
    # and for ad 1 what is expected of 90.
    stay, rise = (weight / 2**64 for weight in (PAPER.encoding.stay, PAPER.encoding.rise))
    tally = np.rint([40 * stay + 60 * rise, 90 * stay + 10 * rise, 100 * rise]).astype(np.int64)
    truth = stats(*([[1, 1, 0]] * 10 + [[1, 0, 0]] * 30 + [[0, 0, 0]] * 60))
    day = ReleasedDay(0, tally, 100, 100)
    found = by_name(estimate_metrics(PAPER, [day], [truth], None))
    listed = [found[f"estimate.day_0.ad_{ad}"] for ad in range(3)]
    inside = [one.low <= at <= one.high for one, at in zip(listed, (40, 10, 0), strict=True)]
    assert inside == [True, False, True]
    assert found["coverage"].value == pytest.approx(2 / 3)
    assert all(0 <= one.low <= one.high <= 100 for one in listed)


@pytest.mark.parametrize("field", ["fakes", "repeated"])
def test_no_interval_is_given_that_does_not_allow_for_what_was_sent(field: str) -> None:
    class Released:
        def release(self, kind: str, epoch: int) -> tuple[np.ndarray, int]:
            return np.array([50, 20, 30]), 100

    plain, other = stats([1, 0, 0]), stats([1, 0, 0])
    setattr(other, field, 3)
    days = released_days(Released(), "clicks", [plain, other], [0, 0])  # type: ignore[arg-type] # the one method
    assert [one.is_plain for one in days] == [True, False]
    found = by_name(estimate_metrics(PAPER, days, [plain, other], None))
    assert math.isfinite(found["estimate.day_0.ad_0"].low)
    assert math.isnan(found["estimate.day_1.ad_0"].low)
    assert found["coverage"].n == 3
    rates = by_name(
        rate_metrics(PAPER, counts_on(PAPER, days), [plain, other], np.array([9, 9, 9]), None)
    )
    assert math.isnan(rates["ctr.ad_0"].high)
    assert "ctr_coverage" not in rates


def test_the_dropped_share_is_a_ratio_with_an_end_where_its_divisor_may_be_none() -> None:
    counter = DroppedClicks(1, 40.0)  # hardly any noise
    kept = Estimate(np.array([0.5]), np.array([0.05]))
    share = DroppedShare.of(counter, np.array([950, 50]), 1_000, kept)
    assert share.value == pytest.approx(4 * 0.05 / 0.5)
    assert share.low < share.value < share.high
    assert share.factor == pytest.approx(1.4)
    assert share.most_factor == pytest.approx(1 + UNEVEN * share.high)
    unknown = DroppedShare.of(
        counter, np.array([950, 50]), 1_000, Estimate(np.array([0.1]), np.array([0.05]))
    )
    assert math.isinf(unknown.high)
    none = DroppedShare.of(
        counter, np.array([950, 50]), 1_000, Estimate(np.array([-0.1]), np.array([0.01]))
    )
    assert (none.value, none.low) == (0.0, 0.0)
    day = stats([1, 1, 0], [1, 0, 0])
    found = by_name(dropped_metrics(share, counter, [day]))
    assert found["dropped_per_kept_coverage"].value == float(share.low <= 0.5 <= share.high)


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
    assert (
        rate_metrics(PAPER, counts([9.0], [3.0], [12.0]), [stats([1])], np.array([0]), None) == []
    )


def test_days_that_share_randomness_have_intervals_that_add_up() -> None:
    days = [ReleasedDay(day, np.array([40, 30, 20]), 100, 100) for day in range(4)]
    apart, shared = (
        sum_of_days(PAPER, days, share_randomness=share_randomness)
        for share_randomness in (False, True)
    )
    one = counts_on(PAPER, days[:1])
    assert shared.clicks.value == pytest.approx(apart.clicks.value)
    assert shared.high == pytest.approx(4 * one.high)
    assert (shared.high - shared.low > 1.8 * (apart.high - apart.low)).all()


@pytest.mark.statistical
def test_permanent_answers_have_intervals_that_allow_for_shared_randomness() -> None:
    # 60 ads, 6 days of nearly the same answers: fewer than 46 of 60 intervals of 95 % cover with
    # probability below 1e-6. The twin: intervals as if each day had draws of its own are less than
    # half as wide as they should be.
    steady = with_section(small_world(days=6), "behaviour", ads=60)
    steady = with_clicks(steady, form="memoised", epsilon=60.0, first_share=0.95)
    with new_run():
        engine = Engine(steady, PIPELINES)
        engine.run()
    clicks = engine.pipelines["clicks"]
    assert isinstance(clicks, ClickPipeline)
    days = released_days(engine.aggregator, "clicks", clicks.days, [0] * 6)
    servers = engine.hosted.servers
    shown = np.sum([servers.impressions(day) for day in range(6)], axis=0)
    covered = []
    for share_randomness in (True, False):
        total = sum_of_days(clicks.mechanism, days, share_randomness=share_randomness)
        found = by_name(rate_metrics(clicks.mechanism, total, clicks.days, shown, None))
        covered.append(found["ctr_coverage"].value)
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
