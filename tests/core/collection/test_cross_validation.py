"""Training and testing: every combination learns what there is; bad input is refused."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from collection_worlds import classes, records
from noisefloor.collection.collecting.class_selection import WeakSelection
from noisefloor.collection.collecting.collectors import (
    Collector,
    RawCollector,
    UnifiedCollector,
    WeakCollector,
)
from noisefloor.collection.collecting.selection import EveryAttribute, RandomSelection
from noisefloor.collection.cross_validation import (
    CollectionPlan,
    cross_validate,
    fold_rows,
    predict_from_queries,
    train,
)
from noisefloor.collection.learners.classifiers import (
    CLASSIFIERS,
    ConstantClassifier,
    SklearnClassifier,
    fit,
)
from noisefloor.errors import BadParameter
from noisefloor.randomness import SeededSource, new_run
from noisefloor.tables.scaled_records import ScaledRecords

LEVELS: dict[str, Callable[[], Collector]] = {
    "WA": lambda: WeakCollector(classes(4)),
    "WALDP": lambda: UnifiedCollector(classes(4), 12.0),
}


@pytest.mark.parametrize("levels", list(itertools.product(LEVELS, repeat=2)), ids="/".join)
def test_every_combination_of_levels_learns(levels: tuple[str, str]) -> None:
    """Two attributes tell 95 % of the labels; noise at 4 for each value leaves most of it."""
    training, test = (LEVELS[level]() for level in levels)
    plan = CollectionPlan(WeakSelection(2, classes(4)), training, test)
    score = cross_validate(records(600), plan, SeededSource(1, "levels"), folds=5)
    assert score.accuracy > 0.8
    assert score.total == 600
    assert 0.5 <= score.baseline < 0.6


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_every_classifier_on_the_list_learns(name: str) -> None:
    plan = CollectionPlan(EveryAttribute(), RawCollector(), RawCollector(), classifier=name)
    assert cross_validate(records(300), plan, SeededSource(1, name), folds=3).accuracy > 0.85


def test_the_same_seed_gives_the_same_support_vectors() -> None:
    fitted = []
    for _ in range(2):
        with new_run():
            plan = CollectionPlan(
                RandomSelection(3), LEVELS["WALDP"](), LEVELS["WALDP"](), weight=2.1
            )
            fitted.append(train(records(300), plan, SeededSource(1, "vectors")))
    one, other = fitted
    assert one.columns == other.columns
    assert isinstance(one.model, SklearnClassifier)
    assert isinstance(other.model, SklearnClassifier)
    vectors = [model.estimator.support_vectors_ for model in (one.model, other.model)]
    assert np.array_equal(vectors[0], vectors[1])


def test_a_queried_model_answers_each_record_once() -> None:
    plan = CollectionPlan(EveryAttribute(), RawCollector(), RawCollector())
    trained = train(records(300), plan, SeededSource(1, "train"))
    fresh = records(100, seed=2)
    predicted = predict_from_queries(fresh, trained, plan, SeededSource(1, "ask"))
    assert predicted.dtype == np.bool_
    assert (predicted == fresh.labels).mean() > 0.85


def test_a_selection_that_uses_data_sees_training_records_only() -> None:
    seen: list[int] = []

    class Watching:
        name, uses_data = "watching", True

        def select(self, some: ScaledRecords, source: object) -> object:
            seen.append(len(some))
            return EveryAttribute().select(some, source)  # type: ignore[arg-type]

        def guarantee(self) -> object:
            return EveryAttribute().guarantee()

    plan = CollectionPlan(Watching(), RawCollector(), RawCollector())  # type: ignore[arg-type]
    cross_validate(records(100), plan, SeededSource(1, "folds"), folds=4)
    assert seen == [75] * 4
    cross_validate(records(100), plan, SeededSource(2, "all"), folds=4, select_from_all=True)
    assert seen[4:] == [100]


def test_folds_cover_every_record_once() -> None:
    found = fold_rows(103, 10, SeededSource(1, "parts"))
    assert sorted(np.concatenate([part for _, part in found]).tolist()) == list(range(103))
    for rest, part in found:
        assert len(rest) + len(part) == 103
        assert not set(rest.tolist()) & set(part.tolist())


def test_reports_of_one_class_teach_that_class() -> None:
    model = fit("svm", np.zeros((4, 1)), np.ones(4, dtype=np.bool_))
    assert model == ConstantClassifier(True)
    assert model.predict(np.zeros((3, 1))).tolist() == [True] * 3


@pytest.mark.parametrize("label", [True, False])
def test_records_of_one_class_are_refused(label: bool) -> None:
    world = ScaledRecords(records(20).values, np.full(20, label))
    plan = CollectionPlan(EveryAttribute(), RawCollector(), RawCollector())
    for run in (train, cross_validate):
        with pytest.raises(BadParameter, match="both classes"):
            run(world, plan, SeededSource(1, "one"))


@pytest.mark.parametrize("folds", [1, 0, 101, True])
def test_bad_folds_are_refused(folds: int) -> None:
    plan = CollectionPlan(EveryAttribute(), RawCollector(), RawCollector())
    with pytest.raises(BadParameter, match="folds"):
        cross_validate(records(100), plan, SeededSource(1, "bad"), folds=folds)


def test_an_unknown_classifier_is_refused_with_a_hint() -> None:
    with pytest.raises(BadParameter, match="did you mean 'forest'"):
        CollectionPlan(EveryAttribute(), RawCollector(), RawCollector(), classifier="forrest")
    with pytest.raises(BadParameter, match="weight"):
        CollectionPlan(EveryAttribute(), RawCollector(), RawCollector(), weight=0)
    with pytest.raises(BadParameter, match="labels"):
        fit("svm", np.zeros((3, 1)), np.ones(2, dtype=np.bool_))
