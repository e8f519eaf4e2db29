"""The auction in the world: regimes on the same impressions, a panel, budgets, bid requests."""

import json
import math
from typing import Any

import numpy as np
import pytest

from ads_worlds import AdsRun, ads_world, run_ads_world
from noisefloor.ads.auction import AuctionLog
from noisefloor.ads.auction.openrtb import read_request, released_of
from noisefloor.randomness import SeededSource
from noisefloor_sim.pipelines.ads.delivery import delivery_of
from noisefloor_sim.pipelines.ads.market import EACH_DAY, example_lines, request_text
from noisefloor_sim.pipelines.ads.sales import REGIMES, gains_of, mean_of
from noisefloor_sim.pipelines.api import Z
from statistics_of_tests import FALSE_ALARM, binomial_p

FEW_AND_UNSOLD: dict[str, Any] = {"users": 300, "floor_micros": 10**9}
FIGURES = ("revenue", "value", "surplus", "fill", "relevance")


def market(
    epsilon: float = 4.0, choice: str = "argmax", source: str = "low-rank", **auction: object
) -> AdsRun:
    """Let a world sell its impressions; its panel's reports have little noise."""
    return run_ads_world(
        ads_world(
            {
                "training": {"method": "open"},
                "delivery": {"choice": choice, "epsilon": epsilon},
                "auction": {"run": True, "report_epsilon": 8.0, **auction},
            },
            seed=45,
            days=3,
            population={"users": 3000, "cohort": 512},
            tastes={"source": source, "spread": 0.3},
            behaviour={
                **{"ads": 12, "interest_lift": 8.0, "click_base_rate": 0.1},
                "page_affinity": 2.0,
            },
        )
    )


def test_all_regimes_sell_the_same_impressions_within_their_budgets() -> None:
    simulated = market()
    counts = {simulated.metric(f"auction.{it}.{name}").n for it in REGIMES for name in FIGURES}
    assert len(counts) == 1
    assert simulated.value("auction.budget_overspent") == 0
    for regime in REGIMES:
        value, price = (simulated.value(f"auction.{regime}.{it}") for it in ("value", "revenue"))
        assert simulated.value(f"auction.{regime}.surplus") == pytest.approx(value - price)
        assert 0 <= simulated.value(f"auction.{regime}.fill") <= 1


@pytest.mark.parametrize("source", ["low-rank", "topics"])
def test_the_page_says_something_and_random_ad_choice_nothing(source: str) -> None:
    # Gains are paired, user by user. Random ad choice is within four standard errors of 0: false
    # alarm 6e-5 each; the seed is fixed.
    simulated = market(8.0, source=source)
    random, page = (simulated.metric(f"auction.gain.{it}") for it in ("random", "contextual"))
    assert simulated.value("auction.context_r2") > 0.1
    assert simulated.value("auction.random_sigmas") < 4
    assert simulated.value("auction.random_sigmas") == pytest.approx(
        abs(random.value) / ((random.high - random.low) / 2 / Z)
    )
    assert page.low > 0
    tracking = simulated.metric("auction.gain.tracking")
    assert tracking.low > page.high
    share = simulated.value("auction.share.contextual")
    assert share == pytest.approx(page.value / tracking.value)
    assert 0.85 < simulated.value("auction.coverage") <= 1


def test_what_devices_released_is_worth_something_beside_the_page() -> None:
    simulated = market(8.0)
    assert simulated.metric("auction.lead").low > 0
    assert simulated.metric("auction.gain.symbol").low > 0
    gains = [simulated.value(f"auction.gain.{it}") for it in ("protected", "contextual")]
    assert simulated.value("auction.lead") == pytest.approx(gains[0] - gains[1])


def test_a_released_ad_that_says_nothing_does_not_hurt() -> None:
    # Requests that are drawn blindly: their effects are shrunk to little or nothing.
    simulated = market(choice="random")
    assert simulated.value("auction.symbol_r2") < 0.02
    assert abs(simulated.value("auction.lead")) < 0.1 * simulated.value("auction.gain.contextual")


def test_bidders_learn_from_reports_of_others_on_the_days_before() -> None:
    simulated = market()
    phase = simulated.ads.market
    assert phase is not None and phase.last is not None
    released = [simulated.engine.aggregator.release("panel-clicks", day) for day in range(3)]
    assert simulated.value("auction.panel.reports") == sum(n for _, n in released[:2])
    assert not (phase.last.user % 2).any()
    # A table has no more than what the aggregator released: it is the same again.
    tables = phase.panel.tables(simulated.engine.aggregator, 2)
    assert tables.by_both.shape == (13, 12, 6)
    assert tables.reports == simulated.value("auction.panel.reports")
    assert simulated.value("spent.panel_click_report") == pytest.approx(
        8.0 * sum(n for _, n in released) / 3000
    )


