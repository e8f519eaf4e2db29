"""The heaviest user of a run: from the accounts, in any order of cohorts, against the budget."""

import itertools
import math
import re
from collections import Counter
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ads_worlds import BITS, ads_world
from collection_runs import record_world
from model_worlds import model_world
from noisefloor.accounting import MICRO
from noisefloor.errors import BadScenario
from noisefloor.privacy import Claim, Guarantee, Neighbours
from noisefloor.randomness import new_run
from noisefloor_sim.pipelines import BLOCKS, PIPELINES, Price
from noisefloor_sim.pipelines.ads.flows import TRAINING_REPORT as FLOW
from noisefloor_sim.pipelines.ads.pipeline import AdsPipeline
from noisefloor_sim.runs.engine import explain_spending
from noisefloor_sim.runs.user_claims import UserLedger
from noisefloor_sim.scenario import HEAVIEST_USER, Scenario, loads, scenario_text
from noisefloor_sim.world import BudgetAccount, UserSpending, summarise
from simulated_worlds import simulated
from worlds import small_world, with_clicks

few_ads = partial(ads_world, attacks=["ads.null"])  # the attacks are not what is tested here
few_records = partial(record_world, attacks=["collection.label"])
IMPRESSIONS = {"epsilon": 1.0, "training": BITS, "delivery": {"fresh": "impression"}}
ASKED = {"method": "joint-bayes", "questions": "protected", "askers": "everyone"}
WORLDS = {
    "clicks": small_world(),
    "clicks, short budget": small_world(budget=5.0),
    "memoised": with_clicks(small_world(), form="memoised"),
    "delivered": with_clicks(small_world(), form="delivered"),
    "ads": few_ads(IMPRESSIONS, {"epsilon": 1.0}),
    "ads, short budget": few_ads(IMPRESSIONS, {"epsilon": 1.0}, budget=12.0),
    "slate": few_ads({"training": BITS, "delivery": {"choice": "slate"}}),
    "collection": few_records(ASKED),
    "collection, short budget": few_records(ASKED, budget=9.0),
}


def claim_of(scenario: Scenario, order: list[int] | None = None) -> Claim:
    (named,) = simulated(scenario, order)[2].world_claims
    assert named.mechanism == HEAVIEST_USER
    return named.claim


def world_of(scenario: Scenario, order: list[int] | None = None) -> dict[str, float]:
    return {metric.name: metric.value for metric in simulated(scenario, order)[2].world}


def account(first: int, *flows: tuple[str, int, list[int]]) -> BudgetAccount:
    users = len(flows[0][2])
    owns = np.ones((users, 1), dtype=np.bool_)
    opened = BudgetAccount.open(owns, 1_000, first=first)
    for flow, cost, requested in flows:
        opened.spend(0, flow, owns, cost, np.array(requested))
    return opened


def test_of_equal_users_the_one_with_the_lowest_number_is_the_heaviest() -> None:
    cohorts = [
        account(0, ("a", 1, [1, 2, 0])),
        account(3, ("a", 1, [3, 3, 1]), ("b", 100, [0, 0, 5])),
        account(6, ("a", 1, [3])),
    ]
    for some in itertools.permutations(cohorts):
        found = summarise(some, {"a": 1.0, "b": 0.25})
        assert found.heaviest == UserSpending(3, 3, {"a": 3})
        assert found.most_debited == UserSpending(5, 501, {"a": 1, "b": 5})
        assert (found.users, found.debited, found.releases) == (7, 513, {"a": 13, "b": 5})


def test_a_flow_without_a_guarantee_is_heavier_than_any_other() -> None:
    cohort = account(0, ("a", 1, [500, 0]), ("open", 0, [0, 1]))
    for proved in ({"a": 9.0, "open": math.inf}, {"a": 9.0}):
        assert summarise([cohort], proved).heaviest.user == 1


@given(
    counts=st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3), min_size=1, max_size=12),
    epsilons=st.lists(st.floats(0.01, 5.0), min_size=3, max_size=3),
    size=st.integers(1, 5),
)
def test_nobody_is_heavier_than_the_heaviest_and_the_mean_is_not_either(
    counts: list[list[int]], epsilons: list[float], size: int
) -> None:
    flows = dict(zip("abc", epsilons, strict=True))
    columns = list(zip(*counts, strict=True))
    cohorts = [
        account(
            start,
            *(
                (flow, 1, list(column[start : start + size]))
                for flow, column in zip("abc", columns, strict=True)
            ),
        )
        for start in range(0, len(counts), size)
    ]
    found, back = summarise(cohorts, flows), summarise(cohorts[::-1], flows)
    assert found == back
    each = [sum(flows[flow] * n for flow, n in zip("abc", row, strict=True)) for row in counts]
    heaviest = sum(flows[flow] * n for flow, n in found.heaviest.releases.items())
    assert heaviest == pytest.approx(max(each))
    mean = sum(flows[flow] * n for flow, n in found.releases.items()) / found.users
    assert heaviest >= mean * (1 - 1e-12)
    assert found.most_debited.debited == max(sum(row) for row in counts)


