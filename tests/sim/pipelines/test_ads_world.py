"""The ad pipeline as a whole: order, budgets, explanations, and worlds at the edge."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ads_worlds import BITS, ads_world, run_ads_world
from noisefloor.accounting.entries import MICRO, Amount
from noisefloor.errors import BadParameter
from noisefloor.randomness import new_run
from noisefloor_sim.pipelines import PIPELINES
from noisefloor_sim.runs.engine import Engine, explain_spending
from noisefloor_sim.scenario import Scenario
from properties import examples

TINY = {"users": 300, "cohort": 64}


def small(ads: dict[str, Any] | None = None, **sections: Any) -> Scenario:
    """Return a world of three hundred."""
    chosen: dict[str, Any] = {"population": TINY, "days": 1} | sections
    return ads_world(ads, **chosen)


ORDERED = [
    ads_world(
        {
            "training": BITS | {"local": "step"},
            "delivery": {"choice": "argmax"},
            "auction": {"run": True, "users": 1000},
        },
        {},
        threat={"fakes": 0.1, "pushed_ad": 2, "forgery": "input"},
    ),
    ads_world({"training": {"method": "laplace", "rounds": 2}, "delivery": {"choice": "slate"}}),
    ads_world({"training": {"method": "open"}, "delivery": {"fresh": "impression"}}, budget=30.0),
]


@pytest.mark.parametrize("scenario", ORDERED, ids=["bits-auction", "laplace-slate", "open"])
def test_cohorts_in_another_order_find_the_same(scenario: Scenario) -> None:
    straight, backwards = run_ads_world(scenario), run_ads_world(scenario, [5, 4, 3, 2, 1, 0])
    mixed = run_ads_world(scenario, [3, 0, 5, 1, 4, 2])
    for other in (backwards, mixed):
        # By their text: a NaN is no interval, and equals none.
        assert repr(straight.found) == repr(other.found)
        assert repr(straight.outcome.world) == repr(other.outcome.world)


METHODS = ["spectral", "spectral-lite", "bits", "laplace", "untrained"]


@st.composite
def worlds(draw: st.DrawFn) -> Scenario:
    """Draw a tiny world whose budget may or may not suffice."""
    auctionable = draw(st.booleans())
    choices = ["top-set", "argmax", "random"] if auctionable else ["slate", "noisy-max", "exact"]
    delivery = {
        "choice": draw(st.sampled_from(choices)),
        "fresh": "day" if auctionable else draw(st.sampled_from(["day", "impression"])),
        "exhausted": draw(st.sampled_from(["popular", "repeat"])),
    }
    method = draw(st.sampled_from(METHODS))
    ads = {
        "epsilon": draw(st.sampled_from([0.3, 1.0, 2.7])),
        "training": {"method": method, "rounds": 3, "once": method == "bits"},
        "delivery": delivery,
        "auction": {"run": auctionable},
    }
    clicks = draw(st.sampled_from([None, {"epsilon": 0.7}, {"form": "memoised"}]))
    return ads_world(
        ads,
        clicks,
        seed=draw(st.integers(0, 1 << 40)),
        days=draw(st.integers(1, 3)),
        budget=draw(st.sampled_from([0.1, 1.0, 3.3, 9.0, 1000.0])),
        variant=draw(st.sampled_from(["paper", "corrected"])),
        population={"users": 90, "cohort": 64},
        devices={"sync_per_day": draw(st.sampled_from([0.3, 1.0]))},
    )


@given(scenario=worlds(), user=st.integers(0, 89))
@examples(20)
def test_nobody_passes_the_cap_and_every_spend_is_accounted_for(
    scenario: Scenario, user: int
) -> None:
    cap = Amount.budget(scenario.budget, 0.0).micro_epsilon
    with new_run():
        engine = Engine(scenario, PIPELINES)
        engine.run_days()
    for account in engine.accounts.values():
        left = account.device_budgets.left
        assert (left >= 0).all()
        gone = cap * len(left) - int(left.sum())
        assert (left.sum(axis=1) <= cap).all()
        assert gone == sum(account.spent.values())
    number, row = divmod(user, 64)
    remains = int(engine.accounts[number].device_budgets.left[row].sum()) / MICRO
    with new_run():
        lines = explain_spending(scenario, PIPELINES, user)
    assert len(lines) == scenario.days
    assert lines[-1].endswith(f"{remains:.6f} left")


def test_explaining_names_the_flows_that_spent() -> None:
    scenario = ads_world({"training": BITS, "delivery": {"choice": "slate"}}, {})
    text = ""
    for user in (0, 300, 1499):
        with new_run():
            text += " ".join(explain_spending(scenario, PIPELINES, user))
    for flow in ("training report", "ad request", "shown-ad report", "click report"):
        assert flow in text


def test_frames_of_training_are_conserved_among_all_roles() -> None:
    simulated = run_ads_world(ORDERED[0])
    world = {metric.name: metric.value for metric in simulated.outcome.world}
    outcomes = ("counted", "duplicate", "late", "dead")
    assert world["frames_delivered"] == sum(world[f"frames_{name}"] for name in outcomes)
    (counters,) = simulated.ads.counters
    assert counters.is_conserved
    assert counters.counted > 0


EDGES = {
    "two-ads": small({"training": BITS, "delivery": {"choice": "slate"}}, behaviour={"ads": 2}),
    "more-factors-than-ads": small({"training": BITS | {"dimension": 9}}),
    "nobody-in-contact": small(
        {"training": BITS, "auction": {"run": True}},
        devices={"sync_per_day": 0.0},
        threat={"fakes": 0.1},
    ),
    "no-slots": small(
        {"delivery": {"choice": "slate", "fresh": "impression"}},
        population=TINY | {"engagement": {"mean_views_per_day": 0.0001}},
    ),
    "no-ratings": small({"training": {"method": "open"}}, behaviour={"ads": 6, "rated_share": 0}),
    "one-user": small({"auction": {"run": True}}, population={"users": 1, "cohort": 16}),
    "everybody-drops-out": small({"training": {"drop_out": 1.0}}),
    "nobody-tracked": small(
        {"training": {"method": "untrained"}, "delivery": {"choice": "exact"}}
    ),
    "few-fakes": small({"training": BITS}, threat={"fakes": 0.001}),
    "one-topic": small({"auction": {"run": True}}, population=TINY | {"topics": 1}),
}


@pytest.mark.parametrize("name", EDGES)
def test_worlds_at_the_edge_are_simulated_and_reported(name: str) -> None:
    simulated = run_ads_world(EDGES[name])
    assert not any(np.isnan(metric.value) for metric in simulated.found.metrics)
    assert simulated.value("budget_overspent") == simulated.value("budget_unaccounted") == 0
    assert {named.mechanism for named in simulated.found.claims} >= {"request", "whole-day"}


@pytest.mark.parametrize(
    ("ads", "sections", "key"),
    [
        ({}, {"behaviour": {"ads": 2}}, "pipelines.ads.training.method='spectral'"),
        ({}, {"behaviour": {"ads": 300}}, "pipelines.ads.training.method='spectral'"),
        ({"training": {"dimension": 6}}, {}, "pipelines.ads.training.dimension=6"),
        ({"epsilon": 1e-9, "training": BITS}, {}, "pipelines.ads.training.epsilon="),
        ({"training": BITS}, {"threat": {"fakes": 0.1, "pushed_ad": 6}}, "threat.pushed_ad=6"),
        (
            {"training": BITS, "delivery": {"epsilon": 1e-12}},
            {},
            "pipelines.ads.delivery.epsilon=",
        ),
        (
            {"training": BITS, "delivery": {"choice": "exponential"}},
            {"behaviour": {"ads": 2000}},
            "behaviour.ads=2000",
        ),
    ],
)
def test_settings_that_do_not_go_together_name_their_key(
    ads: dict[str, Any], sections: dict[str, Any], key: str
) -> None:
    scenario = small(ads, **sections)
    with new_run(), pytest.raises(BadParameter) as error:
        Engine(scenario, PIPELINES)
    assert key in str(error.value)
