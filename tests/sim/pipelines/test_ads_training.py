"""Training in the world: every way learns and reports; noise, stragglers and scores are honest."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from ads_worlds import BITS, ads_world, run_ads_world
from noisefloor.ads.training.evaluation import rmse
from noisefloor.ads.training.factorisation import fit_tastes, random_model
from noisefloor.errors import BadScenario
from noisefloor.randomness import new_run
from noisefloor_sim.pipelines import PIPELINES
from noisefloor_sim.pipelines.ads.ratings import (
    evaluate,
    kept_ratings,
    means_of,
    scored_ratings,
    split_ratings,
)
from noisefloor_sim.pipelines.ads.rounds import Stragglers
from noisefloor_sim.pipelines.ads.training_plan import expected_users, method_of, training_of
from noisefloor_sim.runs.engine import Engine
from noisefloor_sim.scenario import Scenario

METHODS = ("spectral", "spectral-lite", "bits", "laplace", "means", "untrained", "open")


def trained(method: str, **settings: object) -> Scenario:
    """Return a world that trains in one way."""
    return ads_world({"training": {"method": method, "rounds": 3, **settings}})


def test_the_paper_has_two_versions_and_whatever_else_is_asked_for_is_bits() -> None:
    bits, *others = (
        method_of(ads_world({"training": {"method": method, "rounds": 3}}, variant="paper"))
        for method in ("bits", "spectral", "spectral-lite")
    )
    assert others == [bits] * 2


@pytest.mark.parametrize(
    ("method", "variant"),
    [*((method, "corrected") for method in METHODS), ("bits", "paper"), ("laplace", "paper")],
)
def test_every_way_of_training_is_scored_beside_its_baselines(method: str, variant: str) -> None:
    simulated = run_ads_world(
        ads_world({"training": {"method": method, "rounds": 3}}, variant=variant)
    )
    for name in ("", ".item_means", ".global_mean", ".untrained", ".open"):
        assert 0 < simulated.value(f"rmse{name}") < 0.6
        assert 0 <= simulated.value(f"hits{name}") <= 1
    lead = simulated.value("rmse.item_means") - simulated.value("rmse")
    assert simulated.value("rmse_lead") == pytest.approx(lead)
    is_private = method not in ("means", "untrained", "open")
    assert (simulated.value("training.reports") > 0) is is_private
    assert simulated.has("training.drift.round_2") is is_private
    if is_private:
        assert simulated.claim("training").verdict in ("holds", "overclaimed")


def test_so_few_users_get_protected_means_whatever_the_method() -> None:
    scenario = trained("bits", fallback=True)
    simulated = run_ads_world(scenario)
    assert simulated.value("training.fallback") == 1
    assert simulated.value("training.noise_over_signal") > 1
    assert simulated.value("training.factors_used") == 0
    assert simulated.claim("training").verdict == "holds"
    assert simulated.claim("training").evidence[0].verdict in ("consistent", "blind")
    for method in ("spectral", "spectral-lite", "laplace"):
        assert training_of(trained(method, fallback=True)) == training_of(scenario)
        assert training_of(trained(method)) == method_of(trained(method)) != training_of(scenario)
    # The prediction is shown where the method runs all the same: switched off, or as printed.
    off = run_ads_world(trained("bits"))
    assert off.value("training.fallback") == 0
    assert off.value("training.noise_over_signal") == simulated.value("training.noise_over_signal")
    printed = scenario.model_copy(update={"variant": "paper"})
    assert training_of(printed) == method_of(printed)


def test_enough_users_are_expected_after_those_who_drop_out() -> None:
    few = trained("bits", drop_out=0.5)
    assert expected_users(few) == few.population.users // 2
    assert expected_users(trained("bits", drop_out=1.0)) == 1


def test_tastes_without_bounds_leave_nothing_proved_as_printed() -> None:
    settings = {"training": {"method": "laplace", "rounds": 2, "bounded": False, "local": "step"}}
    printed = run_ads_world(ads_world(settings, variant="paper", days=1)).claim("training")
    assert math.isinf(printed.proved.epsilon)
    assert printed.verdict == "overclaimed"
    assert "nothing bounds the tastes" in printed.proved.reason
    assert printed.evidence[0].misfit == ""
    # Corrected, gradients are clipped, whatever tastes are.
    assert run_ads_world(ads_world(settings, days=1)).claim("training").verdict == "holds"
    with pytest.raises(BadScenario, match="laplace"):
        trained("bits", bounded=False)


def test_models_without_private_training_are_their_own_baselines() -> None:
    for method, baseline in (
        ("means", "item_means"),
        ("untrained", "untrained"),
        ("open", "open"),
    ):
        simulated = run_ads_world(trained(method))
        assert simulated.value("rmse") == simulated.value(f"rmse.{baseline}")
        assert not simulated.has("spent.training_report")


def test_open_ratings_teach_what_private_ones_try_to() -> None:
    simulated = run_ads_world(trained("open"))
    assert simulated.value("rmse_lead") > 0.01
    assert (
        simulated.value("rmse.open")
        < simulated.value("rmse.item_means")
        < simulated.value("rmse.untrained")
    )


@pytest.mark.statistical
@pytest.mark.parametrize("method", ["bits", "laplace"])
def test_measured_noise_is_that_of_the_formula(method: str) -> None:
    # 8 ads, 10 rounds: 320 numbers of bits, 240 of gradients. A deviation measured on so many
    # errs by 1 / sqrt(2 n); five and a fifth of that are below FALSE_ALARM. The twin: noise half
    # as large again is rejected.
    training = {"method": method, "rounds": 10}
    simulated = run_ads_world(ads_world({"training": training}, behaviour={"ads": 8}, days=1))
    measured, formula = (
        simulated.metric(f"training.noise.{it}") for it in ("measured", "formula")
    )
    assert measured.n == (320 if method == "bits" else 240)
    allowed = 5.2 / math.sqrt(2 * measured.n)
    assert abs(measured.value / formula.value - 1) < allowed
    assert abs(measured.value / (1.5 * formula.value) - 1) > allowed
    assert measured.low < measured.value < measured.high


def test_the_users_needed_would_bring_the_noise_down_to_a_tenth_of_the_clip() -> None:
    for method in ("bits", "laplace"):
        simulated = run_ads_world(trained(method))
        needed, n = (
            simulated.value("training.noise.users_needed"),
            simulated.value("training.reports") / 3,
        )
        assert simulated.value("training.noise.formula") * math.sqrt(n / needed) == pytest.approx(
            0.1, rel=0.01
        )


def test_stragglers_that_miss_the_close_are_counted_refused_and_paid() -> None:
    slow = run_ads_world(trained("bits", stragglers=0.5, straggler_h=2.0))
    late, reports = slow.value("training.reports_late"), slow.value("training.reports")
    assert 0.2 < late / reports < 0.4  # half of e**-0.5
    assert slow.value("training.reports_counted_late") == late
    assert slow.value("training.reports_counted") == reports - late
    session = slow.ads.training.session
    assert session is not None
    assert session.learner.counters.late > 0
    prompt = run_ads_world(trained("bits", stragglers=0.0))
    assert prompt.value("training.reports_late") == 0
    assert prompt.value("spent.training_report") == slow.value("spent.training_report")


def test_stragglers_send_when_the_last_of_them_is_ready_and_too_late_at_the_close() -> None:
    delays = Stragglers(np.array([0, 1, 1, 1], np.bool_), np.array([0.0, 0.5, 1.5, 2.0]), 2.0)
    groups = {name: (rows.tolist(), hours) for name, rows, hours in delays.groups()}
    assert groups == {
        "prompt": ([True, False, False, False], 0.0),
        "slow": ([False, True, True, False], 1.5),
        "late": ([False, False, False, True], 2.0),
    }


def test_a_late_report_teaches_nothing() -> None:
    hopeless = run_ads_world(trained("bits", stragglers=1.0, straggler_h=240.0, round_h=0.01))
    counted = hopeless.value("training.reports_counted")
    assert counted < 0.01 * hopeless.value("training.reports")
    assert hopeless.value("spent.training_report") > 1.5


def test_devices_that_drop_out_pay_nothing() -> None:
    simulated = run_ads_world(trained("bits", drop_out=1.0))
    assert simulated.value("training.reports") == simulated.value("spent.training_report") == 0
    assert simulated.value("training.absent") == 3 * 1500


def test_devices_out_of_contact_neither_pay_nor_report() -> None:
    simulated = run_ads_world(ads_world({"training": BITS}, devices={"sync_per_day": 0.0}))
    assert simulated.value("training.reports") == simulated.value("spent.training_report") == 0
    assert simulated.value("training.absent") == 3 * 1500
    assert simulated.value("requests") == simulated.value("spent.ad_request") == 0
    assert simulated.value("personal_share") == 0


def test_a_budget_for_one_round_pays_one_round() -> None:
    # 2 epsilon in three rounds; 0.7 covers one of them, and no request.
    simulated = run_ads_world(ads_world({"training": BITS}, budget=0.7))
    assert simulated.value("training.reports") <= 1500
    assert simulated.value("training.reports_refused") > 1500
    assert simulated.value("requests") == 0
    assert simulated.value("personal_share") == 0


def test_reporting_once_spends_the_whole_epsilon_in_one_round() -> None:
    simulated = run_ads_world(trained("bits", once=True))
    assert simulated.value("training.reports") <= 1500
    # Everybody has one turn, and some are out of contact.
    assert 1.6 < simulated.value("spent.training_report") <= 2.0


def test_devices_remember_tastes_that_take_steps() -> None:
    stepping, fitting = (
        run_ads_world(trained("bits", local="step")),
        run_ads_world(trained("bits")),
    )
    assert set(stepping.ads.training.kept) == set(range(6))
    assert not fitting.ads.training.kept
    assert stepping.value("rmse") != fitting.value("rmse")


def test_what_is_held_out_is_never_trained_on() -> None:
    scenario = trained("bits")
    with new_run():
        engine = Engine(scenario, PIPELINES)
    cohort = engine.cohort(2)
    split = split_ratings(scenario, engine.ad_world.tastes, cohort)
    kept = kept_ratings(scenario, engine.ad_world.tastes, cohort)
    ratings = engine.ad_world.tastes.draw_ratings(cohort)
    assert np.array_equal(kept.rated, split.kept.rated)
    assert not (split.kept.rated & split.held_out.rated).any()
    assert np.array_equal(split.kept.rated | split.held_out.rated, ratings.rated)
    assert 0.15 < split.held_out.rated.sum() / ratings.rated.sum() < 0.25


def test_scores_are_those_of_the_first_users_whatever_the_cohorts() -> None:
    scenario = trained("bits")
    with new_run():
        straight, backwards = (
            Engine(scenario, PIPELINES, order=order) for order in (None, [5, 4, 3, 2, 1, 0])
        )
    one, other = (scored_ratings(scenario, engine) for engine in (straight, backwards))
    assert len(one.kept) == 1500
    assert np.array_equal(one.held_out.rating, other.held_out.rating)


def test_the_score_is_that_of_the_held_out_ratings() -> None:
    scenario = trained("bits")
    with new_run():
        split = scored_ratings(scenario, Engine(scenario, PIPELINES))
    model = random_model(6, 3, 5)
    found = {metric.name: metric.value for metric in evaluate(model, split, 0.1)}
    tastes = fit_tastes(model, split.kept, 0.1)
    assert found["rmse"] == rmse(model, tastes, split.held_out)
    means = means_of(split.kept, 3)
    expected = np.where(split.kept.rated, split.kept.rating, np.nan)
    assert np.allclose(means.base, np.nanmean(expected, axis=0), atol=0.02)


def test_movielens_holds_the_same_ratings_back_of_all_who_share_a_person(
    real_data: Callable[[str], None],
) -> None:
    real_data("movielens-100k")
    scenario = ads_world(tastes={"source": "movielens-100k"}, behaviour={"ads": 20})
    with new_run():
        engine = Engine(scenario, PIPELINES)
    backs: dict[int, set[bytes]] = {}
    for number in range(6):
        cohort = engine.cohort(number)
        persons = engine.ad_world.tastes.persons(cohort)
        assert persons is not None
        kept = kept_ratings(scenario, engine.ad_world.tastes, cohort).rated
        for person, row in zip(persons.tolist(), kept, strict=True):
            backs.setdefault(person, set()).add(row.tobytes())
    assert max(len(rows) for rows in backs.values()) == 1
    assert len(backs) < 1500  # some do share one
