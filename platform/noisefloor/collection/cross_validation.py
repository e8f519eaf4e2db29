"""PPTraining and PPTesting: select, collect, fit; then collect what is queried, and predict.

A plan names who selects and what owners send when they train and when they ask. Its score is by
cross-validation against the true labels: that is the researcher's view, which no server has.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import check_count, check_extra
from noisefloor.collection.collecting import AttributeSelection, Collected, Collector, Selector
from noisefloor.collection.learners import Classifier, check_classifier, fit
from noisefloor.errors import BadParameter
from noisefloor.randomness import Source
from noisefloor.tables import Labels, ScaledRecords

FOLDS = 10


@dataclass(frozen=True, slots=True)
class CollectionPlan:
    """What is run.

    Attributes:
        selection: Chooses the attributes.
        train: What owners of training records send.
        test: What those who ask send.
        classifier: A key of ``CLASSIFIERS``.
        weight: Its C.
    """

    selection: Selector
    train: Collector
    test: Collector
    classifier: str = "svm"
    weight: float = 1.0

    def __post_init__(self) -> None:
        check_classifier(self.classifier, self.weight)


@dataclass(frozen=True, slots=True, eq=False)
class TrainedPlan:
    """A model and the attributes that it asks for."""

    columns: tuple[int, ...]
    model: Classifier

    def predict(self, collected: Collected) -> Labels:
        """Return the model's answers; it never sees the labels that came along."""
        return self.model.predict(collected.features)


@dataclass(frozen=True, slots=True)
class CrossValidationScore:
    """How many true labels were predicted.

    Attributes:
        right: Of all records, each queried once.
        total: Records.
        majority: Records of the more frequent class: what a constant answer gets right.
    """

    right: int
    total: int
    majority: int

    @property
    def accuracy(self) -> float:
        """The share of right answers."""
        return self.right / self.total

    @property
    def baseline(self) -> float:
        """The accuracy of always telling the more frequent class."""
        return self.majority / self.total


def train(
    records: ScaledRecords,
    plan: CollectionPlan,
    source: Source,
    selection: AttributeSelection | None = None,
) -> TrainedPlan:
    """Select, collect and fit.

    Args:
        records: Of the owners who take part.
        plan: What is run.
        source: Of all draws.
        selection: What was chosen before, if it was.
    """
    check_both_classes(records)
    chosen = selection or plan.selection.select(records, source.child("selection"))
    collected = plan.train.collect(records, chosen.columns, source.child("training"))
    seed = int(source.child("classifier").words(1)[0] >> np.uint64(33))
    model = fit(
        plan.classifier, collected.features, collected.labels, weight=plan.weight, seed=seed
    )
    return TrainedPlan(chosen.columns, model)


def predict_from_queries(
    records: ScaledRecords, trained: TrainedPlan, plan: CollectionPlan, source: Source
) -> Labels:
    """Return what the model tells of records that are sent to it as the plan says."""
    return trained.predict(plan.test.collect(records, trained.columns, source))


def cross_validate(
    records: ScaledRecords,
    plan: CollectionPlan,
    source: Source,
    *,
    folds: int = FOLDS,
    select_from_all: bool = False,
) -> CrossValidationScore:
    """Train on all parts but one and ask about that one, for each part.

    Records are shuffled by the source. A selection that uses data sees training records only,
    unless it is to see all; one that does not is made once.

    Args:
        records: Of one data set.
        plan: What is run.
        source: Of all draws; a child for each fold.
        folds: Parts, at least 2 and at most as many as records.
        select_from_all: Select once, from all records, those to be queried included: as the
            paper seems to do. The score is then a little too good.
    """
    check_both_classes(records)
    check_count(folds, "folds", least=2, most=len(records))
    chosen = None
    if select_from_all or not plan.selection.uses_data:
        chosen = plan.selection.select(records, source.child("selection"))
    right = 0
    with one_thread():
        for place, (rest, part) in enumerate(
            fold_rows(len(records), folds, source.child("shuffle"))
        ):
            mine = source.child("fold", place)
            trained = train(records[rest], plan, mine, chosen)
            predicted = predict_from_queries(records[part], trained, plan, mine.child("asked"))
            right += int(np.count_nonzero(predicted == records.labels[part]))
    positive = int(np.count_nonzero(records.labels))
    return CrossValidationScore(right, len(records), max(positive, len(records) - positive))


def fold_rows(
    count: int, folds: int, source: Source
) -> Sequence[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Return the rows to train on and the rows to ask about, for each fold."""
    order = np.argsort(source.stage("shuffle").words(count))
    pieces = np.array_split(order, folds)
    return [
        (np.concatenate([*pieces[:place], *pieces[place + 1 :]]), piece)
        for place, piece in enumerate(pieces)
    ]


def check_both_classes(records: ScaledRecords) -> None:
    """Refuse records of which all have one label: nothing can be distinguished."""
    if not len(records) or records.labels.all() or not records.labels.any():
        raise BadParameter(
            "records", f"<{len(records)} records>", "to have labels of both classes"
        )


def one_thread() -> AbstractContextManager[object]:
    """Keep linear algebra on one thread: on small matrices more of them only wait."""
    check_extra("Training", "collection", "scikit-learn", "threadpoolctl")
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1)  # type: ignore[no-any-return]  # it has no types