@pytest.mark.parametrize("name", WORLDS)
def test_cohorts_in_any_order_have_the_same_heaviest_user(name: str) -> None:
    scenario = WORLDS[name]
    backwards = [5, 4, 3, 2, 1, 0]
    assert repr(simulated(scenario)[2].world_claims) == repr(
        simulated(scenario, backwards)[2].world_claims
    )
    assert world_of(scenario) == world_of(scenario, backwards)


@pytest.mark.parametrize("name", ["clicks, short budget", "ads, short budget", "collection"])
def test_the_heaviest_user_sent_what_explaining_that_user_lists(name: str) -> None:
    scenario = WORLDS[name]
    world, claim = world_of(scenario), claim_of(scenario)
    user = int(world["heaviest_user.number"])
    with new_run():
        text = "; ".join(explain_spending(scenario, PIPELINES, user))
    sent: Counter[str] = Counter()
    for count, flow in re.findall(r"(\d+) x ([a-z -]+)", text):
        sent[flow] += int(count)
    prices = simulated(scenario)[1].ledger.prices
    total = sum(count * prices[flow].proved.epsilon for flow, count in sent.items())
    assert claim.proved.epsilon == pytest.approx(total, rel=1e-12)
    spent = sum(float(one) for one in re.findall(r"([\d.e+-]+) spent", text))
    assert world["heaviest_user.own_debited"] == pytest.approx(spent, abs=1e-5)
    for flow, count in sent.items():
        assert world[f"heaviest_user.releases.{flow.replace(' ', '_')}"] == count
        assert f"{count:,} x {flow}" in claim.proved.reason
    assert claim.proved.reason.startswith(f"user {user} sent ")


@pytest.mark.parametrize("name", WORLDS)
def test_the_last_day_of_the_figures_is_the_claim_and_the_mean_lies_below(name: str) -> None:
    scenario = WORLDS[name]
    world, claim = world_of(scenario), claim_of(scenario)
    last = scenario.days - 1
    for figure in ("mean_user", "heaviest_user"):
        for kind in ("debited", "proved"):
            days = [world[f"{figure}.{kind}.day_{day}"] for day in range(scenario.days)]
            assert days == sorted(days)
            assert days[last] == world[f"{figure}.{kind}"]
    assert world["heaviest_user.proved"] == claim.proved.epsilon
    assert world["mean_user.proved"] <= world["heaviest_user.proved"]
    assert world["mean_user.debited"] <= world["heaviest_user.debited"] <= scenario.budget


@pytest.mark.parametrize("name", [name for name in WORLDS if name != "memoised"])
def test_a_corrected_run_claims_its_budget_and_keeps_it(name: str) -> None:
    claim = claim_of(WORLDS[name])
    assert claim.claimed == Guarantee(WORLDS[name].budget, Neighbours.USER)
    assert claim.verdict == "holds"


def test_a_budget_that_is_spent_is_what_the_heaviest_user_costs() -> None:
    claim = claim_of(WORLDS["ads, short budget"])
    assert 11.9 < claim.proved.epsilon <= 12.0
    rich = claim_of(WORLDS["ads"])
    assert rich.proved.epsilon > 3 * claim.proved.epsilon


def test_permanent_answers_cost_what_is_proved_for_clicks_that_change() -> None:
    found = simulated(WORLDS["memoised"])[2]
    (changing,) = [
        one.claim.proved.epsilon
        for one in found.findings["clicks"].claims
        if one.mechanism == "clicks-memoised-changing"
    ]
    assert claim_of(WORLDS["memoised"]).proved.epsilon == changing
    tight = with_clicks(small_world(budget=2.0), form="memoised")
    assert claim_of(tight).verdict == "overclaimed"  # debited 2, and proved is more


@pytest.mark.parametrize(
    ("scenario", "claimed"),
    [
        (small_world(variant="paper"), 6.0),
        (few_ads(IMPRESSIONS, {"epsilon": 1.0}, variant="paper"), 1.0 + 2 * 2.0),
        (few_ads({"training": BITS}, variant="paper"), 2.0 + 2 * 2.0),
        (few_records({"method": "unified", "questions": "protected"}, variant="paper"), 4.0),
        (few_records({"method": "weak"}, variant="paper"), 4.0),
    ],
    ids=["clicks", "ads and clicks", "ads", "unified", "weak"],
)
def test_the_paper_claims_its_own_sum_and_the_heaviest_user_passes_it(
    scenario: Scenario, claimed: float
) -> None:
    claim = claim_of(scenario)
    assert claim.claimed.epsilon == pytest.approx(claimed)
    assert claim.verdict == "overclaimed"


