"""The adversary against ads: below every bound, on every closed form, and calibrated."""

from typing import Any

import numpy as np
import pytest

from ads_worlds import BITS, AdsRun, ads_world, run_ads_world
from noisefloor.ads.delivery import AD_REQUESTS
from noisefloor.ads.delivery.ad_request import AdDelivery, AdSelection
from noisefloor.adversary.audit.intervals import lower_limit, upper_limit
from noisefloor.randomness import SeededSource, new_run
from noisefloor_sim.inspection import Transcript
from noisefloor_sim.pipelines.ads import attacks
from noisefloor_sim.pipelines.ads.attacks import DEVICES_LINKED, play_linking
from noisefloor_sim.pipelines.ads.candidates import CandidateProfiles
from noisefloor_sim.pipelines.ads.request_distribution import RequestDistribution
from noisefloor_sim.pipelines.api import SimulationContext
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


@pytest.mark.statistical
def test_one_request_a_day_reveals_less_activity_than_one_for_each_impression() -> None:
    # Exact binomial limits, FALSE_ALARM in all: nearly everybody asks on each of two days.
    daily, always = run_ads_world(PLAYED["bits-top-set"]), run_ads_world(PLAYED["open-impression"])
    assert activity_limits(daily)[1] < activity_limits(always)[0]
    assert activity_limits(always)[0] > 0.5
    assert not daily.has("attack.activity.bound")
    assert not daily.has("attack.activity.closed_form")


@pytest.mark.statistical
def test_classes_that_do_not_differ_in_activity_are_not_distinguished(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The twin of the test above: exact binomial limits, FALSE_ALARM. Where all are expected to be
    # as busy, the first and the last quarter of users are the classes.
    simulated = run_ads_world(PLAYED["open-impression"])
    transcript = simulated.engine.transcript(AD_REQUESTS)
    assert transcript is not None
    monkeypatch.setattr(attacks, "_engagement", lambda *_: np.ones(1500))
    outcome = attacks.play_activity(
        simulated.scenario, simulated.engine, transcript, is_daily=False
    )
    low, high = (
        limit(outcome.right, outcome.n, FALSE_ALARM / 2) for limit in (lower_limit, upper_limit)
    )
    assert low <= 0.5 <= high


def activity_limits(simulated: AdsRun) -> tuple[float, float]:
    """Return between which limits the success of the activity game lies."""
    found = simulated.metric("attack.activity.success")
    right = round(found.value * found.n)
    return (
        float(lower_limit(right, found.n, FALSE_ALARM / 2)),
        float(upper_limit(right, found.n, FALSE_ALARM / 2)),
    )


def test_what_connections_show_is_recorded_only_where_they_are_linked() -> None:
    unlinked, linked = run_ads_world(PLAYED["unlinked"]), run_ads_world(PLAYED["open-noisy-max"])
    assert unlinked.engine.transcript(AD_REQUESTS) is None
    assert "activity" not in games(unlinked)
    assert unlinked.has("attack.linking.closed_form")  # drawn for the game, not of the run
    transcript = linked.engine.transcript(AD_REQUESTS)
    assert transcript is not None
    asked = linked.ads.delivery.asked
    counted = transcript.counts(1500, 2).sum(axis=1)
    assert np.array_equal(counted, np.concatenate([asked[one] for one in sorted(asked)]))


def test_a_transcript_does_not_depend_on_the_order_of_cohorts() -> None:
    scenario = PLAYED["open-impression"]
    first, second = (
        run_ads_world(scenario, order).engine.transcript(AD_REQUESTS)
        for order in (None, [3, 0, 5, 1, 4, 2])
    )
    assert first is not None
    assert second is not None
    assert np.array_equal(first.counts(1500, 2), second.counts(1500, 2))
    halves = zip(first.halves(60) or (), second.halves(60) or (), strict=True)
    assert [np.array_equal(one, other) for one, other in halves] == [True, True]


@pytest.mark.statistical
def test_requests_of_a_run_are_linked_by_what_they_ask_for() -> None:
    # Exact binomial limits, FALSE_ALARM. The twin: partners of other users.
    delivery = {"fresh": "impression", "choice": "argmax"}
    simulated = run_ads_world(
        ads_world(
            {"training": OPEN, "epsilon": 8.0, "delivery": delivery},
            behaviour={"ads": 40},
            budget=100_000.0,
        )
    )
    found = simulated.metric("attack.linking.success")
    right = round(found.value * found.n)
    assert float(lower_limit(right, found.n, FALSE_ALARM)) > 1 / DEVICES_LINKED
    phase, context = simulated.ads.delivery, simulated.engine
    distribution = RequestDistribution(phase.delivery)
    people = CandidateProfiles.of(phase.scenario, context)
    rows = phase.scored(people.ratings).astype(np.float64)
    transcript = context.transcript(AD_REQUESTS)
    assert transcript is not None
    moved = MovedTranscript(transcript)
    with new_run():
        source = SeededSource(5, "moved")
        outcome = play_linking(distribution, rows, moved, 1, 1000, source)
    assert outcome.n == found.n
    assert float(lower_limit(outcome.right, outcome.n, FALSE_ALARM)) <= 1 / DEVICES_LINKED


class MovedTranscript(Transcript):
    """A transcript whose second halves are each of another user than the first."""

    def __init__(self, given: Transcript) -> None:
        super().__init__()
        self.given = given

    def halves(self, most: int) -> Any:
        """Return the halves, the second moved on by one user."""
        first, second = self.given.halves(most) or pytest.fail("nobody asked twice")
        return first, np.roll(second, 1, axis=0)


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


def test_the_adversary_tells_apart_the_same_people_at_any_epsilon_variant_and_model() -> None:
    settings = [
        ads_world({"training": BITS, "epsilon": 0.5}),
        ads_world({"training": BITS, "epsilon": 8.0}),
        ads_world({"training": OPEN}, variant="paper"),
    ]
    worlds = [run_ads_world(one) for one in settings]
    found = [CandidateProfiles.of(one.ads.scenario, context_of(one)) for one in worlds]
    for one in found[1:]:
        assert one.users.tolist() == found[0].users.tolist()
        assert one.topics == found[0].topics
        assert (one.liking == found[0].liking).all()
        assert (one.ratings.rated == found[0].ratings.rated).all()
    # The twin: what the model of the run likes best differs, and so would such candidates.
    best = [
        one.ads.delivery.scored(people.ratings).argmax(axis=1).tolist()
        for one, people in zip(worlds, found, strict=True)
    ]
    assert best[0] != best[1]
    likes = found[0].liking.argmax(axis=1)
    assert len(set(likes.tolist())) == len(found[0]) > 2


def context_of(simulated: AdsRun) -> SimulationContext:
    context = simulated.ads.training.context
    assert context is not None
    return context
