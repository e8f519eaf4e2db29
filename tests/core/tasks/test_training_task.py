"""A learner of any course: sums or sorted rows, answers once all is learnt, and snapshots."""

from itertools import permutations

import numpy as np
import pytest

import task_cases
from noisefloor.ads.training.bit_training import BitTraining
from noisefloor.errors import BadCollection, BadFrame, BadParameter, BadSnapshot, NotFitted
from noisefloor.roles import FrameStatus, TrainingCoordinator
from noisefloor.roles.collection_config import CollectionConfig, example_collection
from noisefloor.tasks import AdTask, task_registry
from noisefloor.tasks.training_task import MOST_QUERIES, RoundRelease, TrainingTask
from task_cases import Threshold, Totals, crowd, queries, read, values

ROWS = [crowd(0, 1, (30, 0), (70, 1)), crowd(0, 2, (60, 1)), crowd(0, 3, (10, 0), (99, 1))]
TASKS: list[TrainingTask] = [Totals(), Threshold("a", "b", 5), AdTask(BitTraining(4, 2, 8.0, 3))]


def fed(task: TrainingTask, *frames: bytes) -> TrainingCoordinator:
    learner = TrainingCoordinator(task)
    for data in frames:
        assert learner.apply(data).status is FrameStatus.COUNTED
    return learner


def test_a_task_over_sums_learns_from_each_round() -> None:
    learner = fed(Totals(), values(0, 1, 5, 6), values(0, 2, -1))
    learner.close(0)
    assert (learner.number, read(learner.content)["total"]) == (1, 10)
    learner.close(1)
    assert read(learner.content)["total"] == 10
    learner.apply(values(2, 3, 7))
    learner.close(2)
    assert learner.is_done and read(learner.content)["total"] == 17
    assert learner.summary(2).rows == 1


def test_a_task_over_rows_gets_them_sorted_whatever_their_order() -> None:
    contents = set()
    for order in permutations(ROWS):
        learner = fed(Threshold(), *order)
        learner.close(0)
        contents.add(learner.content)
    assert len(contents) == 1
    assert read(contents.pop())["threshold"] == 60


def test_queries_are_answered_after_the_last_round() -> None:
    learner = fed(Threshold(), *ROWS)
    for number in range(2):
        with pytest.raises(NotFitted):
            learner.answers(queries(1))
        learner.close(number)
    assert learner.answers(queries(59, 60, 0, 100)).tolist() == [False, True, False, True]
    for bad in (b"", ROWS[0], queries(1)[:-1], queries(*[1] * (MOST_QUERIES + 1))):
        with pytest.raises(BadFrame):
            learner.answers(bad)
    assert learner.counters.accepted == 3  # nothing is kept of a query


def test_a_task_without_queries_answers_none() -> None:
    task = AdTask(BitTraining(4, 2, 8.0, 3))
    with pytest.raises(BadParameter, match="answers queries"):
        TrainingCoordinator(task).answers(queries(1))
    with pytest.raises(BadParameter):
        task.answers(task.first(), task_cases.QUERIES.encode({"value": np.array([1])}))
    with pytest.raises(BadParameter, match="sums"):
        task.next(0, task.first(), RoundRelease(1))


def test_a_snapshot_brings_rows_back() -> None:
    learner = fed(Threshold(), *ROWS[:2])
    copy = TrainingCoordinator.restore(learner.snapshot(), Threshold())
    for one in (learner, copy):
        assert one.apply(ROWS[0]).status is FrameStatus.DUPLICATE
        one.apply(ROWS[2])
        one.close(0)
    assert copy.content == learner.content
    assert copy.snapshot() == learner.snapshot()
    with pytest.raises(BadSnapshot):
        TrainingCoordinator.restore(learner.snapshot(), Totals())


@pytest.mark.parametrize("task", TASKS, ids=lambda one: type(one).__name__)
def test_a_collection_has_its_task(task: TrainingTask, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = (*task_registry.TASK_FAMILIES, *task_cases.FAMILIES)
    monkeypatch.setattr(task_registry, "TASK_FAMILIES", listed)
    collection = CollectionConfig(example_collection(4).catalogue, task=task)
    assert CollectionConfig.parse(collection.content) == collection
    assert {task.kind(0).name, "impressions"} == set(collection.kinds)
    with pytest.raises(BadParameter, match="first_epoch"):
        CollectionConfig(example_collection(4).catalogue, first_epoch=1, task=task)


def test_a_task_that_is_not_listed_is_refused() -> None:
    with pytest.raises(BadParameter, match="listed"):
        task_registry.task_description(Totals())
    content = CollectionConfig(example_collection(4).catalogue, task=TASKS[2]).content
    for other in (b'"totals"', b"[]", b"null", b"3"):
        with pytest.raises(BadCollection):
            CollectionConfig.parse(content.replace(b'"bits"', other))
    with pytest.raises(BadCollection):
        CollectionConfig.parse(content.replace(b'"course"', b'"training"'))
