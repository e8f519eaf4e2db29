"""The claims of a run on its page: replicates share a row, the worst of them is shown."""

from functools import partial

import pytest

from ads_worlds import BITS, ads_world
from collection_runs import record_world
from model_worlds import model_world
from noisefloor.privacy import Claim, Guarantee, LowerBound, Neighbours
from noisefloor_sim.pipelines import PIPELINES
from noisefloor_sim.pipelines.api import Findings, NamedClaim, PointFindings
from noisefloor_sim.pipelines.user_budgets import MOST_GROUPS, ledger_section
from noisefloor_sim.report import Plot, Table
from noisefloor_sim.runs.pages import _claims
from noisefloor_sim.runs.results import PointResult
from noisefloor_sim.scenario import Scenario
from simulated_worlds import simulated
from worlds import small_world, with_clicks

few_ads = partial(ads_world, attacks=["ads.null"])  # the attacks are not what is tested here
few_records = partial(record_world, attacks=["collection.label"])
USER, BIT = Neighbours.USER, Neighbours.BIT


def claim(proved: float, audited: float, neighbours: Neighbours = USER) -> Claim:
    bound = LowerBound(audited, 0.99, 1_000, 6.0)
    return Claim(Guarantee(2.0, neighbours), Guarantee(proved, neighbours), bound)


def result(seed: int, *claims: Claim) -> PointResult:
    named = tuple(NamedClaim("response", one) for one in claims)
    findings = {"clicks": Findings((), named)}
    return PointResult(f"p{seed}", f"seed={seed}", seed, "paper", findings, 0.0, 0.0)


def test_the_worst_replicate_is_shown_and_the_confidence_pays_for_the_choice() -> None:
    # The second reached less than the first, but more than is proved of it.
    found = [claim(2.0, 1.5), claim(1.0, 1.2), claim(2.0, 0.0)]
    (row,) = _claims([result(seed, one) for seed, one in enumerate(found)])
    assert (row.verdict, row.point) == ("broken", "most of 3 seeds")
    assert row.audited is not None
    assert row.audited.epsilon == 1.2
    assert row.audited.confidence == pytest.approx(0.97)


def test_claims_about_other_neighbours_have_rows_of_their_own() -> None:
    rows = _claims([result(0, claim(1.0, 0.5), claim(1.0, 0.5, BIT))])
    assert [(row.neighbours, row.point) for row in rows] == [("user", ""), ("bit", "")]


LEDGERS = {
    "memoised": with_clicks(small_world(), form="memoised"),
    "paper": small_world(variant="paper"),
    "ads and clicks": few_ads({"training": BITS, "delivery": {"fresh": "impression"}}, {}),
    "collection": few_records({"method": "joint-bayes", "questions": "protected"}),
}


def ledger_items(*scenarios: Scenario) -> tuple[Plot, Table]:
    points = [
        PointFindings((("seed", place),), one, simulated(one)[2].all_findings["world"])
        for place, one in enumerate(scenarios)
    ]
    (section,) = ledger_section(points)
    plot, table = section.items
    assert isinstance(plot, Plot)
    assert isinstance(table, Table)
    return plot, table


@pytest.mark.parametrize("name", LEDGERS)
def test_the_last_value_of_the_ledger_figure_is_that_of_the_claims_table(name: str) -> None:
    scenario = LEDGERS[name]
    found = simulated(scenario)[2].all_findings
    ((row,),) = (_claims([PointResult("p0", "", 1, "", {"world": found["world"]}, 0.0, 0.0)]),)
    plot, table = ledger_items(scenario)
    curves = {curve.name.partition(", ")[2]: curve for curve in plot.curves}
    heaviest = curves["heaviest user, proved"]
    assert heaviest.x[-1] == scenario.days
    assert (row.mechanism, row.proved) == ("heaviest-user", heaviest.y[-1])
    (cells,) = table.rows
    assert cells[5:8] == (row.proved, row.claimed, row.verdict)
    means = curves["mean user, debited"].y[-1], curves["mean user, proved"].y[-1]
    assert means == cells[8:10]
    assert means[1] <= row.proved


def test_permanent_answers_are_drawn_at_what_is_proved_of_clicks_that_change() -> None:
    found = simulated(LEDGERS["memoised"])[2].findings["clicks"]
    values = {metric.name: metric.value for metric in found.metrics}
    claims = {one.mechanism: one.claim for one in found.claims}
    ratio = claims["clicks-memoised-changing"].proved.epsilon / 2.0
    assert values["spent_proved.day_2"] == pytest.approx(values["spent.day_2"] * ratio)
    assert ratio > 1


def test_of_replicates_the_ledger_shows_the_heaviest() -> None:
    scenarios = [small_world(seed=seed, budget=5.0) for seed in (1, 2)]
    scenarios.append(small_world(seed=3))
    plot, table = ledger_items(*scenarios[1:])
    (row,) = {cells[0]: cells for cells in table.rows if cells[1] == 1_000.0}.values()
    assert row[5] == pytest.approx(6.0)
    assert max(max(curve.y) for curve in plot.curves) == row[5]
    assert ledger_items(*scenarios[:2])[1].rows[0][5] == pytest.approx(4.0)


def test_a_sweep_of_many_curves_draws_the_heaviest_of_them() -> None:
    points = []
    for form in ("one-click", "split", "capped", "delivered", "memoised"):
        scenario = with_clicks(small_world(days=1), form=form)
        settings = (("pipelines.clicks.form", form),)
        points.append(
            PointFindings(settings, scenario, simulated(scenario)[2].all_findings["world"])
        )
    (section,) = ledger_section(points)
    plot, table = section.items
    assert isinstance(plot, Plot)
    assert isinstance(table, Table)
    assert len(plot.curves) == 4 * MOST_GROUPS
    assert "4 heaviest of 5" in plot.describes
    assert len(table.rows) == 5


def test_where_no_budget_of_a_user_is_spent_there_is_no_ledger_section() -> None:
    scenario = model_world({"method": "logistic"}, attacks=["models.missing-value"])
    point = PointFindings((), scenario, simulated(scenario)[2].all_findings["world"])
    assert ledger_section([point]) == []


@pytest.mark.parametrize(
    "scenario",
    [
        small_world(budget=0.1),
        ads_world({"training": BITS}, {}, budget=0.1),
        few_records({"method": "joint-bayes", "questions": "protected"}, budget=0.1),
    ],
    ids=["clicks", "ads", "collection"],
)
def test_a_run_in_which_nobody_could_pay_has_a_page(scenario: Scenario) -> None:
    found = simulated(scenario)[2].all_findings
    for name in scenario.pipelines:
        assert PIPELINES[name].section([PointFindings((), scenario, found[name])]).items
    plot, table = ledger_items(scenario)
    assert all(y == 0 for curve in plot.curves for y in curve.y)
    assert table.rows[0][3:8] == ("nothing", 0.0, 0.0, 0.1, "holds")
