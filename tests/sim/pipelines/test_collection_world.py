"""Records in the world: who holds them, who reports, who pays, and what is learnt."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from collection_runs import record_world, run_record_world
from noisefloor.errors import BadParameter, BadScenario, BadTable, MissingData
from noisefloor.randomness import SeededSource, new_run
from noisefloor.tables.cache import CACHE_VARIABLE
from noisefloor_sim.pipelines import PIPELINES
from noisefloor_sim.pipelines.collection.record_assignment import RecordAssignment
from noisefloor_sim.pipelines.collection.synthetic_wearables import (
    AT_RISK,
    SCHEMA,
    VITAL_SIGNS,
    health_records,
)
from noisefloor_sim.runs.engine import Engine, explain_spending

PROTECTED = {"questions": "protected", "askers": "everyone"}


def test_records_follow_their_stated_distribution() -> None:
    """200,000 people: a share of 0.35 has a standard error of 0.0011, means of below 0.01."""
    records = health_records(200_000, SeededSource(1, "law").generator())
    assert abs(records.labels.mean() - AT_RISK) < 0.006
    for place, sign in enumerate(VITAL_SIGNS):
        values = (records.values[:, place] + 1) / 2 * (sign.high - sign.low) + sign.low
        apart = (values[records.labels].mean() - values[~records.labels].mean()) / sign.deviation
        assert abs(apart - sign.shift) < 0.08, sign.name  # what the ends of ranges take
    assert records.values.shape[1] == len(SCHEMA)


def test_the_model_is_far_above_the_majority_and_below_no_privacy() -> None:
    simulated = run_record_world(record_world({"epsilon": 8.0}))
    assert simulated.value("accuracy.device") > simulated.value("accuracy.majority") + 0.1
    assert simulated.value("accuracy.open") > simulated.value("accuracy.majority") + 0.15
    low, high = simulated.metric("accuracy.device").low, simulated.metric("accuracy.device").high
    assert low <= simulated.value("accuracy.device") <= high
    assert simulated.value("training.reports_counted") == simulated.value("training.reports") > 900


@pytest.mark.parametrize("method", ["joint-bayes", "joint-svm", "unified"])
def test_the_order_of_cohorts_moves_nothing(method: str) -> None:
    scenario = record_world({"method": method, **PROTECTED})
    here, there = run_record_world(scenario), run_record_world(scenario, [5, 2, 0, 1, 4, 3])
    assert here.pipeline.content == there.pipeline.content
    assert repr(here.found) == repr(there.found)


def test_users_pay_for_each_phase_that_they_join() -> None:
    block = {"method": "unified", "selection": "piecewise", **PROTECTED}
    simulated = run_record_world(record_world(block, days=5, devices={"sync_per_day": 1.0}))
    users = simulated.scenario.population.users
    for flow, count in {
        "selection_report": simulated.value("selection.reports"),
        "training_report": simulated.value("training.reports"),
        "question": simulated.value("questions.asked"),
    }.items():
        assert simulated.value(f"spent.{flow}") == pytest.approx(4.0 * count / users)
    assert simulated.value("budget_overspent") == 0
    assert simulated.value("questions.answered") == simulated.value("questions.asked") > 0


def test_only_what_was_paid_for_reaches_the_server() -> None:
    """At 4 a report, a budget of 6 pays for one; half of it on a silent device pays for none."""
    simulated = run_record_world(record_world(PROTECTED, budget=6.0))
    spent = [account.spent for account in simulated.engine.accounts.values()]
    paid = sum(flows["training report"] for flows in spent) // 4_000_000
    assert (
        simulated.value("training.reports_counted") == simulated.value("training.reports") == paid
    )
    assert simulated.value("training.refused") > 0
    paid = sum(flows["question"] for flows in spent) // 4_000_000
    assert simulated.value("questions.answered") == simulated.value("questions.asked") == paid
    assert simulated.value("questions.refused") > 0


def test_the_account_refuses_what_the_budget_does_not_cover() -> None:
    simulated = run_record_world(record_world(PROTECTED, days=6, budget=10.0))
    assert simulated.value("questions.refused") > 0
    assert simulated.value("spent") <= 10.0
    assert simulated.value("budget_overspent") == 0
    # Who trained has 6 left at 4 a question: one. Who did not: two.
    assert simulated.claim("asker").proved.epsilon == pytest.approx(8.0, abs=1e-4)
    assert simulated.claim("owner").proved.epsilon == pytest.approx(8.0, abs=1e-4)


def test_what_was_spent_is_explained_day_by_day() -> None:
    scenario = record_world({"questions": "protected"}, days=4)
    with new_run():
        lines = explain_spending(scenario, PIPELINES, 3)
    assert len(lines) == 4
    assert any("report" in line or "question" in line or "no device" in line for line in lines)


def test_rows_are_split_before_users_draw_them() -> None:
    pytest.importorskip("sklearn")
    few, many = (
        record_world({"source": "wdbc"}, population={"users": users, "cohort": 256})
        for users in (500, 2000)
    )
    for scenario in (few, many):
        assignment = RecordAssignment.of(scenario)
        engine = Engine(scenario, PIPELINES)
        people = [assignment.people(cohort) for cohort in engine.cohorts()]
        rows = np.concatenate([one.row for one in people])
        is_test = np.concatenate([one.is_test for one in people])
        assert not set(rows[is_test]) & set(rows[~is_test])
        assert assignment.is_reused is (scenario is many)
        if scenario is few:
            assert len(set(rows)) == len(rows)
    simulated = run_record_world(many)
    assert simulated.metric("accuracy.device").n == simulated.value("data.rows_tested") <= 114
    assert simulated.value("accuracy.device") > 0.8


def test_a_wearable_holds_the_record_and_has_to_be_in_contact() -> None:
    scenario = record_world(devices={"shares": {"wearable": 1.0}, "sync_per_day": 0.5})
    simulated = run_record_world(scenario)
    absent, reports = simulated.value("training.absent"), simulated.value("training.reports")
    assert 0.4 < absent / (absent + reports) < 0.6


def test_a_file_of_ones_own_needs_its_schema(tmp_path: Path) -> None:
    draw = SeededSource(5, "own").generator()
    labels = draw.random(400) < 0.5
    table, schema = tmp_path / "own.csv", tmp_path / "schema.yaml"
    pulses = labels + draw.normal(0, 0.4, 400)
    lines = [f"{x:.3f},{int(y)}" for x, y in zip(pulses, labels, strict=True)]
    table.write_text("pulse,ill\n" + "\n".join(lines) + "\n")
    schema.write_text(
        "attributes: [{name: pulse, low: -1.5, high: 2.5}]\n"
        "label: {name: ill, negative: '0', positive: '1'}\n"
    )
    block = {"source": str(table), "schema_file": str(schema), "epsilon": 4.0}
    simulated = run_record_world(record_world(block, population={"users": 400, "cohort": 128}))
    assert simulated.value("accuracy.device") > 0.75
    assert simulated.value("data.ranges_public") == 1
    with pytest.raises(BadScenario, match="schema"):
        record_world({"source": str(table)})
    other = tmp_path / "other.yaml"
    other.write_text(schema.read_text().replace("pulse", "steps"))
    for wrong in (other, tmp_path / "missing.yaml"):
        with pytest.raises(BadTable):
            RecordAssignment.of(record_world({**block, "schema_file": str(wrong)}))


def test_a_data_set_that_was_not_fetched_is_an_error_that_says_how(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    with pytest.raises(MissingData, match="noisefloor data fetch adult"):
        RecordAssignment.of(record_world({"source": "adult"}))


@pytest.mark.slow
def test_census_records_are_collected(real_data: Callable[[str], None]) -> None:
    real_data("adult")
    simulated = run_record_world(record_world({"source": "adult", "epsilon": 8.0}))
    assert simulated.value("accuracy.device") > 0.7
    assert simulated.value("data.rows") == 48_842


@pytest.mark.parametrize(
    ("block", "key"),
    [
        ({"source": "iris"}, "source"),
        ({"schema_file": "x.yaml"}, "schema_file"),
        ({"selection": "weak"}, "selection"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"classifier": "net"}, "classifier"),
    ],
)
def test_bad_settings_name_their_key(block: dict[str, object], key: str) -> None:
    with pytest.raises(BadScenario, match=f"collection.{key}"):
        record_world(block)


def test_questions_need_a_day_after_training() -> None:
    with pytest.raises(BadParameter, match="days"):
        Engine(record_world({"questions": "protected"}, days=1), PIPELINES)
    with pytest.raises(BadParameter, match="attributes"):
        Engine(record_world({"attributes": 40}), PIPELINES)
