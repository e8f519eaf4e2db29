"""A task of records: what is told, learnt and published, and what is refused."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

from enumeration import enumerate_distribution
from noisefloor.collection.learners.exported_models import (
    KernelModel,
    TableModel,
    export_svc,
    model_from_arrays,
)
from noisefloor.errors import BadFrame, BadParameter
from noisefloor.mechanisms import BinaryResponse
from noisefloor.randomness import SeededSource, new_run
from noisefloor.tables.scaled_records import Label, ScaledRecords, ScaledSchema
from noisefloor.tasks import task_registry
from noisefloor.tasks.record_task import RecordTask
from noisefloor.tasks.round_content import RoundContent, read_content, write_content
from noisefloor.tasks.training_task import RoundRelease
from noisefloor.wire.kinds import joined, sorted_rows
from record_worlds import accuracy, mixed_schema, ranges, two_groups

OWNERS = 3000
WAYS: dict[str, dict[str, Any]] = {
    "joint-bayes": {},
    "joint-counts": {"method": "joint-counts"},
    "private ranges": {"range_share": 0.25},
    "private ranges, DR.PM": {
        **{"method": "unified", "selection": "piecewise", "attributes": 2, "range_share": 0.25}
    },
    "joint-svm": {"method": "joint-svm"},
    "joint-svm, selected": {"method": "joint-svm", "selection": "response"},
    "unified": {"method": "unified", "queries": "protected"},
    "unified, all": {"method": "unified", "selection": "none", "classes": 2},
    "unified, DR.PM": {"method": "unified", "selection": "piecewise", "attributes": 2},
    "unified, DR.WA": {"method": "unified", "selection": "weak", "attributes": 2},
    "unified, DR.WA corr": {"method": "unified", "selection": "weak", "form": "corr"},
    "unified, printed": {"method": "unified", "variant": "paper", "attributes": 2, "classes": 3},
    "unified, tree": {"method": "unified", "classifier": "tree", "attributes": 2},
    "unified, logistic": {"method": "unified", "classifier": "logistic", "attributes": 3},
    "weak": {"method": "weak", "classes": 3},
    "piecewise": {"method": "piecewise", "classifier": "logistic", "attributes": 2},
}


def task_of(way: str, schema: ScaledSchema | None = None, epsilon: float = 8.0) -> RecordTask:
    """Return a small course."""
    return RecordTask(schema or ranges(4), epsilon, OWNERS, **WAYS[way])


def taught(one: RecordTask, records: ScaledRecords, seed: int = 1) -> bytes:
    """Let owners report in all rounds, and return what was learnt."""
    content = one.first()
    for number in range(one.rounds):
        assert one.round_of(content) == number
        rows = one.report(number, content, records, SeededSource(seed, "round", number))
        batch = sorted_rows(one.kind(number).encode(rows))
        content = one.next(number, content, RoundRelease(len(records), rows=batch))
    assert one.round_of(content) == one.rounds
    return content


@pytest.mark.parametrize("way", WAYS)
def test_every_way_learns_and_answers(way: str) -> None:
    """Far apart, 3,000 owners: each way names 0.6 at the very least, chance being 0.5."""
    schema = ranges(4)
    one, queried = task_of(way), two_groups(schema, 1000, "asked", 1.0)
    content = taught(one, two_groups(schema, OWNERS, "owners", 1.0))
    assert accuracy(one.predict(content, queried), queried) > 0.6
    kind = one.query_kind
    assert kind is not None
    batch = kind.encode(one.query(content, queried, SeededSource(1, "query")))
    answers = one.answers(content, batch)
    assert accuracy(answers, queried) > 0.6
    assert np.array_equal(answers, one.answers(content, batch))


def test_what_ranges_and_training_cost_together_is_epsilon() -> None:
    for share, epsilon in itertools.product((0.1, 0.3, 0.7), (0.3, 1.1, 8.0)):
        one = RecordTask(ranges(4), epsilon, OWNERS, range_share=share)
        assert one.phases == ("ranges", "training")
        assert one.range_phase is not None
        spent = one.range_phase.guarantee().epsilon + one.trainer.guarantee(()).epsilon
        assert epsilon - 1e-5 <= spent <= epsilon
        assert one.trainer.query_guarantee(()).epsilon == pytest.approx(epsilon, abs=1e-6)


@pytest.mark.parametrize(
    "changed",
    [[[-1.0, 1.0]] * 3, [[0.5, 0.5]] * 4, [[-2.0, 0.0]] * 4, [[0, 1]] * 4, "x", [[0.0]] * 4],
)
def test_a_content_with_other_ranges_than_a_task_has_is_refused(changed: object) -> None:
    one = task_of("private ranges")
    content = one.next(0, one.first(), RoundRelease(0))
    assert one.ranges(content) == ((-1.0, 1.0),) * 4  # nobody reported: as declared
    read = read_content(content)
    bad = write_content(RoundContent({**read.payload, "ranges": changed}, read.arrays))
    with pytest.raises(BadFrame):
        one.columns(bad)


def test_three_labels_are_fitted_queried_and_answered() -> None:
    """3,000 owners, labels far apart: 0.8 at least where chance is a third, by either way."""
    label = Label("label", "a", "b", ("c",))
    schema = ScaledSchema(ranges(3).attributes, label)
    draw = SeededSource(8, "labels").generator()
    labels = draw.integers(0, 3, OWNERS).astype(np.uint8)
    values = np.clip(draw.normal((labels[:, None] - 1) * 0.6, 0.3, (OWNERS, 3)), -1, 1)
    records = ScaledRecords(values, labels)
    one = RecordTask(schema, 6.0, OWNERS)
    content = taught(one, records)
    assert np.mean(one.predict(content, records) == labels) > 0.8
    assert one.query_kind is not None
    batch = one.query_kind.encode(one.query(content, records, SeededSource(1, "query")))
    assert np.mean(one.answers(content, batch) == labels) > 0.8
    assert one.trainer.query_guarantee(()).epsilon == pytest.approx(6.0, abs=1e-6)
    assert RecordTask.of_json(one.as_json()) == one
    with pytest.raises(BadParameter, match="method"):
        RecordTask(schema, 6.0, OWNERS, method="unified")


def test_a_decision_is_queried_by_one_response_with_the_whole_epsilon() -> None:
    one = task_of("joint-bayes", epsilon=1.0)
    content = taught(one, two_groups(ranges(4), OWNERS, "owners", 1.0))
    record = two_groups(ranges(4), 1, "asked")
    distribution = enumerate_distribution(
        lambda source: one.query(content, record, source)["bits"][:, 0]
    )
    decided = bool(one.predict(content, record)[0])
    stated = BinaryResponse(1.0).log_likelihood(np.array([False, True]), decided)
    assert [math.log(distribution[bit]) for bit in (False, True)] == pytest.approx(
        list(stated), abs=1e-12
    )


def test_nobody_reports_in_a_round_that_the_content_is_not_of() -> None:
    one = task_of("unified, DR.PM")
    records = two_groups(ranges(4), 10, "owners")
    with pytest.raises(BadFrame, match="another round"):
        one.report(1, one.first(), records, SeededSource(1, "early"))


@pytest.mark.parametrize("way", WAYS)
def test_a_task_reads_back_from_its_description(way: str) -> None:
    one = task_of(way, mixed_schema())
    assert task_registry.task_from_description(task_registry.task_description(one)) == one
    assert RecordTask.of_json(one.as_json()).first() == one.first()


@pytest.mark.parametrize("way", WAYS)
def test_the_same_rows_teach_the_same_bytes_in_any_order(way: str) -> None:
    schema = mixed_schema()
    one, owners = task_of(way, schema), two_groups(schema, 600, "owners")
    content = taught(one, owners)
    with new_run():
        assert taught(one, owners) == content
    assert one.round_of(content) == one.rounds


def test_classes_that_an_attribute_does_not_have_teach_nothing() -> None:
    schema = mixed_schema()
    for way in ("joint-bayes", "joint-svm", "joint-svm, selected", "unified, DR.WA"):
        one, owners = task_of(way, schema), two_groups(schema, 600, "owners")
        content = one.first()
        for number in range(one.rounds):
            kind = one.kind(number)
            rows = one.report(number, content, owners, SeededSource(2, way, number))
            honest = kind.encode(rows)
            tops = {name: np.full(50, _top(column)) for name, column in kind.columns}
            both = sorted_rows(joined(kind, [honest, kind.encode(tops)]))
            found = one.next(number, content, RoundRelease(650, rows=both))
            alone = one.next(number, content, RoundRelease(600, rows=sorted_rows(honest)))
            if way != "joint-svm":  # all of its attributes may be of the largest size
                assert found == alone
            content = alone


def _top(column: Any) -> int:
    return int(getattr(column, "high", getattr(column, "size", 1) - 1))


@pytest.mark.parametrize("way", WAYS)
def test_a_round_without_reports_goes_on(way: str) -> None:
    one, queried = task_of(way), two_groups(ranges(4), 5, "asked")
    content = one.first()
    for number in range(one.rounds):
        content = one.next(number, content, RoundRelease(0))
    assert not one.predict(content, queried).any()


def test_a_published_machine_is_that_of_scikit_learn() -> None:
    from sklearn.svm import SVC

    draw = SeededSource(3, "machine").generator()
    features = draw.uniform(-1, 1, (400, 3))
    labels = features.sum(axis=1) + draw.normal(0, 0.3, 400) > 0
    machine = SVC(C=1.7, gamma="scale").fit(features, labels)
    made = export_svc(machine)
    again = model_from_arrays("kernel", made.arrays())
    queried = draw.uniform(-1, 1, (500, 3))
    assert np.allclose(made.scores(queried), machine.decision_function(queried), atol=1e-9)
    assert np.array_equal(again.predict(queried), machine.predict(queried))


def test_a_table_tells_what_its_classifier_tells() -> None:
    centres = (np.array([-0.5, 0.5]), np.array([-1.0, 0.0, 1.0]))
    decisions = np.array([0.0, 1, 0, 1, 1, 0])
    table = TableModel(centres, decisions)
    rows = np.array(list(itertools.product(*centres)))
    assert np.array_equal(table.predict(rows), decisions > 0)
    again = model_from_arrays("table", table.arrays())
    assert np.array_equal(again.predict(rows), decisions > 0)
    with pytest.raises(BadParameter):
        TableModel(centres, decisions[:-1])
    with pytest.raises(BadParameter):
        KernelModel(rows, decisions[:-1], 0.0, 1.0)


def test_bytes_that_are_no_content_are_refused() -> None:
    one = task_of("joint-svm")
    content = taught(one, two_groups(ranges(4), 400, "owners"))
    flips = [content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :] for at in range(0, 60, 7)]
    cut = [content[:-8], content + b"\0" * 8, b"", b"NFRC", content[: len(content) // 2]]
    for data in (*flips, *cut):
        with pytest.raises(BadFrame):
            one.predict(data, two_groups(ranges(4), 2, "asked"))


@pytest.mark.parametrize(
    "change",
    [
        {"round": 5},
        {"round": True},
        {"columns": [0, 0]},
        {"columns": [99]},
        {"columns": "all"},
        {"form": "pickle"},
        {"form": ["kernel"]},
        {"course": "other"},
        {"more": 1},
    ],
)
def test_a_content_that_says_something_else_is_refused(change: dict[str, Any]) -> None:
    one = task_of("joint-svm")
    read = read_content(taught(one, two_groups(ranges(4), 400, "owners")))
    with pytest.raises(BadFrame):
        one.fitted_model(write_content(RoundContent({**read.payload, **change}, read.arrays)))
    with pytest.raises(BadFrame):
        one.fitted_model(write_content(RoundContent(read.payload, {})))
    with pytest.raises(BadFrame):
        one.fitted_model(one.first())


def test_a_content_of_another_task_is_refused() -> None:
    with pytest.raises(BadFrame, match="another task"):
        task_of("unified").round_of(task_of("unified", epsilon=2.0).first())


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"method": "tree"}, "method"),
        ({"selection": "best"}, "selection"),
        ({"selection": "weak"}, "selection"),
        ({"attributes": 5}, "attributes"),
        ({"method": "unified", "selection": "none", "attributes": 2}, "attributes"),
        ({"classes": 1}, "classes"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"owners": 0}, "owners"),
        ({"method": "unified", "classifier": "svn"}, "classifier"),
        ({"method": "piecewise", "classifier": "forest"}, "classifier"),
        ({"method": "unified", "variant": "printed"}, "variant"),
        ({"seed": -1}, "seed"),
    ],
)
def test_a_task_that_could_not_be_run_is_refused_before(
    change: dict[str, Any], named: str
) -> None:
    given: dict[str, Any] = {"schema": ranges(4), "epsilon": 2.0, "owners": 100, **change}
    with pytest.raises(BadParameter, match=named):
        RecordTask(**given)


def test_a_description_with_something_else_is_refused() -> None:
    answers = task_of("unified").as_json()
    for broken in ({**answers, "pickle": 1}, {"method": "unified"}, {**answers, "schema": 3}):
        with pytest.raises(BadParameter):
            RecordTask.of_json(broken)