def test_the_panel_s_reports_are_inspected_and_claimed() -> None:
    simulated = market()
    claim = simulated.claim("panel-click")
    assert claim.verdict == "holds"
    assert claim.proved.epsilon <= claim.claimed.epsilon == 8.0
    assert claim.audited is not None and claim.audited.epsilon > 0
    # On the fullest day a panel user pays for a request and for a report.
    assert simulated.value("day.panel-click.claimed") == 8.0


@pytest.mark.statistical
def test_gains_are_covariances_and_their_errors_cover(seed: int) -> None:
    # 200 sales of 400 users with up to 20 impressions each, shown without a look at their worth:
    # the true gain is 0. An exact binomial test of coverage 0.95 at 1e-6; twin: errors over
    # impressions, as if users were no clusters, cover too rarely.
    draw, covered = SeededSource(seed, "gains").generator(), {"users": 0, "impressions": 0}
    for _ in range(200):
        user = np.repeat(np.arange(400), draw.integers(1, 20, 400))
        worth = draw.gamma(0.5, 1e4, (400, 3))[user]
        taken = draw.integers(-1, 3, 400)[user]  # each user sees one ad, or none
        value = np.where(taken < 0, 0.0, worth[np.arange(len(user)), taken])
        log = AuctionLog.empty(len(user))
        log.winner[:], log.value[:] = taken, value
        gains = gains_of(log, worth)
        for name, whose in (("users", user), ("impressions", np.arange(len(user)))):
            mean = mean_of(gains, whose)
            covered[name] += abs(mean.value) <= Z * mean.standard_error
    assert binomial_p(covered["users"], 200, 0.95) > FALSE_ALARM
    assert binomial_p(covered["impressions"], 200, 0.95) < FALSE_ALARM


def test_first_prices_sell_as_well() -> None:
    simulated = market(price="first")
    assert simulated.value("auction.budget_overspent") == 0
    assert simulated.value("auction.gain.tracking") > simulated.value("auction.gain.contextual")


def test_users_beyond_the_limit_are_not_sold() -> None:
    simulated = market(**FEW_AND_UNSOLD)
    phase = simulated.ads.market
    assert phase is not None and phase.last is not None
    assert phase.last.user.max() < 300
    assert not phase.lots  # days whose bid requests are sent are forgotten


def test_a_floor_above_every_bid_sells_nothing() -> None:
    simulated = market(**FEW_AND_UNSOLD)
    for regime in REGIMES:
        assert (
            simulated.value(f"auction.{regime}.fill")
            == simulated.value(f"auction.{regime}.value")
            == 0
        )


def test_bid_requests_hold_what_was_released_and_nobody() -> None:
    simulated = market()
    sizes = simulated.metric("auction.request.bytes")
    assert sizes.n == EACH_DAY * simulated.scenario.days
    assert sizes.value < 1000
    day, symbol, topic = (
        int(simulated.value(f"auction.request.{name}")) for name in ("day", "symbol", "topic")
    )
    lines = example_lines(simulated.scenario, day, symbol, topic)
    assert lines == example_lines(simulated.scenario, day, symbol, topic)
    request = read_request(json.dumps(json.loads("".join(lines))))
    released = released_of(request)
    assert released is not None
    assert (released.symbol, released.symbols) == (symbol, 12)
    assert released.epsilon == delivery_of(simulated.scenario).guarantee().epsilon
    assert "user" not in request
    assert "device" not in request
    assert request["site"]["cat"] == [f"IAB{topic + 1}"]


def test_users_who_released_nothing_are_sold_by_context() -> None:
    scenario = market().scenario
    delivery = delivery_of(scenario)
    text = request_text(scenario, delivery, 12, 0, SeededSource(1, "request"))
    assert released_of(read_request(text)) is None
    blind = market(choice="random").scenario
    text = request_text(blind, delivery_of(blind), 3, 0, SeededSource(1, "blind"))
    assert released_of(read_request(text)) is None


@pytest.mark.statistical
def test_errors_take_users_for_independent_and_not_their_impressions(seed: int) -> None:
    # 400 users with 25 impressions each that are all alike: the mean of 10,000 errs like one of
    # 400. 2,000 repetitions: the root mean square of mean over error is 1 within five standard
    # errors of 1 / sqrt(4,000); taking impressions for independent it would be 5.
    draw = SeededSource(seed, "clusters").generator()
    user = np.repeat(np.arange(400), 25)
    scores = []
    for _ in range(2_000):
        mean = mean_of(np.repeat(draw.normal(0, 1, 400), 25), user)
        scores.append(mean.value / mean.standard_error)
    assert abs(math.sqrt(np.mean(np.square(scores))) - 1) < 5 / math.sqrt(4_000) + 0.01
    assert mean_of(np.zeros(0), user[:0]).value == 0.0
    assert math.isnan(mean_of(np.ones(3), np.zeros(3, dtype=np.int64)).standard_error)
