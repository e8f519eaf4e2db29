"""Records in the world: who holds them, who reports, who pays, and what is learnt."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from collection_runs import live, record_world
from noisefloor.data.store import VARIABLE
from noisefloor.errors import BadParameter, BadScenario, BadTable, MissingData
from noisefloor.randomness import SeededSource, new_run
from noisefloor_sim.engine import Engine, explain
from noisefloor_sim.pipelines import PIPELINES
from noisefloor_sim.pipelines.collection.health import AT_RISK, SCHEMA, SIGNS, health_records
from noisefloor_sim.pipelines.collection.held import Holdings

PROTECTED = {"questions": "protected", "askers": "everyone"}


def test_records_follow_their_stated_law() -> None:
    """200,000 people: a share of 0.35 has a standard error of 0.0011, means of below 0.01."""
    held = health_records(200_000, SeededSource(1, "law").generator())
    assert abs(held.labels.mean() - AT_RISK) < 0.006
    for place, sign in enumerate(SIGNS):
        values = (held.values[:, place] + 1) / 2 * (sign.high - sign.low) + sign.low
        apart = (values[held.labels].mean() - values[~held.labels].mean()) / sign.deviation
        assert abs(apart - sign.shift) < 0.08, sign.name  # what the ends of ranges take
    assert held.values.shape[1] == len(SCHEMA)


def test_the_model_is_far_above_the_majority_and_below_no_privacy() -> None:
    lived = live(record_world({"epsilon": 8.0}))
    assert lived.value("accuracy.device") > lived.value("accuracy.majority") + 0.1
    assert lived.value("accuracy.open") > lived.value("accuracy.majority") + 0.15
    low, high = lived.metric("accuracy.device").low, lived.metric("accuracy.device").high
    assert low <= lived.value("accuracy.device") <= high
    assert lived.value("training.reports_counted") == lived.value("training.reports") > 900


@pytest.mark.parametrize("method", ["joint-bayes", "joint-svm", "unified"])
def test_the_order_of_cohorts_moves_nothing(method: str) -> None:
    scenario = record_world({"method": method, **PROTECTED})
    here, there = live(scenario), live(scenario, [5, 2, 0, 1, 4, 3])
    assert here.pipeline.content == there.pipeline.content
    assert repr(here.found) == repr(there.found)


def test_users_pay_for_each_phase_that_they_join() -> None:
    block = {"method": "unified", "selection": "piecewise", **PROTECTED}
    lived = live(record_world(block, days=5, devices={"sync_per_day": 1.0}))
    users = lived.scenario.population.users
    for flow, count in {
        "selection_report": lived.value("selection.reports"),
        "training_report": lived.value("training.reports"),
        "question": lived.value("questions.asked"),
    }.items():
        assert lived.value(f"spent.{flow}") == pytest.approx(4.0 * count / users)
    assert lived.value("budget_overspent") == 0
    assert lived.value("questions.answered") == lived.value("questions.asked") > 0


def test_only_what_was_paid_for_reaches_the_server() -> None:
    """At 4 a report, a budget of 6 pays for one; half of it on a silent device pays for none."""
    lived = live(record_world(PROTECTED, budget=6.0))
    spent = [account.spent for account in lived.engine.accounts.values()]
    paid = sum(flows["training report"] for flows in spent) // 4_000_000
    assert lived.value("training.reports_counted") == lived.value("training.reports") == paid
    assert lived.value("training.refused") > 0
    paid = sum(flows["question"] for flows in spent) // 4_000_000
    assert lived.value("questions.answered") == lived.value("questions.asked") == paid
    assert lived.value("questions.refused") > 0


def test_the_account_refuses_what_the_budget_does_not_cover() -> None:
    lived = live(record_world(PROTECTED, days=6, budget=10.0))
    assert lived.value("questions.refused") > 0
    assert lived.value("spent") <= 10.0
    assert lived.value("budget_overspent") == 0
    # Who trained has 6 left at 4 a question: one. Who did not: two.
    assert lived.claim("asker").proved.epsilon == pytest.approx(8.0, abs=1e-4)
    assert lived.claim("owner").proved.epsilon == pytest.approx(8.0, abs=1e-4)


def test_what_was_spent_is_explained_day_by_day() -> None:
    scenario = record_world({"questions": "protected"}, days=4)
    with new_run():
        told = explain(scenario, PIPELINES, 3)
    assert len(told) == 4
    assert any("report" in line or "question" in line or "no device" in line for line in told)


def test_rows_are_split_before_users_draw_them() -> None:
    pytest.importorskip("sklearn")
    few, many = (
        record_world({"source": "wdbc"}, population={"users": users, "cohort": 256})
        for users in (500, 2000)
    )
    for scenario in (few, many):
        holdings = Holdings.of(scenario)
        engine = Engine(scenario, PIPELINES)
        people = [holdings.people(cohort) for cohort in engine.cohorts()]
        rows = np.concatenate([one.row for one in people])
        is_test = np.concatenate([one.is_test for one in people])
        assert not set(rows[is_test]) & set(rows[~is_test])
        assert holdings.is_reused is (scenario is many)
        if scenario is few:
            assert len(set(rows)) == len(rows)
    lived = live(many)
    assert lived.metric("accuracy.device").n == lived.value("data.rows_tested") <= 114
    assert lived.value("accuracy.device") > 0.8


def test_a_wearable_holds_the_record_and_has_to_be_in_contact() -> None:
    scenario = record_world(devices={"shares": {"wearable": 1.0}, "sync_per_day": 0.5})
    lived = live(scenario)
    absent, reports = lived.value("training.absent"), lived.value("training.reports")
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
    lived = live(record_world(block, population={"users": 400, "cohort": 128}))
    assert lived.value("accuracy.device") > 0.75
    assert lived.value("data.ranges_public") == 1
    with pytest.raises(BadScenario, match="schema"):
        record_world({"source": str(table)})
    other = tmp_path / "other.yaml"
    other.write_text(schema.read_text().replace("pulse", "steps"))
    for wrong in (other, tmp_path / "missing.yaml"):
        with pytest.raises(BadTable):
            Holdings.of(record_world({**block, "schema_file": str(wrong)}))


def test_a_data_set_that_was_not_fetched_is_an_error_that_says_how(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    with pytest.raises(MissingData, match="noisefloor data fetch adult"):
        Holdings.of(record_world({"source": "adult"}))


@pytest.mark.slow
def test_census_records_are_collected(real_data: Callable[[str], None]) -> None:
    real_data("adult")
    lived = live(record_world({"source": "adult", "epsilon": 8.0}))
    assert lived.value("accuracy.device") > 0.7
    assert lived.value("data.rows") == 48_842


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
