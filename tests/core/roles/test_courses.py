"""A learner of any course: sums or sorted rows, answers once all is learnt, and snapshots."""

from itertools import permutations

import numpy as np
import pytest

import course_cases
from course_cases import Threshold, Totals, crowd, queries, read, values
from noisefloor.ads.bit_training import BitTraining
from noisefloor.errors import BadCollection, BadFrame, BadParameter, BadSnapshot, NotLearnt
from noisefloor.roles import AdCourse, Learner, Status, course_list
from noisefloor.roles.collection import Collection, example
from noisefloor.roles.courses import Course, Released
from noisefloor.roles.queries import MOST_QUERIES

ROWS = [crowd(0, 1, (30, 0), (70, 1)), crowd(0, 2, (60, 1)), crowd(0, 3, (10, 0), (99, 1))]
COURSES: list[Course] = [Totals(), Threshold("a", "b", 5), AdCourse(BitTraining(4, 2, 8.0, 3))]


def fed(course: Course, *frames: bytes) -> Learner:
    learner = Learner(course)
    for data in frames:
        assert learner.apply(data).status is Status.COUNTED
    return learner


def test_a_course_over_sums_learns_from_each_round() -> None:
    learner = fed(Totals(), values(0, 1, 5, 6), values(0, 2, -1))
    learner.close(0)
    assert (learner.number, read(learner.content)["total"]) == (1, 10)
    learner.close(1)
    assert read(learner.content)["total"] == 10
    learner.apply(values(2, 3, 7))
    learner.close(2)
    assert learner.is_done and read(learner.content)["total"] == 17
    assert learner.summary(2).rows == 1


def test_a_course_over_rows_gets_them_sorted_whatever_their_order() -> None:
    contents = set()
    for order in permutations(ROWS):
        learner = fed(Threshold(), *order)
        learner.close(0)
        contents.add(learner.content)
    assert len(contents) == 1
    assert read(contents.pop())["threshold"] == 60


def test_queries_are_answered_once_all_is_learnt() -> None:
    learner = fed(Threshold(), *ROWS)
    for number in range(2):
        with pytest.raises(NotLearnt):
            learner.answers(queries(1))
        learner.close(number)
    assert learner.answers(queries(59, 60, 0, 100)).tolist() == [False, True, False, True]
    for bad in (b"", ROWS[0], queries(1)[:-1], queries(*[1] * (MOST_QUERIES + 1))):
        with pytest.raises(BadFrame):
            learner.answers(bad)
    assert learner.counters.accepted == 3  # nothing is kept of a query


def test_a_course_without_queries_answers_none() -> None:
    course = AdCourse(BitTraining(4, 2, 8.0, 3))
    with pytest.raises(BadParameter, match="answers queries"):
        Learner(course).answers(queries(1))
    with pytest.raises(BadParameter):
        course.answers(course.first(), course_cases.QUERIES.encode({"value": np.array([1])}))
    with pytest.raises(BadParameter, match="sums"):
        course.next(0, course.first(), Released(1))


def test_a_snapshot_brings_rows_back() -> None:
    learner = fed(Threshold(), *ROWS[:2])
    copy = Learner.restore(learner.snapshot(), Threshold())
    for one in (learner, copy):
        assert one.apply(ROWS[0]).status is Status.DUPLICATE
        one.apply(ROWS[2])
        one.close(0)
    assert copy.content == learner.content
    assert copy.snapshot() == learner.snapshot()
    with pytest.raises(BadSnapshot):
        Learner.restore(learner.snapshot(), Totals())


@pytest.mark.parametrize("course", COURSES, ids=lambda one: type(one).__name__)
def test_a_collection_has_its_course(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = (*course_list.FAMILIES, *course_cases.FAMILIES)
    monkeypatch.setattr(course_list, "FAMILIES", listed)
    collection = Collection(example(4).catalogue, course=course)
    assert Collection.parse(collection.content) == collection
    assert {course.kind(0).name, "impressions"} == set(collection.kinds)
    with pytest.raises(BadParameter, match="first_epoch"):
        Collection(example(4).catalogue, first_epoch=1, course=course)


def test_a_course_that_is_not_listed_is_refused() -> None:
    with pytest.raises(BadParameter, match="listed"):
        course_list.task_description(Totals())
    content = Collection(example(4).catalogue, course=COURSES[2]).content
    for other in (b'"totals"', b"[]", b"null", b"3"):
        with pytest.raises(BadCollection):
            Collection.parse(content.replace(b'"bits"', other))
    with pytest.raises(BadCollection):
        Collection.parse(content.replace(b'"course"', b'"training"'))