@pytest.mark.parametrize(
    ("scenario", "flow"),
    [
        (few_ads({"training": BITS, "delivery": {"choice": "exact"}}), "ad request"),
        (few_ads({"training": {"method": "open"}}), "ratings in the open"),
        (few_ads({"training": {"method": "means"}}, variant="paper"), "without noise"),
        (few_records({"method": "weak"}), "training report"),
    ],
    ids=["tracking", "open", "means", "weak"],
)
def test_what_is_sent_in_clear_leaves_the_heaviest_user_unprotected(
    scenario: Scenario, flow: str
) -> None:
    claim = claim_of(scenario)
    assert claim.verdict == "unprotected"
    assert flow in claim.claimed.reason
    assert math.isinf(claim.proved.epsilon)
    assert math.isinf(world_of(scenario)["mean_user.proved"])


@pytest.mark.parametrize("method", ["spectral", "spectral-lite", "bits", "once", "laplace"])
@pytest.mark.parametrize("variant", ["paper", "corrected"])
def test_reports_of_all_rounds_cost_what_the_whole_training_proves(
    method: str, variant: str
) -> None:
    training: dict[str, Any] = {"method": method, "rounds": 3}
    if method == "once":
        training |= {"method": "bits", "once": True}
    pipeline = PIPELINES["ads"].build(few_ads({"training": training}, variant=variant))
    assert isinstance(pipeline, AdsPipeline)
    chosen = pipeline.training.training
    assert chosen is not None
    reports = sum(
        int(chosen.reporters(number, np.zeros(1, dtype=np.uint32))[0])
        for number in range(chosen.rounds)
    )
    ledger = UserLedger(pipeline.scenario, (pipeline,))
    found = ledger.claim(UserSpending(0, 0, {FLOW: reports})).proved
    whole = chosen.guarantee(Neighbours.USER)
    assert found.epsilon == whole.epsilon
    assert found.is_finite


def test_a_flow_that_no_pipeline_has_a_price_for_has_no_guarantee() -> None:
    ledger = UserLedger(small_world(), ())
    claim = ledger.claim(UserSpending(0, 0, {"new flow": 1}))
    assert claim.verdict == "overclaimed"
    assert claim.proved.reason == "new flow: the pipeline states no guarantee"


def test_two_pipelines_with_one_name_for_a_flow_are_priced_by_the_worse() -> None:
    ads, records = few_ads({"training": BITS}), few_records({"epsilon": 3.0})
    both = [PIPELINES["ads"].build(ads), PIPELINES["collection"].build(records)]
    for some in (both, both[::-1]):
        price = UserLedger(ads, tuple(some)).prices[FLOW]
        assert isinstance(price, Price)
        assert price.claimed.epsilon == 3.0


@pytest.mark.parametrize(
    "scenario",
    [
        small_world(budget=0.5),
        with_clicks(small_world(budget=0.5), exhausted="memory"),
        with_clicks(small_world(budget=0.5), form="memoised"),
        with_clicks(small_world(budget=0.5), form="delivered"),
        few_ads(IMPRESSIONS, {"epsilon": 1.0}, budget=0.1),
        few_ads({"training": {"method": "spectral"}}, {"epsilon": 1.0}, budget=0.1),
        few_ads({"training": BITS, "delivery": {"choice": "slate"}}, budget=0.1),
        few_records(ASKED, budget=0.5),
    ],
    ids=["refuse", "memory", "memoised", "delivered", "bits", "spectral", "slate", "collection"],
)
def test_a_budget_below_one_release_runs_and_nobody_sends_anything(scenario: Scenario) -> None:
    _, engine, outcome = simulated(scenario)
    world = world_of(scenario)
    assert world["heaviest_user.debited"] == world["mean_user.proved"] == 0
    claim = claim_of(scenario)
    assert claim.verdict == "holds"
    assert claim.proved.epsilon == 0
    assert claim.proved.reason == "user 0 sent nothing"
    assert all(
        not counts.any() for one in engine.accounts.values() for counts in one.releases.values()
    )
    for name in scenario.pipelines:
        assert not any(math.isnan(metric.value) for metric in outcome.findings[name].metrics)


def test_a_data_holder_takes_nothing_from_the_budgets_of_users() -> None:
    _, _, outcome = simulated(
        model_world({"method": "logistic"}, attacks=["models.missing-value"])
    )
    assert outcome.world_claims == ()
    assert not any("user." in metric.name for metric in outcome.world)


@pytest.mark.parametrize("gate", ["claims.world.heaviest-user holds", "claims.world.* holds"])
def test_gates_may_name_the_heaviest_user_where_budgets_are_spent(gate: str) -> None:
    def gated(scenario: Scenario) -> Scenario:
        text = scenario_text(scenario).replace("gates: []", f"gates: ['{gate}']")
        return loads(text, BLOCKS)

    assert gated(small_world()).gates == (gate,)
    with pytest.raises(BadScenario, match=r"Unknown claim 'claims\.world"):
        gated(model_world({"method": "logistic"}, attacks=["models.missing-value"]))


def test_what_is_debited_is_what_all_accounts_miss() -> None:
    _, engine, _ = simulated(WORLDS["ads"])
    debited = np.concatenate([one.debited for one in engine.accounts.values()])
    world = world_of(WORLDS["ads"])
    assert world["heaviest_user.debited"] == debited.max() / MICRO
    assert world["mean_user.debited"] == pytest.approx(debited.mean() / MICRO)
