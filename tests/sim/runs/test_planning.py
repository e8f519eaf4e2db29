"""What a dry run says is what a run then claims, proves and debits."""

import numpy as np
import pytest

from ads_worlds import BITS, ads_world
from collection_runs import record_world
from model_worlds import EVERY_TWO, WEEKLY, model_world
from noisefloor.accounting import MICRO, Amount
from noisefloor.privacy import Claim
from noisefloor_sim.pipelines import BLOCKS
from noisefloor_sim.runs.planning import PlannedPoint, plan_point
from noisefloor_sim.scenario import Scenario, expand
from simulated_worlds import simulated
from worlds import small_world, with_clicks

SLATE = {"training": {"method": "open"}, "delivery": {"choice": "slate"}}
ASKED = {"questions": "protected", "askers": "everyone"}
CASES = {
    "clicks-one-click": (small_world(), {"clicks-one-click"}),
    "clicks-paper": (small_world(variant="paper"), {"clicks-per-bit"}),
    "clicks-delivered": (with_clicks(small_world(), form="delivered"), {"clicks-delivered"}),
    "clicks-memoised": (
        with_clicks(small_world(), form="memoised"),
        {"clicks-memoised-steady", "clicks-memoised-changing"},
    ),
    "ads": (ads_world({"training": BITS}, {}), {"training", "request", "whole-day"}),
    "ads-paper": (
        ads_world({"training": BITS}, {}, variant="paper"),
        {"training", "request", "whole-day"},
    ),
    "ads-slate": (ads_world(SLATE), {"request", "shown-ad", "whole-day"}),
    # How many requests there are in a day depends on people, so nothing is said of a day.
    "ads-impression": (
        ads_world({"training": BITS, "delivery": {"fresh": "impression"}}),
        {"training", "request"},
    ),
    "collection-joint": (
        record_world({"method": "joint-bayes", **ASKED}),
        {"training", "question", "asker", "owner"},
    ),
    "collection-unified": (
        record_world({"method": "unified", "selection": "piecewise", **ASKED}),
        {"selection", "training", "question", "asker", "owner"},
    ),
    "collection-paper": (
        record_world({"method": "unified", **ASKED}, variant="paper"),
        {"training", "question", "asker", "owner"},
    ),
    "models-logistic": (model_world({"method": "logistic"}), {"release"}),
    "models-paper": (
        model_world({"method": "learning-first"}, variant="paper"),
        {"release", "parameter"},
    ),
    "models-weekly": (
        model_world({**EVERY_TWO, "method": "anonymising-first"}, **WEEKLY),
        {"release", "all_releases"},
    ),
}
EXTRA = ("requests-a-day", "whole-day", "members")
"""Claims of a run that settings alone do not give."""


def planned(scenario: Scenario) -> PlannedPoint:
    return plan_point(expand(scenario, BLOCKS)[0])


def figures(claim: Claim) -> tuple[float, float, float, float, str]:
    said, shown = claim.claimed, claim.proved
    return said.epsilon, said.delta, shown.epsilon, shown.delta, shown.neighbours.value


@pytest.mark.parametrize("name", CASES)
def test_planned_claims_have_the_figures_that_the_run_prints(name: str) -> None:
    scenario, names = CASES[name]
    _, _, outcome = simulated(scenario)
    (plan,) = [one for one in planned(scenario).pipelines if one.name == name.partition("-")[0]]
    expected = {one.mechanism: figures(one.claim) for one in plan.claims}
    expected.pop("whole-run", None)
    found = {one.mechanism: figures(one.claim) for one in outcome.findings[plan.name].claims}
    assert set(expected) == names
    assert {one: found[one] for one in expected} == expected
    assert set(found) - set(expected) <= set(EXTRA)


@pytest.mark.parametrize(
    "name",
    [
        *("clicks-one-click", "clicks-paper", "clicks-memoised", "clicks-delivered"),
        *("ads", "ads-paper", "ads-slate"),
        *("collection-joint", "collection-unified", "collection-paper"),
    ],
)
def test_the_user_who_spends_most_is_debited_what_was_planned(name: str) -> None:
    scenario, _ = CASES[name]
    _, engine, _ = simulated(scenario)
    cap = Amount.budget(scenario.budget, 0.0).micro_epsilon
    spent = [cap - one.device_budgets.left.sum(axis=1) for one in engine.accounts.values()]
    plan = planned(scenario)
    assert plan.is_debit_known
    assert round(plan.debited * MICRO) == int(np.concatenate(spent).max())


def test_requests_that_people_decide_on_leave_the_debit_open() -> None:
    plan = planned(CASES["ads-impression"][0])
    assert not plan.is_debit_known
    assert plan.debited == 0


def test_the_budget_of_a_data_set_is_not_that_of_a_user() -> None:
    plan = planned(CASES["models-weekly"][0])
    (models,) = plan.pipelines
    debits = {one.mechanism: (one.debited, one.budget) for one in models.claims}
    spent, budget = debits["all_releases"]
    assert debits["release"] == (None, 2.0)
    assert spent is not None and budget == 2.0
    assert 1.7 < spent < budget, "three of four, by the filter"
    assert plan.debited == 0
    assert plan.is_debit_known


@pytest.mark.parametrize("method", ["plain", "logistic"])
@pytest.mark.parametrize("budget", [0.5, 1.0, 1.2])
def test_a_release_that_the_budget_covers_once_or_never_is_planned_once(
    budget: float, method: str
) -> None:
    block = {**EVERY_TWO, "method": method, "budget": budget}
    (models,) = planned(model_world(block, **WEEKLY)).pipelines
    (release,) = models.claims
    assert (release.mechanism, release.budget) == ("release", budget)
    assert release.debited is not None
    # Where delta of the budget is above that of the release, its noise costs less than is claimed.
    assert release.debited == 1.0 if method == "plain" or budget < 1 else release.debited < 1.0
