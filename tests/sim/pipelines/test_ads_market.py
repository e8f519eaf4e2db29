"""The auction in the world: three regimes on the same impressions, budgets, and bid requests."""

import json
import math

import numpy as np
import pytest

from ads_worlds import AdsRun, ads_world, run_ads_world
from noisefloor.ads.auction.openrtb import read_request, released_of
from noisefloor.randomness import SeededSource
from noisefloor_sim.pipelines.ads.delivery import delivery_of
from noisefloor_sim.pipelines.ads.market import EACH_DAY, example_lines, request_text
from noisefloor_sim.pipelines.ads.sales import REGIMES, mean_of

FIGURES = ("revenue", "value", "surplus", "fill", "relevance")


def market(epsilon: float = 4.0, choice: str = "argmax", **auction: object) -> AdsRun:
    """Let a world sell its impressions."""
    return run_ads_world(
        ads_world(
            {
                "training": {"method": "open"},
                "delivery": {"choice": choice, "epsilon": epsilon},
                "auction": {"run": True, **auction},
            },
            seed=45,
            population={"users": 3000, "cohort": 512},
            tastes={"source": "low-rank", "spread": 0.3},
            behaviour={"ads": 12, "interest_lift": 8.0},
        )
    )


def test_three_regimes_sell_the_same_impressions_within_their_budgets() -> None:
    simulated = market()
    counts = {simulated.metric(f"auction.{it}.{name}").n for it in REGIMES for name in FIGURES}
    assert len(counts) == 1
    assert simulated.value("auction.budget_overspent") == 0
    for regime in REGIMES:
        value, price = (simulated.value(f"auction.{regime}.{it}") for it in ("value", "revenue"))
        assert simulated.value(f"auction.{regime}.surplus") == pytest.approx(value - price)
        assert 0 <= simulated.value(f"auction.{regime}.fill") <= 1


def test_what_bidders_receive_is_worth_something() -> None:
    # The gain of the protected regime over context is paired, user by user. Symbols that are
    # handed out at random gain nothing but what noisy tables do: far less.
    simulated = market(8.0)
    gain, blind = (simulated.metric(f"auction.gain.{name}") for name in ("value", "blind"))
    assert gain.low > 4 * max(0.0, blind.value)
    assert gain.low > blind.high
    tracking, protected, contextual = (simulated.metric(f"auction.{it}.value") for it in REGIMES)
    assert tracking.low > protected.high
    assert protected.low > contextual.high
    assert gain.value == pytest.approx(protected.value - contextual.value)
    assert 0.2 < simulated.value("auction.gap_closed") < 0.8


def test_more_epsilon_tells_bidders_more_and_blind_requests_tell_nothing() -> None:
    closed = [market(epsilon).value("auction.gap_closed") for epsilon in (1.0, 4.0, 8.0)]
    assert closed == sorted(closed)
    # What noise in tables does by itself is a few per cent of the gap.
    assert abs(market(choice="random").value("auction.gap_closed")) < 0.1


def test_first_prices_sell_as_well() -> None:
    simulated = market(price="first")
    assert simulated.value("auction.budget_overspent") == 0
    assert simulated.value("auction.tracking.value") > simulated.value("auction.contextual.value")


def test_users_beyond_the_limit_are_not_sold() -> None:
    simulated = market(users=300)
    users = np.concatenate([day.user for day in simulated.ads.market.days.values()])  # type: ignore[union-attr]  # it runs
    assert users.max() < 300
    assert not (users % 2).any()
    assert not simulated.ads.market.lots  # type: ignore[union-attr]  # sold days are forgotten


def test_a_floor_above_every_bid_sells_nothing() -> None:
    simulated = market(floor_micros=10**9)
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
