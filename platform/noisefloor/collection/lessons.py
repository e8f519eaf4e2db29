"""Lessons: one round in which owners tell of their records and a classifier is learnt from it.

A lesson has a half for devices (``report``, ``predict``, ``query``) and a half for the server
(``learn``, ``answers``). What was learnt is a form and its numbers; both halves read it without
scikit-learn.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from noisefloor.checks import Array, Floats
from noisefloor.collection.bayes_model import NaiveBayes
from noisefloor.collection.classes import Classes, PrintedClasses
from noisefloor.collection.classifiers import fit
from noisefloor.collection.collectors import Telling
from noisefloor.collection.decision_models import (
    ConstantModel,
    Published,
    kernel_of,
    model_of_arrays,
    published,
)
from noisefloor.collection.decisions import decisions_kind
from noisefloor.collection.joint import JointResponse
from noisefloor.collection.joint_rows import columns_of, joint_rows, joint_rows_kind, reports_of
from noisefloor.collection.joint_svm import machine_of
from noisefloor.collection.schema import Labels, Records
from noisefloor.collection.shrinkage import Shrinkage
from noisefloor.collection.told import Told, query_values_kind, told_values_kind
from noisefloor.collection.tuple_bayes import fit_tuples
from noisefloor.mechanisms.randomised_response import BinaryResponse
from noisefloor.privacy import Guarantee
from noisefloor.randomness import Source
from noisefloor.wire.kinds import Kind

Rows = Mapping[str, Array]
"""The columns of a kind."""


@dataclass(frozen=True, slots=True, eq=False)
class Learnt:
    """A classifier: its form, and its numbers by name."""

    form: str
    arrays: Mapping[str, Floats]


NOTHING = Learnt("constant", ConstantModel(label=False).arrays())
"""What no reports teach: always negative."""


class Lesson(Protocol):
    """How records are told of and what is learnt from it."""

    @property
    def kind(self) -> Kind:
        """Of the frames that carry reports."""
        ...

    @property
    def query_kind(self) -> Kind:
        """Of the frames that carry questions."""
        ...

    def report(self, records: Records, columns: Sequence[int], source: Source) -> Rows:
        """Return what owners send."""
        ...

    def learn(self, rows: Rows, columns: Sequence[int]) -> Learnt:
        """Return what the reports teach; rows that no device could send teach nothing."""
        ...

    def predict(self, learnt: Learnt, values: Floats, columns: Sequence[int]) -> Labels:
        """Return the labels of whole records, on their device."""
        ...

    def query(
        self, learnt: Learnt, records: Records, columns: Sequence[int], source: Source
    ) -> Rows:
        """Return what devices send to ask about their records."""
        ...

    def answers(self, learnt: Learnt, rows: Rows, columns: Sequence[int]) -> Labels:
        """Return a decision for each question."""
        ...

    def guarantee(self, columns: Sequence[int]) -> Guarantee:
        """Return what a report is proved to cost."""
        ...

    def query_guarantee(self, columns: Sequence[int]) -> Guarantee:
        """Return what a question is proved to cost."""
        ...


@dataclass(frozen=True, slots=True)
class BayesLesson:
    """jNB: one joint response about attributes that each owner draws, read as naive Bayes.

    The model is on the device; who has to tell the decision sends it as one protected bit.
    """

    classes: Classes
    chosen: int
    epsilon: float
    response: JointResponse = field(init=False)

    def __post_init__(self) -> None:
        response = JointResponse(self.classes.sizes, self.chosen, self.epsilon)
        object.__setattr__(self, "response", response)

    @property
    def kind(self) -> Kind:
        """Joint rows."""
        sizes = self.classes.sizes
        return joint_rows_kind(len(sizes), max(sizes), self.chosen)

    @property
    def query_kind(self) -> Kind:
        """Protected decisions."""
        return decisions_kind()

    def report(self, records: Records, columns: Sequence[int], source: Source) -> Rows:
        """Return joint responses about whole records."""
        rows = joint_rows(self.classes.codes(records.values), records.labels)
        return columns_of(self.response.randomise(rows, source))

    def learn(self, rows: Rows, columns: Sequence[int]) -> Learnt:
        """Fit naive Bayes to the tuples."""
        reports = reports_of(rows)
        kept = reports[self._is_possible(reports)]
        if not len(kept):
            return NOTHING
        model = fit_tuples(self.response, kept, Shrinkage(self.classes))
        return Learnt("bayes", {"odds": model.odds, "prior": np.array([model.prior])})

    def predict(self, learnt: Learnt, values: Floats, columns: Sequence[int]) -> Labels:
        """Return the labels of whole records."""
        if learnt.form != "bayes":
            return model_of_arrays(learnt.form, learnt.arrays).predict(values)
        odds, prior = learnt.arrays["odds"], float(learnt.arrays["prior"][0])
        return NaiveBayes(self.classes, odds, prior).predict(values)

    def query(
        self, learnt: Learnt, records: Records, columns: Sequence[int], source: Source
    ) -> Rows:
        """Return the devices' decisions, each through randomised response."""
        decided = self.predict(learnt, records.values, columns)
        return {"bits": BinaryResponse(self.epsilon).randomise(decided, source)[:, None]}

    def answers(self, learnt: Learnt, rows: Rows, columns: Sequence[int]) -> Labels:
        """Return the decisions as they were sent."""
        return np.asarray(rows["bits"][:, 0], dtype=np.bool_)

    def guarantee(self, columns: Sequence[int]) -> Guarantee:
        """Return that of the joint response."""
        return self.response.guarantee()

    def query_guarantee(self, columns: Sequence[int]) -> Guarantee:
        """Return that of one protected bit."""
        return BinaryResponse(self.epsilon).guarantee()

    def _is_possible(self, reports: Array) -> Labels:
        """Return which rows a device could have sent."""
        chosen, sizes = self.chosen, np.array(self.classes.sizes)
        drawn = reports[:, :chosen].astype(np.int64)
        in_order = (np.diff(drawn, axis=1) > 0).all(axis=1)
        return np.asarray(in_order & (reports[:, chosen:-1] < sizes[drawn]).all(axis=1))


