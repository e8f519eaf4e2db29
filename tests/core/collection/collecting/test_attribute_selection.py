"""Selection: what tells the label is found; what it costs is stated, infinity included."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from collection_worlds import classes, records, schema
from noisefloor.collection.collecting.class_selection import ResponseSelection, WeakSelection
from noisefloor.collection.collecting.selection import (
    EveryAttribute,
    PiecewiseSelection,
    RandomSelection,
    ScoreForm,
    SelectionReports,
    Selector,
)
from noisefloor.collection.encoding.discretisation import Discretiser
from noisefloor.distributions import ONE
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import KaryResponse, Piecewise
from noisefloor.mechanisms.piecewise import STEPS
from noisefloor.randomness import SecureSource, SeededSource, new_run
from noisefloor.tables.scaled_records import ScaledRecords
from statistics_of_tests import FALSE_ALARM, binomial_p

FORMS: tuple[ScoreForm, ...] = ("prod", "cosine", "corr")
FINDING: dict[str, Callable[[], Selector]] = {
    "piecewise": lambda: PiecewiseSelection(2, 20.0),
    **{f"weak {form}": lambda form=form: WeakSelection(2, classes(), form) for form in FORMS},  # type: ignore[misc]
    **{
        f"response {form}": lambda form=form: ResponseSelection(2, classes(), 6.0, form)  # type: ignore[misc]
        for form in FORMS
    },
    "response on two": lambda: ResponseSelection(2, classes(4), 9.0, per_owner=2),
}


@pytest.mark.parametrize("name", FINDING)
def test_the_attributes_that_tell_the_label_are_found(name: str) -> None:
    selector = FINDING[name]()
    assert isinstance(selector, Selector)
    found = selector.select(records(), SeededSource(1, name))
    assert set(found.columns) == {0, 1}
    assert len(found.scores) == 6
    assert (found.scores >= 0).all()


@pytest.mark.parametrize("name", FINDING)
def test_the_same_draws_select_the_same_and_others_need_not(name: str) -> None:
    chosen = []
    for _ in range(2):
        with new_run():
            chosen.append(FINDING[name]().select(records(), SeededSource(1, "again")).scores)
    assert np.array_equal(chosen[0], chosen[1])
    FINDING[name]().select(records(200), SecureSource())


@pytest.mark.statistical
def test_values_and_labels_are_sent_with_their_share_of_epsilon(seed: int) -> None:
    """Of records of ones, cells from STEPS on are near. n = 10,000; false alarm FALSE_ALARM.

    The twin sends with the whole epsilon, of which each of three answers has a third.
    """
    ones = ScaledRecords(np.ones((10_000, 6)), np.ones(10_000, np.bool_))
    answers = PiecewiseSelection(2, 3.0).report(ones, SeededSource(seed, "shares"))
    assert answers.labels is not None
    for answers_of in (answers.reported, answers.labels):
        near = int((answers_of >= STEPS).sum())
        assert binomial_p(near, answers_of.size, Piecewise(1.0).window.inside / ONE) > FALSE_ALARM
        assert binomial_p(near, answers_of.size, Piecewise(3.0).window.inside / ONE) < FALSE_ALARM


def test_reported_classes_are_debiased_exactly_and_so_are_their_squares() -> None:
    selection = ResponseSelection(2, Discretiser(schema(3, categories=3), 4), 2.0, "corr")
    for column, size in enumerate(selection.classes.sizes):
        response, answers_of = KaryResponse(size, selection.share), np.arange(size)
        sent, squares = selection._debiased(np.full(size, column), answers_of)
        centres = selection.classes.centres(column)
        for true in range(size):
            distribution = np.exp(response.log_likelihood(answers_of, true))
            assert distribution @ sent == pytest.approx(centres[true], abs=1e-9)
            assert distribution @ squares == pytest.approx(centres[true] ** 2, abs=1e-9)


def test_a_class_that_its_attribute_does_not_have_counts_for_nothing() -> None:
    """The categorical attribute has 2 classes, the others 4; the frame's bound is that of 4."""
    selection = ResponseSelection(2, Discretiser(schema(3, categories=2), 4), 2.0)
    requested, answers_of = np.array([[0], [2], [1], [2]]), np.array([[3], [1], [0], [2]])
    labels = np.array([1, 0, 1, 1])
    found = selection.choose(SelectionReports(requested, answers_of, labels), 3)
    without = selection.choose(SelectionReports(requested[:3], answers_of[:3], labels[:3]), 3)
    assert found.scores.tolist() == without.scores.tolist()


