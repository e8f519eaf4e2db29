"""Attacks on published models: they succeed where they have to, and fail where they have to.

Everything is seeded: what is asserted of measured numbers was seen with margins of several
standard errors, and cannot change by chance.
"""

from typing import Any

import numpy as np
import pytest

from model_worlds import model_world, run_model_world, run_weekly_world
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.randomness import SeededSource, new_run
from noisefloor_sim.pipelines.models.block import block_of
from noisefloor_sim.pipelines.models.publication_request import cost_of
from noisefloor_sim.pipelines.releases import ShadowModelAttack, auc_bound, true_positive_bound

OVERFITTED = {"method": "plain", "hidden": "32", "epochs": 80, "pool": 200}
NOISY = ("logistic", "private-sgd", "anonymising-first", "learning-first", "anonymised-learning")


def guarantee(epsilon: float, delta: float = 0.0) -> Guarantee:
    """Return a central guarantee for a record that becomes another."""
    return Guarantee(epsilon, Neighbours.RECORD_SUBSTITUTE, delta=delta, model=TrustModel.CENTRAL)


def test_the_largest_area_is_the_pure_closed_form() -> None:
    """The region of pure epsilon has its corner on the diagonal: the area is e^eps/(1+e^eps)."""
    for epsilon in (0.1, 1.0, 4.0):
        expected = np.exp(epsilon) / (1 + np.exp(epsilon))
        assert auc_bound(guarantee(epsilon)) == pytest.approx(expected, abs=1e-5)
    assert auc_bound(guarantee(0.0)) == pytest.approx(0.5)
    nothing = Guarantee.none("no noise", Neighbours.RECORD_SUBSTITUTE, TrustModel.CENTRAL)
    assert auc_bound(nothing) == 1.0
    assert true_positive_bound(0.01, guarantee(1.0, 1e-6)) == pytest.approx(0.01 * np.e + 1e-6)


def test_members_of_an_overfitted_network_are_recognised() -> None:
    simulated = run_model_world(model_world(OVERFITTED))
    assert simulated.value("shadows.accuracy_members") > 0.95
    assert simulated.metric("attack.lira.auc").low > 0.62
    assert simulated.value("attack.lira.auc") > simulated.value("attack.loss.auc")
    assert not simulated.has("attack.canary.success")
    audited = simulated.claim("members").audited
    assert audited is not None
    assert audited.epsilon > 0.5
    assert simulated.claim("members").verdict == "overclaimed"


@pytest.mark.parametrize("method", NOISY)
def test_noise_keeps_attacks_below_their_bounds(method: str) -> None:
    simulated = run_model_world(model_world({"method": method}))
    for attack in ("lira", "loss"):
        assert simulated.metric(f"attack.{attack}.auc").low < simulated.value(
            f"attack.{attack}.auc_bound"
        )
    assert simulated.metric("attack.canary.success").low <= simulated.value("attack.canary.bound")
    assert simulated.metric("attack.lira.auc").low < 0.52
    for claim in ("release", "members"):
        found = simulated.claim(claim)
        assert found.audited is not None
        assert found.audited.epsilon <= found.proved.epsilon <= 1.0
        assert found.verdict == "holds"


@pytest.mark.parametrize("method", ["logistic", "private-sgd"])
@pytest.mark.parametrize("relation", ["substitute", "add-remove"])
def test_a_canary_under_gaussian_noise_lies_on_its_closed_form(method: str, relation: str) -> None:
    """8,000 guesses: a standard error of 0.0056; 5 of them are passed once in 1.7 million."""
    block = {"method": method, "neighbours": relation, "epsilon": 4.0, "canaries": 4000}
    simulated = run_model_world(model_world(block))
    found = simulated.metric("attack.canary.success")
    assert found.n == 8000
    assert abs(found.value - simulated.value("attack.canary.closed_form")) < 5 * 0.0056
    assert found.value > 0.6


@pytest.mark.parametrize("method", NOISY)
def test_the_auditor_is_silent_on_nothing_and_loud_on_a_fault(method: str) -> None:
    simulated = run_model_world(model_world({"method": method}))
    assert simulated.value("attack.null.audited") == 0
    low, high = simulated.metric("attack.null.auc").low, simulated.metric("attack.null.auc").high
    assert low - 0.03 < 0.5 < high + 0.03
    assert (
        simulated.value("attack.planted.success") > simulated.value("attack.canary.success") + 0.05
    )