@dataclass(frozen=True, slots=True)
class RowsLesson:
    """A classifier of scikit-learn on what a collector reads of the same attributes of everybody.

    Attributes:
        train: What owners send.
        ask: What is sent of a record that is asked about.
        chosen: Attributes that are told of.
        classes: Of all attributes, or nothing where values are numbers.
        classifier: A key of ``CLASSIFIERS``.
        weight: Its C.
    """

    train: Telling
    ask: Telling
    chosen: int
    classes: Classes | PrintedClasses | None
    classifier: str = "svm"
    weight: float = 1.0

    @property
    def kind(self) -> Kind:
        """Told values."""
        return told_values_kind(self.chosen, *self.train.symbols(self.chosen))

    @property
    def query_kind(self) -> Kind:
        """Values of a record that is asked about."""
        return query_values_kind(self.chosen, *self.ask.symbols(self.chosen))

    def report(self, records: Records, columns: Sequence[int], source: Source) -> Rows:
        """Return what the collector's devices send."""
        return self.train.tell(records, columns, source).columns()

    def learn(self, rows: Rows, columns: Sequence[int]) -> Learnt:
        """Fit the classifier to what the collector reads."""
        collected = self.train.read(Told.of(rows), columns)
        if not len(collected.labels):
            return NOTHING
        model = self._fitted(collected.features, collected.labels, columns)
        return Learnt(model.form, model.arrays())

    def predict(self, learnt: Learnt, values: Floats, columns: Sequence[int]) -> Labels:
        """Return the labels of whole records, cut into classes where reports were."""
        held = values[:, list(columns)]
        if self.classes is not None:
            held = self.classes.values(self.classes.codes(held, columns), columns)
        return model_of_arrays(learnt.form, learnt.arrays).predict(held)

    def query(
        self, learnt: Learnt, records: Records, columns: Sequence[int], source: Source
    ) -> Rows:
        """Return what is sent of the records."""
        return self.ask.tell(records, columns, source).columns()

    def answers(self, learnt: Learnt, rows: Rows, columns: Sequence[int]) -> Labels:
        """Return the model's decisions; a row that no device could send is taken as negative."""
        told = Told.of(rows)
        decided = self.ask.possible(told, columns)
        features = self.ask.read(told, columns).features
        decided[decided] = model_of_arrays(learnt.form, learnt.arrays).predict(features)
        return decided

    def guarantee(self, columns: Sequence[int]) -> Guarantee:
        """Return that of the collector."""
        return self.train.guarantee(columns)

    def query_guarantee(self, columns: Sequence[int]) -> Guarantee:
        """Return that of what is sent to ask."""
        return self.ask.guarantee(columns)

    def _fitted(self, features: Floats, labels: Labels, columns: Sequence[int]) -> Published:
        """Fit; a machine on classes gets each different row once, with its weight."""
        if self.classes is None or self.classifier != "svm":
            model = fit(self.classifier, features, labels, weight=self.weight)
            return published(model, self._centres(features, columns))
        machine = machine_of(features, labels, self.weight)
        return ConstantModel(machine) if isinstance(machine, bool) else kernel_of(machine)

    def _centres(self, features: Floats, columns: Sequence[int]) -> list[Floats] | None:
        if self.classes is None:
            return None
        if isinstance(self.classes, Classes):
            return [self.classes.centres(column) for column in columns]
        sizes = [self.classes.size(column) for column in columns]
        return [(2.0 * np.arange(size + 1) - 1) / size - 1 for size in sizes]
