"""The adversary against ads: below every bound, on every closed form, and calibrated."""

import math

import numpy as np
import pytest

from ads_worlds import BITS, AdsRun, ads_world, run_ads_world
from noisefloor.ads.delivery.ad_request import AdDelivery, AdSelection
from noisefloor.adversary.ads.side_channel import class_success
from noisefloor.adversary.audit.intervals import lower_limit, upper_limit
from noisefloor_sim.pipelines.ads.attacks import first_hour_distribution, guess_first
from noisefloor_sim.pipelines.ads.request_distribution import RequestDistribution
from noisefloor_sim.scenario import Scenario
from statistics_of_tests import FALSE_ALARM

OPEN = {"method": "open"}
APPROXIMATE = ("membership",)
"""Games whose closed form is a limit law."""

PLAYED = {
    "bits-top-set": ads_world({"training": BITS, "canaries": 4000}),
    "bits-once-paper": ads_world({"training": BITS | {"once": True}}, variant="paper"),
    "laplace-argmax": ads_world(
        {"training": {"method": "laplace", "rounds": 3}, "delivery": {"choice": "argmax"}}
    ),
    "laplace-paper": ads_world({"training": {"method": "laplace", "rounds": 2}}, variant="paper"),
    "spectral": ads_world({"epsilon": 4.0, "training": {"method": "spectral"}}),
    "open-slate": ads_world({"training": OPEN, "delivery": {"choice": "slate"}}),
    "open-impression": ads_world({"training": OPEN, "delivery": {"fresh": "impression"}}),
    "open-noisy-max": ads_world({"training": OPEN, "delivery": {"choice": "noisy-max"}}),
    "open-flip": ads_world({"training": OPEN, "delivery": {"choice": "permute-and-flip"}}),
    "unlinked": ads_world({"training": OPEN}, threat={"linked": False}),
}


def games(simulated: AdsRun) -> list[str]:
    """Return the names of the games that were played."""
    names = [metric.name.split(".") for metric in simulated.found.metrics]
    return [name[1] for name in names if name[0] == "attack" and name[-1] == "success"]


@pytest.mark.statistical
@pytest.mark.parametrize("name", PLAYED)
def test_no_attack_passes_its_bound_and_each_meets_its_closed_form(name: str) -> None:
    # Some hundred games share FALSE_ALARM, by exact binomial limits.
    simulated, alpha = run_ads_world(PLAYED[name]), FALSE_ALARM / 200
    for game in games(simulated):
        success = simulated.metric(f"attack.{game}.success")
        right = round(success.value * success.n)
        low = float(lower_limit(right, success.n, alpha))
        high = float(upper_limit(right, success.n, alpha))
        if simulated.has(f"attack.{game}.bound"):
            assert low <= simulated.value(f"attack.{game}.bound") + 1e-9
        if simulated.has(f"attack.{game}.closed_form") and game not in APPROXIMATE:
            assert low <= simulated.value(f"attack.{game}.closed_form") + 1e-9
            assert simulated.value(f"attack.{game}.closed_form") <= high + 1e-9


def test_each_way_is_attacked_in_its_own_games() -> None:
    requests = {"favourite", "topic", "null", "planted", "activity"}
    assert {"rated", "rating", "membership", *requests} <= set(
        games(run_ads_world(PLAYED["bits-top-set"]))
    )
    assert {"rated", "rating", *requests} <= set(games(run_ads_world(PLAYED["laplace-argmax"])))
    assert {"rated", "rating", "activity"} <= set(games(run_ads_world(PLAYED["spectral"])))
    assert "linking" not in games(run_ads_world(PLAYED["open-slate"]))
    assert "favourite_all_days" not in games(run_ads_world(PLAYED["unlinked"]))
    assert "favourite_reused" not in games(run_ads_world(PLAYED["open-impression"]))


@pytest.mark.parametrize("name", ["bits-top-set", "open-slate", "open-noisy-max", "unlinked"])
def test_impressions_that_share_a_request_tell_as_much_as_one(name: str) -> None:
    simulated = run_ads_world(PLAYED[name])
    for figure in ("closed_form", "bound", "prior"):
        reused, one = (f"attack.{it}.{figure}" for it in ("favourite_reused", "favourite"))
        assert simulated.value(reused) == pytest.approx(simulated.value(one), abs=1e-12)


def test_fresh_requests_add_up() -> None:
    simulated = run_ads_world(PLAYED["open-impression"])
    one, many = (
        simulated.value(f"attack.favourite{name}.closed_form") for name in ("", "_all_days")
    )
    assert many > one + 0.05
    assert simulated.value("attack.favourite_all_days.bound") > 0.999


