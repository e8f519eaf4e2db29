"""The shipped scenarios on ads: they can be read, and small ones of them keep their gates."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ads_worlds import ads_world, run_ads_world
from noisefloor_sim.pipelines import BLOCKS
from noisefloor_sim.scenario import load
from scenario_gates import failed_gates

ROOT = Path(__file__).resolve().parents[3]
SHIPPED = sorted((ROOT / "scenarios").glob("ads-*.yaml"))
SMALL = (
    "population.users=300",
    "population.cohort=128",
    "behaviour.ads=8",
    "pipelines.ads.canaries=1000",
    "sweep.seeds=1",
)
FEWER = {
    "ads-fraud": ("sweep.pipelines.clicks.epsilon=[4.0]",),
    "ads-auction": ("sweep.pipelines.ads.delivery.epsilon=[8.0]", "days=3"),
    "ads-epsilon": ("sweep.pipelines.ads.epsilon=[0.5, 8.0]",),
}
"""Shorter sweeps, where the shipped ones are long."""

BY_SIZE = (
    *("ads.rmse", "ads.relevance > ads.relevance.popular"),
    *("ads.auction", "With low-rank tastes", "ads.attack.favourite_all_days"),
)
"""Gates and findings that need as many people as the file has."""


def test_there_are_scenarios_on_ads() -> None:
    assert len(SHIPPED) >= 7


@pytest.mark.slow
@pytest.mark.parametrize("path", SHIPPED, ids=[path.stem for path in SHIPPED])
def test_a_small_one_keeps_the_gates_that_do_not_depend_on_size(path: Path) -> None:
    scenario = load(path, BLOCKS, [*SMALL, *FEWER.get(path.stem, ())])
    assert failed_gates(scenario, leaving_out=BY_SIZE) == []


def test_real_ratings_and_click_rates_run_from_end_to_end(
    real_data: Callable[[str], None],
) -> None:
    real_data("movielens-100k")
    real_data("open-bandit")
    scenario = ads_world(
        {
            "training": {"method": "open"},
            "delivery": {"choice": "argmax", "epsilon": 4.0},
            "auction": {"run": True},
        },
        {},
        tastes={"source": "movielens-100k"},
        behaviour={"ads": 8, "click_rates": "open-bandit"},
    )
    simulated = run_ads_world(scenario)
    assert simulated.value("rmse.open") < simulated.value("rmse.global_mean")
    assert simulated.value("relevance") > simulated.value("relevance.popular")
    assert simulated.claim("whole-day").verdict == "holds"
    rates = simulated.engine.ad_world.base_rate
    assert rates.max() > rates.min()
    assert simulated.value("auction.gain.tracking") > simulated.value("auction.gain.contextual")