def test_one_of_two_records_is_in_where_a_record_is_swapped() -> None:
    cost = cost_of(block_of(model_world({"method": "logistic"})))

    def never(row: object, source: object) -> Any:  # Any: nothing is released
        raise AssertionError

    with new_run():
        game = ShadowModelAttack(never, cost, cost, 40, 16, SeededSource(1, "pairs"))
        dealt = game.members(SeededSource(1, "coins"))
    assert game.is_paired
    assert dealt.shape == (16, 40)
    assert (dealt[:, ::2] != dealt[:, 1::2]).all()
    assert (dealt.sum(axis=1) == 20).all()


def test_newcomers_are_recognised_by_differencing_two_networks_without_noise() -> None:
    bare = run_weekly_world("plain", hidden="32", epochs=80)
    noisy = run_weekly_world("logistic")
    assert bare.value("attack.newcomer.auc") > 0.58
    assert bare.value("attack.newcomer.auc_bound") == 1.0
    assert noisy.metric("attack.newcomer.auc").low < 0.5
    assert noisy.value("attack.newcomer.auc") < noisy.value("attack.newcomer.auc_bound")
    assert noisy.value("attack.newcomer.claimed_auc") == pytest.approx(0.731, abs=1e-3)


def test_releases_add_up_for_records_that_are_in_all_of_them() -> None:
    simulated = run_weekly_world("logistic", epsilon=1.0, canaries=2000)
    assert simulated.value("attack.stayer.success") > simulated.value("attack.canary.success")
    assert simulated.value("attack.stayer.bound") > simulated.value("attack.canary.bound")
    assert not run_model_world(model_world({"method": "logistic"})).has("attack.stayer.success")


def test_synthetic_records_are_near_to_everybody_and_copies_only_to_members() -> None:
    simulated = run_model_world(model_world({"method": "synthetic-table"}))
    assert (
        simulated.metric("attack.nearest.auc").low
        < 0.5
        < simulated.metric("attack.nearest.auc").high
    )
    assert simulated.metric("attack.planted.nearest_auc").low > 0.75
    assert not run_model_world(model_world({"method": "logistic"})).has("attack.nearest.auc")


def test_the_missing_record_of_a_network_with_little_noise_is_named() -> None:
    noisy = run_model_world(model_world({"method": "learning-first"}))
    assert noisy.metric("attack.missing_record.success").low <= 0.25
    faint = {"method": "learning-first", "epsilon": 1000.0, "budget": 1000.0}
    bare = run_model_world(model_world(faint, variant="paper"))
    assert bare.metric("attack.missing_record.success").low > 0.3


def test_noisy_counts_name_the_missing_record_as_far_as_epsilon_allows() -> None:
    """400 games: a standard error of 0.025 at most."""
    loud = run_model_world(model_world({"method": "anonymising-first", "epsilon": 0.5}))
    assert loud.metric("attack.missing_record.success").low <= loud.value(
        "attack.missing_record.bound"
    )
    assert loud.value("attack.missing_record.success") < 0.4
    block = {"method": "anonymising-first", "epsilon": 16.0, "tables": "label-histograms"}
    faint = run_model_world(model_world(block))
    assert faint.value("attack.missing_record.success") > 0.6
    assert not faint.has("attack.difference.success")


def test_twice_the_noise_is_left_where_two_releases_are_taken_from_one_another() -> None:
    simulated = run_weekly_world("synthetic-table", epsilon=12.0, budget=36.0, delta=0.0)
    known = simulated.value("attack.missing_record.success")
    assert 0.25 < simulated.value("attack.difference.success") < known
    assert known <= simulated.value("attack.missing_record.bound")


def test_a_missing_value_is_named_no_more_often_for_members() -> None:
    simulated = run_model_world(model_world({"method": "logistic"}))
    found = simulated.metric("attack.missing_value.advantage")
    assert found.low < 0 < found.high
    assert found.value < simulated.value("attack.missing_value.advantage_bound")
