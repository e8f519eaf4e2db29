"""Support vectors as an adversary reads them in a published machine, and who publishes it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import Floats
from noisefloor.collection.classes import Classes
from noisefloor.collection.classifiers import Constant, Fitted, Model, fit
from noisefloor.collection.collectors import (
    Collected,
    Collector,
    RawCollector,
    UnifiedCollector,
    WeakCollector,
)
from noisefloor.collection.decision_models import ConstantModel, KernelModel, kernel_of
from noisefloor.collection.joint import JointResponse
from noisefloor.collection.joint_collector import JointCollector
from noisefloor.collection.joint_svm import JointSVM, fit_svm
from noisefloor.collection.schema import Labels, Records
from noisefloor.errors import BadParameter
from noisefloor.privacy import Neighbours
from noisefloor.randomness import Source


@dataclass(frozen=True, slots=True, eq=False)
class SupportVectors:
    """What anybody reads in a published support vector machine.

    Attributes:
        vectors: Its support vectors; none if it tells the same of everything.
        labels: Of the support vectors, by the sign of their weights.
        model: That predicts from features.
    """

    vectors: Floats
    labels: Labels
    model: Model

    @classmethod
    def of(cls, model: Model | JointSVM, width: int) -> "SupportVectors":
        """Read a machine of so many features, or a model that knows a single label.

        Args:
            model: As ``classifiers.fit`` or ``fit_svm`` returns it, or as it is published.
            width: How many features it has.
        """
        if isinstance(model, JointSVM):
            only = model.machine
            model = Constant(only) if isinstance(only, bool) else kernel_of(only)
        if isinstance(model, Fitted) and hasattr(model.estimator, "support_vectors_"):
            machine = model.estimator
            return cls(machine.support_vectors_, np.asarray(machine.dual_coef_[0] > 0), model)
        if isinstance(model, KernelModel):
            return cls(model.vectors, model.weights > 0, model)
        if isinstance(model, Constant | ConstantModel):
            return cls(np.empty((0, width)), np.empty(0, dtype=np.bool_), model)
        raise BadParameter("model", type(model).__name__, "to have support vectors")

    def holds(self, rows: Collected) -> NDArray[np.bool_]:
        """Return which rows are support vectors, in every feature and with their label."""
        mine = np.column_stack([self.vectors, self.labels])
        theirs = np.column_stack([rows.features, rows.labels])
        kinds = np.unique(np.concatenate([mine, theirs]), axis=0, return_inverse=True)[1]
        flat = kinds.reshape(-1)
        return np.isin(flat[len(mine) :], flat[: len(mine)])


@dataclass(frozen=True, slots=True)
class Publisher:
    """Who collects and publishes, and what is promised to owners.

    Attributes:
        publish: Makes the model of some owners' records.
        clear: Returns what owners would send without noise.
        epsilon: Of an owner's record; infinite if nothing is promised.
        label_epsilon: Of the label alone.
        is_plain: Whether values are sent as they are, so that rows are the owners' own.
    """

    publish: Callable[[Records, Source], SupportVectors]
    clear: Callable[[Records], Collected]
    epsilon: float
    label_epsilon: float
    is_plain: bool = False


def publisher_of(collector: Collector, columns: Sequence[int], weight: float = 1.0) -> Publisher:
    """Return who trains an SVM on what a collector reads.

    Args:
        collector: Of the rows: raw, WA, WALDP or joint.
        columns: The attributes that are collected.
        weight: The C of the machine.
    """
    if not isinstance(collector, RawCollector | WeakCollector | UnifiedCollector | JointCollector):
        raise BadParameter("collector", type(collector).__name__, "to be raw, WA, WALDP or joint")
    epsilon = label = collector.guarantee(columns).epsilon
    if isinstance(collector, UnifiedCollector):
        label = collector.response(columns).responses[-1].guarantee(Neighbours.ITEM).epsilon

    def publish(records: Records, source: Source) -> SupportVectors:
        got = collector.collect(records, columns, source)
        return SupportVectors.of(fit("svm", got.features, got.labels, weight=weight), len(columns))

    classes = None if isinstance(collector, RawCollector) else collector.classes
    clear = partial(clear_rows, classes, tuple(columns))
    return Publisher(publish, clear, epsilon, label, classes is None)


def joint_publisher(
    classes: Classes, columns: Sequence[int], epsilon: float, cost: float = 1.0
) -> Publisher:
    """Return who trains an SVM on joint responses about the same columns (jSVM)."""
    sizes = tuple(classes.sizes[column] for column in columns)
    response = JointResponse(sizes, len(columns), epsilon)

    def publish(records: Records, source: Source) -> SupportVectors:
        codes = classes.codes(records.values[:, list(columns)], columns)
        rows = np.column_stack([codes, records.labels.astype(np.uint16)])
        reports = response.randomise(rows, source)
        return SupportVectors.of(fit_svm(classes, columns, reports, cost), len(columns))

    promised = response.guarantee().epsilon
    return Publisher(publish, partial(clear_rows, classes, tuple(columns)), promised, promised)


def clear_rows(classes: Classes | None, columns: tuple[int, ...], records: Records) -> Collected:
    """Return rows without noise: values, or what their classes stand for."""
    values = records.values[:, list(columns)]
    if classes is not None:
        values = classes.values(classes.codes(values, columns), columns)
    return Collected(np.asarray(values), records.labels)
