"""One way to run the paper's pipeline, small enough to hand to a worker."""

from dataclasses import dataclass

from noisefloor.collection.class_selection import WeakSelection
from noisefloor.collection.classes import Classes
from noisefloor.collection.collectors import (
    Collector,
    RawCollector,
    UnifiedCollector,
    WeakCollector,
)
from noisefloor.collection.piecewise_collectors import (
    LabelBy,
    PiecewiseCollector,
    SampledPiecewiseCollector,
)
from noisefloor.collection.schema import Schema
from noisefloor.collection.scoring import Form
from noisefloor.collection.selection import (
    EveryAttribute,
    PiecewiseSelection,
    RandomSelection,
    Selector,
)
from noisefloor.collection.training import Plan
from noisefloor.errors import BadParameter


@dataclass(frozen=True, slots=True)
class Setting:
    """What is run on a data set.

    Attributes:
        data: A key of ``SOURCES``.
        select: all, rand, pm or wa.
        k: Attributes that are collected.
        size: Classes of each (the paper's L).
        epsilon: Of training, and of each question.
        train: What owners send: raw, WA, WALDP, PM or PM-sampled.
        test: What those who ask send.
        form: Of the selection by products.
        select_epsilon: Of the selection, where it has one; that of training if 0.
        label: How PM sends it.
    """

    data: str
    select: str = "all"
    k: int = 0
    size: int = 2
    epsilon: float = 0.0
    train: str = "WALDP"
    test: str = "WALDP"
    form: Form = "corr"
    select_epsilon: float = 0.0
    label: LabelBy = "piecewise"

    def plan(self, schema: Schema, weight: float) -> Plan:
        """Return the plan to run."""
        classes = Classes(schema, self.size)
        return Plan(
            self._selector(classes),
            self._collector(self.train, classes),
            self._collector(self.test, classes),
            weight=weight,
        )

    def _selector(self, classes: Classes) -> Selector:
        if self.select == "all":
            return EveryAttribute()
        if self.select == "rand":
            return RandomSelection(self.k)
        if self.select == "pm":
            return PiecewiseSelection(self.k, self.select_epsilon or self.epsilon)
        if self.select == "wa":
            return WeakSelection(self.k, classes, self.form)
        raise BadParameter("select", self.select, "to be all, rand, pm or wa")

    def _collector(self, level: str, classes: Classes) -> Collector:
        if level == "raw":
            return RawCollector()
        if level == "WA":
            return WeakCollector(classes)
        if level == "WALDP":
            return UnifiedCollector(classes, self.epsilon)
        if level == "PM":
            return PiecewiseCollector(self.epsilon, self.label)
        if level == "PM-sampled":
            return SampledPiecewiseCollector(self.epsilon, self.label)
        raise BadParameter("level", level, "to be raw, WA, WALDP, PM or PM-sampled")