def test_random_attributes_look_at_no_record() -> None:
    one = RandomSelection(3).select(records(seed=1), SeededSource(4, "one"))
    with new_run():
        other = RandomSelection(3).select(records(seed=2), SeededSource(4, "one"))
    assert one.columns == other.columns
    assert len(set(one.columns)) == 3
    drawn = [
        RandomSelection(1).select(records(10), SeededSource(seed, "spread")).columns[0]
        for seed in range(60)
    ]
    assert set(drawn) == set(range(6))


def test_fewer_random_attributes_are_among_the_more() -> None:
    one = RandomSelection(2).select(records(), SeededSource(4, "nested"))
    with new_run():
        more = RandomSelection(5).select(records(), SeededSource(4, "nested"))
    assert more.columns[:2] == one.columns


def test_what_a_selection_costs() -> None:
    assert EveryAttribute().guarantee().epsilon == 0
    assert RandomSelection(3).guarantee().epsilon == 0
    for count in (1, 4):
        assert PiecewiseSelection(count, 3.0).guarantee().epsilon == pytest.approx(3, abs=1e-5)
        assert PiecewiseSelection(count, 3.0).guarantee().epsilon <= 3
    for per_owner in (1, 3):
        cost = ResponseSelection(2, classes(4), 3.0, per_owner=per_owner).guarantee().epsilon
        assert 3 - 1e-6 <= cost <= 3
    weak = WeakSelection(2, classes()).guarantee()
    assert math.isinf(weak.epsilon)
    assert "without noise" in weak.reason


def test_debiased_products_are_those_of_all_records() -> None:
    """n = 200,000, one attribute each of 3: standard error below 0.02; six of them, 1e-6."""
    world, fair = records(200_000, attributes=3, telling=1), classes(4, 3)
    truth = np.abs(
        (fair.values(fair.codes(world.values)) * (2 * world.labels[:, None] - 1.0)).mean(axis=0)
    )
    found = ResponseSelection(1, fair, 2.0).select(world, SeededSource(2, "debiased")).scores
    assert np.abs(found - truth).max() < 0.12
    assert truth[0] > 0.4


def test_attributes_of_unlike_sizes_are_selected_together() -> None:
    draws = SeededSource(5, "unlike").generator()
    labels = draws.random(4000) < 0.5
    values = np.column_stack([draws.uniform(-1, 1, (4000, 2)), np.where(labels, 1.0, -1.0)])
    selector = ResponseSelection(1, Discretiser(schema(3, categories=2), 5), 4.0)
    assert selector.select(ScaledRecords(values, labels), SeededSource(1, "sizes")).columns == (2,)


def test_a_constant_attribute_goes_with_nothing() -> None:
    world = records()
    values = world.values.copy()
    values[:, 3] = 0.9
    selector = WeakSelection(6, classes(), "corr")
    found = selector.select(ScaledRecords(values, world.labels), SeededSource(1, "constant"))
    assert found.scores[3] == 0


def test_an_attribute_that_nobody_was_queried_about_comes_last() -> None:
    found = WeakSelection(1, classes()).select(records(2), SeededSource(1, "few"))
    assert np.count_nonzero(found.scores == 0) >= 4


@pytest.mark.parametrize(
    "make",
    [
        lambda: RandomSelection(0),
        lambda: RandomSelection(True),
        lambda: PiecewiseSelection(2, 0.0),
        lambda: PiecewiseSelection(2, 1e-12),
        lambda: WeakSelection(7, classes()),
        lambda: WeakSelection(2, classes(), "cube"),  # type: ignore[arg-type]
        lambda: ResponseSelection(7, classes(), 1.0),
        lambda: ResponseSelection(1, classes(), -1.0),
        lambda: ResponseSelection(1, classes(), 1.0, per_owner=7),
    ],
)
def test_bad_parameters_are_refused(make: Callable[[], Selector]) -> None:
    with pytest.raises(BadParameter):
        make()


@pytest.mark.parametrize("selector", [RandomSelection(7), PiecewiseSelection(7, 3.0)])
def test_more_attributes_than_there_are_cannot_be_selected(selector: Selector) -> None:
    with pytest.raises(BadParameter, match="number of attributes"):
        selector.select(records(10), SeededSource(1, "more"))
