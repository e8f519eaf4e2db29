"""Reports about records as they arrive: their declared distribution, and faults that are found."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from collection_runs import record_world, run_record_world
from noisefloor.collection.collecting import PiecewiseCollector, ReportingSelector
from noisefloor.collection.encoding import Discretiser, PrintedDiscretiser, PrintedUnified
from noisefloor.errors import BadFrame
from noisefloor.mechanisms import BinaryResponse, KaryResponse, Piecewise
from noisefloor.privacy import ClaimVerdict
from noisefloor.randomness import SeededSource, new_run
from noisefloor.tables import ScaledRecords
from noisefloor.tasks import RecordTask
from noisefloor_sim.cli import commands
from noisefloor_sim.pipelines import PIPELINES
from noisefloor_sim.pipelines.collection import answer_distributions as declared
from noisefloor_sim.pipelines.collection import phases
from noisefloor_sim.pipelines.collection import reference_inputs as reference
from noisefloor_sim.runs.engine import Engine, RunOutcome
from noisefloor_sim.scenario import Scenario, scenario_text
from noisefloor_sim.world import SimulatedNetwork
from record_worlds import mixed_schema, two_groups

SENT: dict[str, Any] = {"questions": "protected", "attributes": 2, "classes": 3, "epsilon": 2.0}
FORMS: dict[str, dict[str, Any]] = {
    "joint-bayes": {"attributes": 0, "classes": 0, "questions_per_day": 2},
    "joint-svm": {"method": "joint-svm", "classifier": "logistic"},
    "unified": {"method": "unified", "selection": "response", "classifier": "logistic"},
    "piecewise": {"method": "piecewise", "selection": "piecewise", "classifier": "logistic"},
    "weak": {"method": "weak", "selection": "weak", "classifier": "logistic"},
}
ATTACKS = ["collection.audit"]


def small(form: str, **sections: Any) -> Scenario:
    """Return a world whose flows are tested, without games beside."""
    return record_world({**SENT, **FORMS[form]}, days=5, attacks=ATTACKS, **sections)


def run(scenario: Scenario) -> RunOutcome:
    """Run a world that was changed on purpose."""
    with new_run():
        return Engine(scenario, PIPELINES).run()


def test_reference_inputs_are_the_classes_and_positions_of_the_device() -> None:
    """An oracle both ways: two computations that share no code agree, ends of ranges included."""
    schema = mixed_schema()
    records = two_groups(schema, 500, "reference")
    values = records.values.copy()
    values[:3, [0, 3]] = [[-1.0, 1.0], [1.0, -1.0], [-1 / 3, 1 / 3]]
    records, columns = ScaledRecords(values, records.labels), range(len(schema))
    for most in (2, 3, 5):
        fair, printed = Discretiser(schema, most), PrintedDiscretiser(schema, most)
        codes = reference.class_inputs(schema, most, records, columns)
        assert np.array_equal(codes[:, :-1], fair.codes(values))
        assert reference.class_sizes(schema, most) == list(fair.sizes)
        codes = reference.printed_inputs(schema, most, records, columns)
        assert np.array_equal(codes[:, :-1], printed.codes(values))
        assert np.array_equal(codes[:, -1], printed.label_codes(records.labels))
        assert reference.printed_sizes(schema, most) == [printed.size(one) for one in columns]


def test_declared_distributions_are_those_of_the_mechanisms() -> None:
    """From epsilon alone; mechanisms round their weights to 64 bits."""
    response, mechanism = declared.response(5, 1.3), KaryResponse(5, 1.3)
    for true in range(5):
        expected = np.exp(mechanism.log_likelihood(np.arange(5), true))
        assert response.table[true, :5] == pytest.approx(expected, abs=1e-12)
    printed, rows = declared.printed(4, 0.7), np.arange(5)
    paper = PrintedUnified((4, 4), 1.4)
    for true in range(5):
        alone = paper.log_likelihood(np.column_stack([rows, np.full(5, 1)]), (true, 1))
        expected = np.exp(alone) / declared.truth_of(4, 0.7)
        assert printed.table[true, :5] == pytest.approx(expected, abs=1e-12)
    window, line = declared.window(1.1), Piecewise(1.1)
    cells = line.outputs()
    for value in (-1.0, 0.2, 1.0):
        position = np.full(len(cells), round((value + 1) * reference.STEPS / 2))
        exact = line.log_likelihood(cells, value)
        assert window.log_likelihood(position, cells) == pytest.approx(exact, abs=1e-6)
        row, column, _ = window.cells(position, cells)
        shares = np.bincount(column, np.exp(exact), minlength=window.table.shape[1])
        assert shares == pytest.approx(window.table[row[0]], abs=1e-6)


@pytest.mark.statistical
@pytest.mark.parametrize("form", FORMS)
def test_honest_reports_fit_and_their_price_is_debited(form: str) -> None:
    """A false alarm with probability 1e-10 a flow; the twins below must be found."""
    found = run_record_world(small(form))
    flows = {flow.flow: flow for flow in found.outcome.flows}
    expected = {"training report", "question"}
    expected |= {"selection report"} if found.has("selection.reports") else set()
    assert set(flows) == expected
    assert all(flow.tests > 10 and not flow.causes for flow in flows.values())
    claim = found.claim("owner")
    assert {flow.flow for flow in claim.evidence} == expected - {"question"}
    assert claim.audited is not None
    assert claim.null is not None and claim.null.epsilon == 0
    assert claim.audited.epsilon <= claim.proved.epsilon
    if form == "weak":  # a guess is always right
        assert claim.audited.epsilon == claim.audited.ceiling > 1


def test_the_printed_response_follows_what_is_printed() -> None:
    found = run_record_world(small("unified", variant="paper"))
    assert all(flow.tests > 10 and not flow.causes for flow in found.outcome.flows)
    assert found.claim("training").verdict is ClaimVerdict.OVERCLAIMED


Step = Callable[..., Any]


def doubled(task: RecordTask) -> RecordTask:
    """Return a task with half the noise."""
    return replace(
        task, epsilon=2 * task.epsilon, attributes=task.chosen, classes=task.discretiser.most
    )


def half_noise(task: RecordTask, number: int, content: bytes, records: Any, source: Any) -> Any:
    """Report with half the noise."""
    louder = doubled(task)
    if number == 0 and isinstance(louder.selector, ReportingSelector):
        return louder.selector.report(records, source).columns()
    return louder.trainer.report(records, task.columns(content), source)


def half_noise_question(task: RecordTask, content: bytes, records: Any, source: Any) -> Any:
    """Ask with half the noise."""
    model, columns = task.fitted_model(content), task.columns(content)
    return doubled(task).trainer.query(model, records, columns, source)


@contextmanager
def changed(name: str, step: Step) -> Iterator[None]:
    """Let devices take another step."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RecordTask, name, step)
        yield


