"""The paper's machine on joint responses."""

import numpy as np
import pytest

from noisefloor.collection.encoding.discretisation import Discretiser
from noisefloor.collection.encoding.joint_response import JointResponse
from noisefloor.collection.encoding.report_columns import joint_rows
from noisefloor.collection.learners.classifiers import fit_svm, machine_of
from noisefloor.errors import BadParameter
from noisefloor.randomness import SeededSource
from record_worlds import accuracy, ranges, two_groups

svm = pytest.importorskip("sklearn.svm")


def test_weighted_rows_are_the_same_problem_as_repeated_ones() -> None:
    classes = Discretiser(ranges(3), 3)
    records = two_groups(ranges(3), 600, "weights")
    values = classes.values(classes.codes(records.values))
    plain = svm.SVC(C=2.1, gamma="scale").fit(values, np.where(records.labels, 1, -1))
    machine = machine_of(values, records.labels, 2.1)
    every = classes.values(np.unique(classes.codes(records.values), axis=0))
    scores = plain.decision_function(every)
    assert np.allclose(machine.decision_function(every), scores, atol=0.02)
    assert len(machine.support_) < len(plain.support_)


def test_it_learns_and_answers_protected_queries() -> None:
    schema, columns = ranges(8), (1, 3, 4, 6)
    records, queried = two_groups(schema, 1_000, "svm"), two_groups(schema, 2_000, "asked")
    classes = Discretiser(schema, 2)
    response = JointResponse((2,) * 4, 4, 5.0)
    codes = classes.codes(records.values[:, columns], columns)
    reports = response.randomise(joint_rows(codes, records.labels), SeededSource(7, "svm"))
    model = fit_svm(classes, columns, reports, 2.1)
    assert accuracy(model.predict(queried.values), queried) > 0.8
    asker = JointResponse((2,) * 4, 4, 5.0, labelled=False)
    codes = classes.codes(queried.values[:, columns], columns)
    queries = asker.randomise(codes, SeededSource(7, "ask"))[:, 4:]
    assert accuracy(model.predict_codes(queries), queried) > 0.75


@pytest.mark.parametrize("label", [0, 1])
def test_one_label_alone_gives_that_label(label: int) -> None:
    classes = Discretiser(ranges(2), 2)
    reports = np.array([[0, 1, 0, 1, label]] * 5, dtype=np.uint16)
    model = fit_svm(classes, (0, 1), reports)
    assert (model.predict(np.zeros((3, 2))) == bool(label)).all()


def test_one_row_alone_is_fitted_without_a_variance() -> None:
    reports = np.array([[0, 0, 0], [0, 0, 1], [0, 0, 1]], dtype=np.uint16)
    model = fit_svm(Discretiser(ranges(1), 2), (0,), reports)
    assert model.predict(np.zeros((2, 1))).shape == (2,)


def test_rows_of_other_columns_are_refused() -> None:
    with pytest.raises(BadParameter, match="reports"):
        fit_svm(Discretiser(ranges(3), 2), (0, 1), np.zeros((2, 3), dtype=np.uint16))
