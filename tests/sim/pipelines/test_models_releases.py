"""Releases carry the noise that their plans declare: honest ones fit, broken ones are named."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from labelled_tables import ADD, SCHEMA, SWAP, a_cost, visits
from model_worlds import model_world, run_model_world
from noisefloor.accounting import Ledger
from noisefloor.privacy import Guarantee, TrustModel
from noisefloor.publication import NoisedVector
from noisefloor.publication.methods import ModelPlan, ModelSpec
from noisefloor.publication.methods.registry import EXPERIMENT_METHODS, MODEL_METHODS, plan_model
from noisefloor.randomness import SeededSource, new_run
from noisefloor.roles import ModelPublisher
from noisefloor_sim.pipelines.models.release_residuals import residuals_of
from noisefloor_sim.pipelines.releases import (
    ReleaseFit,
    ReleaseResiduals,
    fit_releases,
    ledger_faults,
)
from release_faults import RELEASE_FAULTS, Patch, logistic_noise

RECORDS = visits(400)
SMALL_SGD: dict[str, Any] = {"hidden": 4, "epochs": 5, "batch": 100, "clip": 0.5}
CELLS: dict[str, Any] = {"tables": "cells", "columns": "age,country,pages", "rows": 10}


@dataclass(frozen=True)
class ReleaseCase:
    """A method with settings that give enough draws to find noise a quarter too small."""

    method: str
    delta: float = 1e-5
    parameters: Mapping[str, Any] = field(default_factory=dict)
    releases: int = 1
    neighbours: Any = SWAP


CASES = {
    "private-sgd": ReleaseCase("private-sgd", parameters=SMALL_SGD),
    "private-sgd, everybody": ReleaseCase(
        "private-sgd", parameters=SMALL_SGD | {"batch": 400, "epochs": 14}
    ),
    "logistic": ReleaseCase("logistic", parameters={"clip": 0.3}),
    "logistic, three classes": ReleaseCase("logistic", parameters={"label": "age"}),
    "laplace cells": ReleaseCase("synthetic-table", 0.0, CELLS, 24),
    "gaussian cells": ReleaseCase("synthetic-table", 1e-5, CELLS, 16, ADD),
    "label histograms": ReleaseCase(
        "anonymising-first", 1e-5, {"tables": "label-histograms", "epochs": 1}, 40
    ),
    "marginal tree": ReleaseCase("synthetic-table", 0.0, {"rows": 10}, 12),
    "learning-first": ReleaseCase("learning-first", 0.0, {"hidden": 8, "epochs": 1}, 12),
    "anonymised-learning": ReleaseCase("anonymised-learning", 0.0, {"hidden": 4, "epochs": 3}),
    "anonymised-learning, clamped": ReleaseCase(
        "anonymised-learning", 0.0, {"hidden": 4, "epochs": 3, "variant": "clamped"}
    ),
    "learning-first, paper": ReleaseCase(
        "learning-first", 0.0, {"hidden": 8, "epochs": 1, "variant": "paper"}, 12
    ),
}


@functools.cache
def plan_of(name: str) -> ModelPlan:
    """Plan a release; to calibrate private SGD takes seconds."""
    case = CASES[name]
    cost = a_cost(1.0, case.neighbours, case.delta)
    spec = ModelSpec.read(SCHEMA, cost, {"label": "buys", **case.parameters}, RECORDS.count)
    return plan_model(case.method, spec)


def fitted(name: str) -> ReleaseFit:
    """Release as a publisher does, and test the noise."""
    plan, made = plan_of(name), []
    with new_run():
        for number in range(CASES[name].releases):
            residuals = residuals_of(plan, RECORDS)
            plan.release(RECORDS, SeededSource(3, "release", number), residuals)
            made.append(residuals)
        return fit_releases(made, (), SeededSource(3, "fit"))


@pytest.mark.parametrize("name", CASES)
def test_an_honest_release_fits_and_its_planted_fault_is_found(name: str) -> None:
    """False alarm 1e-9 each."""
    found = fitted(name)
    assert (found.evidence.misfit, found.evidence.faults) == ("", ())
    assert found.planted_found and found.evidence.verdict == "consistent"
    assert found.found is not None and found.found.draws >= 500
    assert 1e-9 < found.evidence.p_value <= 1


def test_every_method_that_adds_noise_is_tested() -> None:
    assert {case.method for case in CASES.values()} == set(MODEL_METHODS)


@pytest.mark.parametrize("name", CASES)
def test_an_observer_changes_nothing(name: str) -> None:
    plan, files = plan_of(name), []
    for observer in (None, lambda vector: None):
        with new_run():
            files.append(plan.release(RECORDS, SeededSource(3, "same"), observer))
    assert files[0] == files[1]


@pytest.mark.parametrize("name", RELEASE_FAULTS)
def test_a_broken_publisher_is_found_and_the_cause_is_named(name: str, monkeypatch: Patch) -> None:
    case, plant, cause = RELEASE_FAULTS[name]
    plant(monkeypatch)
    evidence = fitted(case).evidence
    assert evidence.verdict == "misfit"
    assert cause in evidence.misfit
    assert "release 0" in evidence.misfit or "all releases" in evidence.misfit


def test_a_release_that_has_the_noise_of_the_one_before_is_found() -> None:
    """Each of the two is honest by itself."""
    plan, made = plan_of("logistic"), []
    for _ in range(2):
        with new_run():
            made.append(residuals_of(plan, RECORDS))
            plan.release(RECORDS, SeededSource(3, "twice"), made[-1])
    for some, verdict in ((made, "misfit"), (made[:1], "consistent")):
        with new_run():
            found = fit_releases(some, (), SeededSource(3, "fit"))
        assert found.evidence.verdict == verdict


def test_more_noisy_vectors_than_accounted_for_are_found() -> None:
    plan = plan_of("logistic")
    residuals = residuals_of(plan, RECORDS)
    one_more: list[NoisedVector] = []
    plan.release(
        RECORDS, SeededSource(3, "more"), lambda vector: _both(residuals, one_more, vector)
    )
    residuals(one_more[-1])
    residuals(NoisedVector("losses", np.zeros(3), np.zeros(3)))
    evidence = fit_releases([residuals], (), SeededSource(3, "fit")).evidence
    assert evidence.faults == (
        "release 0: 101 noisy vectors of step were made, and 100 are accounted for",
        "release 0: 1 vectors: undeclared losses",
    )


def _both(first: ReleaseResiduals, second: list[NoisedVector], vector: NoisedVector) -> None:
    first(vector)
    second.append(vector)


def test_few_cells_are_blind() -> None:
    plan = plan_of("laplace cells")
    residuals = residuals_of(plan, RECORDS)
    plan.release(RECORDS, SeededSource(3, "few"), residuals)
    found = fit_releases([residuals], (), SeededSource(3, "fit"))
    assert found.evidence.rows == 48
    assert found.evidence.is_blind and found.evidence.verdict == "blind"


def test_without_residuals_nothing_is_claimed() -> None:
    """A publisher at a service hands out nothing, and a plan without noise has none."""
    plain = EXPERIMENT_METHODS["plain"].of(
        ModelSpec.read(SCHEMA, a_cost(1.0, SWAP, 0.0), {"label": "buys", "epochs": 1}, 400)
    )
    for plan in (plan_of("logistic"), plain):
        found = fit_releases([residuals_of(plan, RECORDS)], (), SeededSource(3, "none"))
        assert found.evidence.verdict == "blind"
        assert (found.evidence.tests, found.metrics()) == (0, [])


def a_ledger(*spends: tuple[str, Guarantee]) -> Ledger:
    ledger = Ledger(10.0, 1e-3, neighbours=SWAP, model=TrustModel.CENTRAL)
    for name, cost in spends:
        ledger.spend("users", name, cost, "logistic", loss=plan_of("logistic").loss)
    return ledger


def test_the_ledger_has_to_say_what_was_released() -> None:
    plan = plan_of("logistic")
    stored, cost = {"release-0": plan, "release-1": plan}, plan.spec.cost
    honest = a_ledger(("release-0", cost), ("release-1", cost))
    assert ledger_faults(stored, honest, "users") == ()
    assert ledger_faults({}, a_ledger(), "users") == ()
    free = ledger_faults(stored, a_ledger(("release-0", cost)), "users")
    assert free[0] == "release-1 is stored and was not charged"
    assert "1.000000" in free[1] and "2.000000" in free[1]
    more = a_ledger(*((f"release-{number}", cost) for number in range(3)))
    assert ledger_faults(stored, more, "users")[0] == "release-2 was charged and is not stored"
    double = a_ledger(("release-0", a_cost(2.0, SWAP)), ("release-1", cost))
    assert "release-0 was charged" in ledger_faults(stored, double, "users")[0]


@pytest.fixture
def fresh_worlds() -> Any:
    """Worlds with a fault must not be taken for honest ones by later tests."""
    import simulated_worlds

    simulated_worlds._simulated.cache_clear()
    yield
    simulated_worlds._simulated.cache_clear()


def quick_world(seed: int) -> Any:
    block = {"method": "logistic", "shadows": 16, "pool": 50}
    return run_model_world(model_world(block, seed=seed, attacks=["models.newcomer"]))


def test_an_honest_world_says_so_in_metrics_and_claims() -> None:
    simulated = quick_world(31)
    claim = simulated.claim("release")
    assert claim.verdict == "holds"
    (evidence,) = claim.evidence
    assert (evidence.flow, evidence.verdict, evidence.causes) == ("release", "consistent", ())
    assert simulated.value("residuals.draws") == evidence.rows >= 504
    assert simulated.value("residuals.tests") == evidence.tests
    assert simulated.value("residuals.p_value") == evidence.p_value
    assert simulated.value("residuals.planted_found") == 1.0


@pytest.mark.usefixtures("fresh_worlds")
def test_a_world_with_half_noise_fails(monkeypatch: Patch) -> None:
    logistic_noise(0.5)(monkeypatch)
    claim = quick_world(32).claim("release")
    assert claim.verdict == "misfit"
    assert claim.evidence[0].causes


def charges_twice(self: Any, request: Any, claim: Any) -> Any:
    for again in ("", "-again"):
        entry = self._budgets.spend(
            request.data_set,
            f"{request.publication_id}{again}",
            request.cost,
            request.method,
            proved=claim.proved,
            loss=self.loss(request),
        )
    return entry


@pytest.mark.usefixtures("fresh_worlds")
@pytest.mark.parametrize("times", [0, 2])
def test_a_publisher_that_charges_twice_or_not_at_all_is_unaccounted(
    times: int, monkeypatch: Patch
) -> None:
    monkeypatch.setattr(
        ModelPublisher, "_charge", charges_twice if times else lambda self, request, claim: None
    )
    claim = quick_world(33 + times).claim("release")
    assert claim.verdict == "unaccounted"
    assert "release-0" in claim.evidence[0].faults[0]