def reused(kept: dict[int, Any]) -> Step:
    """Return a question whose random numbers are drawn once for each number of questions."""
    honest = RecordTask.query

    def query(task: RecordTask, content: bytes, records: Any, source: SeededSource) -> Any:
        place = kept.setdefault(len(records), len(kept))
        with new_run():
            return honest(task, content, records, SeededSource(5, "reused", place))

    return query


def misfits(outcome: RunOutcome) -> set[str]:
    return {flow.flow for flow in outcome.flows if flow.verdict is ClaimVerdict.MISFIT}


@pytest.mark.parametrize("name", ["report", "query"])
@pytest.mark.parametrize("form", [form for form in FORMS if form != "weak"])
def test_half_noise_is_found_in_every_step(form: str, name: str) -> None:
    step: Step = half_noise if name == "report" else half_noise_question
    with changed(name, step):
        outcome = run(small(form))
    flows = {flow.flow for flow in outcome.flows}
    assert misfits(outcome) == ({"question"} if name == "query" else flows - {"question"})
    claims = {one.mechanism: one.claim for one in outcome.findings["collection"].claims}
    verdict = claims["question" if name == "query" else "owner"].verdict
    assert verdict in (ClaimVerdict.BROKEN, ClaimVerdict.MISFIT)


def test_decisions_that_are_sent_as_they_are_are_found() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BinaryResponse, "randomise", lambda self, values, source: values)
        outcome = run(small("joint-bayes"))
    assert misfits(outcome) == {"question"}
    claims = {one.mechanism: one.claim for one in outcome.findings["collection"].claims}
    audited = claims["question"].audited
    assert audited is not None and audited.epsilon == audited.ceiling


def test_cells_without_noise_are_found() -> None:
    honest = PiecewiseCollector.report

    def report(self: PiecewiseCollector, records: Any, columns: Any, source: Any) -> Any:
        sent = honest(self, records, columns, source)
        return replace(sent, values=reference.grid_inputs(records, columns)[:, :-1])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PiecewiseCollector, "report", report)
        assert misfits(run(small("piecewise"))) == {"training report", "question"}


