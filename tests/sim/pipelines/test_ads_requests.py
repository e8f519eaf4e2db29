"""Requests cross the network as frames: the ad server counts what was drawn, row by row."""

from typing import Any

import numpy as np
import pytest

from ads_worlds import ads_world
from noisefloor.ads.delivery import AdDelivery
from noisefloor.randomness import new_run
from noisefloor.wire import Kind, SealedFrame, decode_frame
from noisefloor_sim.pipelines import PIPELINES
from noisefloor_sim.pipelines.ads.pipeline import AdsPipeline
from noisefloor_sim.pipelines.api import Findings, SentBidRequests, SentRequests, ServedAds
from noisefloor_sim.runs.ad_serving import AdServing
from noisefloor_sim.runs.engine import Engine
from noisefloor_sim.scenario import Scenario

OPEN = {"method": "open"}
"""Training without frames: only requests and impressions cross the network."""


class Spy:
    """What the ad pipeline of a world served, cohort after cohort."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.requests: list[SentRequests] = []
        self.bids: list[SentBidRequests] = []
        serve = AdsPipeline.serve

        def spied(pipeline: AdsPipeline, *given: Any) -> ServedAds:  # Any: as serve takes them
            served = serve(pipeline, *given)
            self.requests += [] if served.requests is None else [served.requests]
            self.bids += [] if served.bid_requests is None else [served.bid_requests]
            return served

        monkeypatch.setattr(AdsPipeline, "serve", spied)


def run_days_of(scenario: Scenario, order: list[int] | None = None) -> tuple[Engine, AdServing]:
    """Let the days of a world pass."""
    with new_run():
        engine = Engine(scenario, PIPELINES, order=order)
        engine.run_days()
    assert engine.ads is not None
    return engine, engine.ads


def delivery_of(engine: Engine) -> AdDelivery:
    pipeline = engine.pipelines["ads"]
    assert isinstance(pipeline, AdsPipeline)
    return pipeline.delivery.delivery


def rows_of(kind: Kind, frames: tuple[SealedFrame, ...], day: int) -> dict[str, Any]:
    """Return what frames hold, in the order in which it was written."""
    read = [decode_frame(frame.data, {kind.name: kind}) for frame in frames]
    assert [one.epoch for one in read] == [day] * len(frames)
    assert [one.batch_id for one in read] == [frame.batch_id for frame in frames]
    order = np.concatenate([frame.order for frame in frames])
    decoded = [kind.decode(one.batch) for one in read]
    back = np.argsort(order)
    assert np.array_equal(order[back], np.arange(len(order)))
    return {name: np.concatenate([one[name] for one in decoded])[back] for name, _ in kind.columns}


@pytest.mark.parametrize("fresh", ["day", "impression"])
@pytest.mark.parametrize("choice", ["top-set", "slate", "random", "exact"])
def test_the_ad_server_counts_what_devices_drew(
    choice: str, fresh: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spy, block = Spy(monkeypatch), {"choice": choice, "fresh": fresh}
    engine, ads = run_days_of(ads_world({"training": OPEN, "delivery": block}))
    delivery, pipeline = delivery_of(engine), engine.pipelines["ads"]
    assert isinstance(pipeline, AdsPipeline)
    for day in range(engine.scenario.days):
        sent = [one for one in spy.requests if one.epoch == day]
        drawn = np.concatenate([one.requests for one in sent])
        tally, rows = ads.server.requests(delivery.kind.name, day)
        assert tally.tolist() == delivery.tally(drawn).tolist()
        assert rows == len(drawn) == pipeline.delivery.statistics[day].requests > 0
    for one in spy.requests:
        (found,) = rows_of(one.kind, one.frames, one.epoch).values()
        assert np.array_equal(found, one.requests)
        assert len(one.users) == len(one.requests)
        assert (np.diff(one.users) >= (fresh == "day")).all()
        if choice == "exact":  # the request names the best score: rows and users belong together
            assert np.array_equal(one.requests, one.scores[one.users].argmax(axis=1))


def test_a_request_that_is_not_paid_for_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    spy = Spy(monkeypatch)
    block = {"choice": "argmax", "epsilon": 1.0, "exhausted": "repeat"}
    engine, ads = run_days_of(ads_world({"training": OPEN, "delivery": block}, budget=1.0, days=3))
    counted = [ads.server.requests("ad-requests", day)[1] for day in range(3)]
    assert counted[0] > 0
    paid = [(one.frames[0].batch_id, user) for one in spy.requests for user in one.users]
    assert len(paid) == sum(counted) <= engine.scenario.population.users
    assert counted[2] < counted[0]


@pytest.mark.parametrize(("choice", "has_symbols"), [("argmax", True), ("random", False)])
def test_the_day_s_bid_requests_hold_symbol_and_topic_of_what_is_sold(
    choice: str, has_symbols: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    spy = Spy(monkeypatch)
    block = {"training": OPEN, "delivery": {"choice": choice}}
    scenario = ads_world({**block, "auction": {"run": True, "users": 600}})
    engine, ads = run_days_of(scenario)
    pipeline = engine.pipelines["ads"]
    assert isinstance(pipeline, AdsPipeline) and pipeline.market is not None
    assert [one.epoch for one in spy.bids] == [0, 1]
    assert pipeline.market.last is not None
    assert np.array_equal(spy.bids[1].users, pipeline.market.last.user)
    for one in spy.bids:
        found = rows_of(one.kind, one.frames, one.epoch)
        assert set(found) == {"symbol", "topic"}
        assert all(np.array_equal(found[name], one.columns[name]) for name in found)
        assert one.users.max() < 600 and not (one.users % 2).any()
        assert (found["symbol"] < 6).any() == has_symbols  # 6 ads: 6 says that none was released
        counts = [np.bincount(found["symbol"], minlength=7), np.bincount(found["topic"])]
        tally, rows = ads.server.requests("bid-requests", one.epoch)
        assert rows == len(one.users)
        assert np.array_equal(tally[:7], counts[0])
        assert np.array_equal(tally[7 : 7 + len(counts[1])], counts[1])


def test_what_is_counted_does_not_depend_on_the_order_of_cohorts() -> None:
    scenario = ads_world(
        {"training": OPEN, "auction": {"run": True}}, network={"loss": 0.3, "retries": 1}
    )
    counted = []
    for order in (None, [5, 2, 0, 4, 1, 3]):
        _, ads = run_days_of(scenario, order)
        kinds = ("ad-requests", "bid-requests")
        released = [ads.server.requests(kind, day) for kind in kinds for day in range(2)]
        counted.append([(tally.tolist(), rows) for tally, rows in released])
    assert counted[0] == counted[1]


def test_a_lost_request_changes_counts_and_nothing_that_is_shown() -> None:
    found: list[Findings] = []
    counted = []
    for loss in (0.0, 0.9):
        network = {"loss": loss, "retries": 0}
        with new_run():
            engine = Engine(ads_world({"training": OPEN}, network=network), PIPELINES)
            found.append(engine.run().findings["ads"])
        assert engine.ads is not None
        counted.append(sum(engine.ads.server.requests("ad-requests", day)[1] for day in (0, 1)))
    assert counted[1] < counted[0]
    # Two games are played with the requests that arrived.
    of_arrived = ("attack.activity.", "attack.linking.")
    kept = [[one for one in some.metrics if not one.name.startswith(of_arrived)] for some in found]
    assert kept[1] == kept[0]
    # What is lost is not audited either: claims say the same but for that.
    said = [[(one.claim.claimed, one.claim.proved) for one in some.claims] for some in found]
    assert said[1] == said[0]


def test_requests_are_in_the_counts_of_frames_and_never_at_the_aggregator() -> None:
    scenario = ads_world({"training": OPEN, "delivery": {"choice": "slate"}})
    with new_run():
        engine = Engine(scenario, PIPELINES)
        world = {metric.name: metric.value for metric in engine.run().world}
    assert engine.ads is not None
    cohorts, days = 6, 2
    assert engine.ads.server.counters.counted == cohorts * days  # slates: no open impressions
    assert engine.aggregator.counters.counted == cohorts * days  # reports of the shown ad
    assert world["frames_sent"] == world["frames_counted"] == 2 * cohorts * days
    assert world["frames_dead"] == 0