def test_a_budget_bounds_how_many_requests_are_joined() -> None:
    settings = {"training": OPEN, "epsilon": 1.0}
    poor, rich = (
        run_ads_world(ads_world(settings, budget=budget, days=6)) for budget in (2.0, 1000.0)
    )
    assert poor.value("requests_per_user") == 2
    assert rich.value("requests_per_user") == 6
    success = "attack.favourite_all_days.closed_form"
    assert poor.value("attack.favourite_all_days.bound") < rich.value(
        "attack.favourite_all_days.bound"
    )
    assert not rich.has(success) or poor.value(success) < rich.value(success)


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["bits-top-set", "open-slate", "unlinked"])
def test_the_game_is_blind_to_nothing_and_sees_everything(name: str) -> None:
    # The null: the prior lies within exact binomial limits, FALSE_ALARM. The planted leak is
    # always found.
    simulated = run_ads_world(PLAYED[name])
    null = simulated.metric("attack.null.success")
    right, prior = round(null.value * null.n), simulated.value("attack.null.prior")
    assert float(lower_limit(right, null.n, FALSE_ALARM)) <= prior
    assert prior <= float(upper_limit(right, null.n, FALSE_ALARM))
    assert simulated.value("attack.null.bound") == pytest.approx(prior)
    assert simulated.value("attack.planted.success") == 1.0


def test_noise_on_whole_gradients_that_is_small_hides_nothing() -> None:
    # Four ads, one round, epsilon 40: each bit alone is right with probability 0.993.
    loud = ads_world(
        {"epsilon": 40.0, "training": {"method": "laplace", "rounds": 1}}, behaviour={"ads": 4}
    )
    simulated = run_ads_world(loud)
    assert simulated.value("attack.rated.success") > 0.98
    assert simulated.value("attack.rated.success") > run_ads_world(PLAYED["laplace-argmax"]).value(
        "attack.rated.success"
    )


def test_one_request_a_day_reveals_less_activity_than_one_for_each_impression() -> None:
    daily, always = run_ads_world(PLAYED["bits-top-set"]), run_ads_world(PLAYED["open-impression"])
    assert daily.value("attack.activity.closed_form") < always.value("attack.activity.closed_form")
    assert not daily.has("attack.activity.bound")


def test_the_distribution_of_the_first_request_is_that_of_poisson_pages() -> None:
    rates = np.array([[0.2, 1.0, 0.4], [1.0, 2.0, 0.1]])
    distribution = first_hour_distribution(rates)
    assert np.allclose(distribution.sum(axis=1), 1)
    assert distribution[0, 1] == pytest.approx(math.exp(-0.2) * (1 - math.exp(-1.0)))
    assert distribution[1, 3] == pytest.approx(math.exp(-3.1))
    views = np.array([[0, 0, 0], [1, 0, 5], [0, 2, 0]])
    outcome = guess_first(views, np.array([0, 1, 1]), rates)
    assert outcome.right == 2  # the first page in the second hour looks like the quiet one
    assert not outcome.is_covered
    whole = class_success(rates)
    assert outcome.closed_form is not None
    assert whole is not None
    assert outcome.closed_form <= whole + 1e-12


@pytest.mark.parametrize("choice", [it for it in AdSelection if it is not AdSelection.EXACT])
def test_a_distribution_that_is_looked_up_is_the_mechanisms_own(choice: AdSelection) -> None:
    delivery = AdDelivery(5, 1.5, choice, top=2, slate=2, high=2.0)
    distribution, row = RequestDistribution(delivery), np.array([0.1, 1.9, 0.4, 1.9, 1.0])
    reports = delivery.outputs()
    expected = delivery.log_likelihood(reports, row)
    for _ in range(2):
        assert np.allclose(distribution.log_likelihood(reports, row), expected, rtol=0, atol=1e-9)
    pair, own = distribution.worst_pair(), delivery.worst_pair()
    assert all(np.array_equal(one, other) for one, other in zip(pair, own, strict=True))


def ratio(scenario: Scenario) -> float:
    """Return how often the favourite is named, over how often blind guessing is right."""
    simulated = run_ads_world(scenario)
    return simulated.value("attack.favourite.closed_form") / simulated.value(
        "attack.favourite.prior"
    )


def test_more_epsilon_tells_more_of_the_favourite() -> None:
    ratios = [
        ratio(ads_world({"training": OPEN, "delivery": {"choice": "argmax", "epsilon": epsilon}}))
        for epsilon in (0.5, 2.0, 6.0)
    ]
    assert ratios == sorted(ratios)