def test_noise_that_is_used_on_two_days_is_found() -> None:
    """Each report follows its distribution: only pairs of reports show it."""
    sections = {
        "devices": {"sync_per_day": 1.0, "offline": {"start_per_day": 0.0}},
        "population": {"users": 1500, "cohort": 256, "churn_per_day": 0.0},
    }
    with changed("query", reused({})):
        (question,) = (
            flow for flow in run(small("unified", **sections)).flows if flow.flow == "question"
        )
    assert question.misfit.startswith("two days of a user")


def test_attributes_drawn_by_the_record_are_found() -> None:
    honest = RecordTask.report

    def report(
        task: RecordTask, number: int, content: bytes, records: ScaledRecords, source: Any
    ) -> Any:
        order = np.argsort(records.labels, kind="stable")
        sent = honest(task, number, content, records[order], source)
        columns = {name: np.asarray(column).copy() for name, column in sent.items()}
        if "attribute_1" in columns and "value_1" in columns:
            columns["attribute_1"][:] = np.where(records.labels[order], 0, 1)
        return {name: column[np.argsort(order)] for name, column in columns.items()}

    with changed("report", report):
        assert "selection report" in misfits(run(small("unified")))


def test_a_report_that_is_not_paid_for_is_unaccounted() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(phases, "debited", lambda claim: 1_000_000)
        outcome = run(small("joint-bayes"))
    (question,) = [flow for flow in outcome.flows if flow.flow == "question"]
    assert question.verdict is ClaimVerdict.UNACCOUNTED
    assert "debited" in question.faults[0]


def test_exchanged_records_leave_every_sum_as_it_is() -> None:
    block = {"questions": "protected", "askers": "everyone", "questions_per_day": 2}
    devices = {"sync_per_day": 0.7}
    worlds = [
        record_world(block, days=4, attacks=ATTACKS, devices=devices, witnesses={"share": share})
        for share in (0.0, 0.5)
    ]
    without, with_pairs = (run_record_world(one) for one in worlds)
    assert without.claim("training").audited is None
    assert with_pairs.claim("training").audited is not None
    drawn = ("accuracy.device", "accuracy.question", "lead", "model.")
    for metric in without.found.metrics:
        if not metric.name.startswith(drawn):  # what depends on who drew which noise
            assert repr(metric) == repr(with_pairs.metric(metric.name))
    tested = [
        sum(stats.tested for stats in one.pipeline.phases_.questions)
        for one in (without, with_pairs)
    ]
    assert tested[0] == tested[1] > 0


def test_half_of_all_frames_lost_leaves_less_to_test() -> None:
    lossy = {"loss": 0.5, "retries": 0}
    found = run_record_world(small("unified", network=lossy))
    assert found.outcome.world
    assert all(not flow.causes for flow in found.outcome.flows)
    assert all(named.claim.verdict is ClaimVerdict.HOLDS for named in found.found.claims)


def test_too_few_users_for_a_witness_are_not_audited() -> None:
    few = {"users": 30, "cohort": 256}
    found = run_record_world(small("unified", population=few, witnesses={"share": 0.02}))
    for named in found.found.claims:
        assert named.claim.audited is None
        assert named.claim.verdict is ClaimVerdict.HOLDS


@pytest.fixture
def damaged_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut off the end of every question on its way."""
    honest = SimulatedNetwork.send

    def send(self: SimulatedNetwork, data: bytes, receive: Any, *name: str | int) -> None:
        honest(self, data[:-9] if "question" in name else data, receive, *name)

    monkeypatch.setattr(SimulatedNetwork, "send", send)


@pytest.mark.usefixtures("damaged_questions")
def test_a_damaged_question_ends_the_run_as_the_error_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(BadFrame):
        run(small("joint-bayes"))
    file = tmp_path / "damaged.yaml"
    file.write_text(scenario_text(small("joint-bayes")))
    words = ["noisefloor", "run", str(file), "--jobs", "1", "--out", str(tmp_path / "out")]
    monkeypatch.setattr("sys.argv", words)
    with pytest.raises(SystemExit) as ended:
        commands.main()
    assert ended.value.code == 1
    said = capsys.readouterr().err
    assert said.endswith("noisefloor: Frame: frame does not stop at the end mark.\n")
    assert "Traceback" not in said
