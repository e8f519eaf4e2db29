"""Trainers: one round in which owners report their records and a classifier is fitted.

A trainer has a half for devices (``report``, ``predict``, ``query``) and a half for the server
(``learn``, ``answers``). A fitted model is a form and its numbers; both halves read it without
scikit-learn.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from noisefloor.checks import Array, Floats
from noisefloor.collection import encoding, learners
from noisefloor.collection.collecting import ReportingCollector, decisions_kind
from noisefloor.mechanisms import BinaryResponse, KaryResponse
from noisefloor.privacy import Guarantee
from noisefloor.randomness import Source
from noisefloor.tables import Labels, ScaledRecords
from noisefloor.wire import Kind

ColumnArrays = Mapping[str, Array]
"""The columns of a kind."""


@dataclass(frozen=True, slots=True, eq=False)
class FittedModel:
    """A classifier: its form, and its numbers by name."""

    form: str
    arrays: Mapping[str, Floats]


UNTRAINED_MODEL = FittedModel("constant", learners.ConstantModel(label=False).arrays())
"""What no reports teach: always negative, or the first of several labels."""


class RoundTrainer(Protocol):
    """How records are reported, and how a model is fitted to the reports."""

    @property
    def kind(self) -> Kind:
        """Of the frames that carry reports."""
        ...

    @property
    def query_kind(self) -> Kind:
        """Of the frames that carry questions."""
        ...

    def report(
        self, records: ScaledRecords, columns: Sequence[int], source: Source
    ) -> ColumnArrays:
        """Return what owners send."""
        ...

    def fit_model(self, rows: ColumnArrays, columns: Sequence[int]) -> FittedModel:
        """Return what the reports teach; rows that no device could send teach nothing."""
        ...

    def predict(self, fitted_model: FittedModel, values: Floats, columns: Sequence[int]) -> Labels:
        """Return the labels of whole records, on their device."""
        ...

    def query(
        self,
        fitted_model: FittedModel,
        records: ScaledRecords,
        columns: Sequence[int],
        source: Source,
    ) -> ColumnArrays:
        """Return what devices send to ask about their records."""
        ...

    def answers(
        self, fitted_model: FittedModel, rows: ColumnArrays, columns: Sequence[int]
    ) -> Labels:
        """Return a decision for each question."""
        ...

    def guarantee(self, columns: Sequence[int]) -> Guarantee:
        """Return what a report is proved to cost."""
        ...

    def query_guarantee(self, columns: Sequence[int]) -> Guarantee:
        """Return what a question is proved to cost."""
        ...


@dataclass(frozen=True, slots=True)
class NaiveBayesTrainer:
    """One joint response about attributes that each owner draws, read as naive Bayes.

    The model is on the device; who has to tell the decision sends it by randomised response.

    Attributes:
        classes: Of all attributes.
        chosen: Attributes that an owner draws.
        epsilon: Of a report.
        ask_epsilon: Of a question.
        counts: Whether the model is fitted to debiased counts (jNB); otherwise to whole tuples by
            their likelihood (jNB+).
    """

    classes: encoding.Discretiser
    chosen: int
    epsilon: float
    ask_epsilon: float
    counts: bool = False
    response: encoding.JointResponse = field(init=False)

    def __post_init__(self) -> None:
        response = encoding.JointResponse(
            self.classes.sizes, self.chosen, self.epsilon, label_classes=self.labels
        )
        object.__setattr__(self, "response", response)

    @property
    def labels(self) -> int:
        """How many classes the label has."""
        return len(self.classes.schema.label.classes)

    @property
    def decision(self) -> BinaryResponse | KaryResponse:
        """What the decision of a question goes through."""
        if self.labels == 2:
            return BinaryResponse(self.ask_epsilon)
        return KaryResponse(self.labels, self.ask_epsilon)

    @property
    def kind(self) -> Kind:
        """Joint rows."""
        sizes = self.classes.sizes
        return encoding.joint_rows_kind(len(sizes), max(sizes), self.chosen, self.labels)

    @property
    def query_kind(self) -> Kind:
        """Protected decisions."""
        return decisions_kind(self.labels)

    def report(
        self, records: ScaledRecords, columns: Sequence[int], source: Source
    ) -> ColumnArrays:
        """Return joint responses about whole records."""
        rows = encoding.joint_rows(self.classes.codes(records.values), records.labels)
        return encoding.columns_of(self.response.randomise(rows, source))

    def fit_model(self, rows: ColumnArrays, columns: Sequence[int]) -> FittedModel:
        """Fit naive Bayes to the tuples, or to their counts."""
        reports = encoding.reports_of(rows)
        kept = reports[self._is_possible(reports)]
        if not len(kept):
            return UNTRAINED_MODEL
        if self.counts:
            model = learners.fit_counts(self.response, self.response.tally(kept), self.classes)
        else:
            model = learners.fit_tuples(self.response, kept, learners.Shrinkage(self.classes))
        return FittedModel("bayes", {"odds": model.odds, "prior": np.atleast_1d(model.prior)})

    def predict(self, fitted_model: FittedModel, values: Floats, columns: Sequence[int]) -> Labels:
        """Return the labels of whole records."""
        if fitted_model.form != "bayes":
            return learners.model_from_arrays(fitted_model.form, fitted_model.arrays).predict(
                values
            )
        odds, prior = fitted_model.arrays["odds"], fitted_model.arrays["prior"]
        one = prior if self.labels > 2 else float(prior[0])
        return learners.NaiveBayes(self.classes, odds, one).predict(values)

    def query(
        self,
        fitted_model: FittedModel,
        records: ScaledRecords,
        columns: Sequence[int],
        source: Source,
    ) -> ColumnArrays:
        """Return the devices' decisions, each through randomised response."""
        decided = self.predict(fitted_model, records.values, columns)
        if self.labels == 2:
            return {"bits": self.decision.randomise(decided, source)[:, None]}
        return {"decision": self.decision.randomise(decided.astype(np.uint8), source)}

    def answers(
        self, fitted_model: FittedModel, rows: ColumnArrays, columns: Sequence[int]
    ) -> Labels:
        """Return the decisions as they were sent."""
        if self.labels > 2:
            return np.asarray(rows["decision"], dtype=np.uint8)
        return np.asarray(rows["bits"][:, 0], dtype=np.bool_)

    def guarantee(self, columns: Sequence[int]) -> Guarantee:
        """Return that of the joint response."""
        return self.response.guarantee()

    def query_guarantee(self, columns: Sequence[int]) -> Guarantee:
        """Return that of one protected decision."""
        return self.decision.guarantee()

    def _is_possible(self, reports: Array) -> Labels:
        """Return which rows a device could have sent."""
        chosen, sizes = self.chosen, np.array(self.classes.sizes)
        drawn = reports[:, :chosen].astype(np.int64)
        in_order = (np.diff(drawn, axis=1) > 0).all(axis=1)
        return np.asarray(in_order & (reports[:, chosen:-1] < sizes[drawn]).all(axis=1))


@dataclass(frozen=True, slots=True)
class ClassifierTrainer:
    """A classifier of scikit-learn on what a collector reads of the same attributes of everybody.

    Attributes:
        train: What owners send.
        ask: What is sent in a query.
        chosen: Attributes that are reported.
        classes: Of all attributes, or nothing where values are numbers.
        classifier: A key of ``CLASSIFIERS``.
        weight: Its C.
    """

    train: ReportingCollector
    ask: ReportingCollector
    chosen: int
    classes: encoding.Discretiser | encoding.PrintedDiscretiser | None
    classifier: str = "svm"
    weight: float = 1.0

    @property
    def kind(self) -> Kind:
        """ReportColumns values."""
        return encoding.training_values_kind(self.chosen, *self.train.symbols(self.chosen))

    @property
    def query_kind(self) -> Kind:
        """Values of a query."""
        return encoding.query_values_kind(self.chosen, *self.ask.symbols(self.chosen))

    def report(
        self, records: ScaledRecords, columns: Sequence[int], source: Source
    ) -> ColumnArrays:
        """Return what the collector's devices send."""
        return self.train.report(records, columns, source).columns()

    def fit_model(self, rows: ColumnArrays, columns: Sequence[int]) -> FittedModel:
        """Fit the classifier to what the collector reads."""
        collected = self.train.read(encoding.ReportColumns.of(rows), columns)
        if not len(collected.labels):
            return UNTRAINED_MODEL
        model = self._fitted(collected.features, collected.labels, columns)
        return FittedModel(model.form, model.arrays())

    def predict(self, fitted_model: FittedModel, values: Floats, columns: Sequence[int]) -> Labels:
        """Return the labels of whole records, cut into classes where reports were."""
        selected = values[:, list(columns)]
        if self.classes is not None:
            selected = self.classes.values(self.classes.codes(selected, columns), columns)
        return learners.model_from_arrays(fitted_model.form, fitted_model.arrays).predict(selected)

    def query(
        self,
        fitted_model: FittedModel,
        records: ScaledRecords,
        columns: Sequence[int],
        source: Source,
    ) -> ColumnArrays:
        """Return what is sent of the records."""
        return self.ask.report(records, columns, source).columns()

    def answers(
        self, fitted_model: FittedModel, rows: ColumnArrays, columns: Sequence[int]
    ) -> Labels:
        """Return the model's decisions; a row that no device could send is taken as negative."""
        reported = encoding.ReportColumns.of(rows)
        decided = self.ask.possible(reported, columns)
        features = self.ask.read(reported, columns).features
        decided[decided] = learners.model_from_arrays(
            fitted_model.form, fitted_model.arrays
        ).predict(features)
        return decided

    def guarantee(self, columns: Sequence[int]) -> Guarantee:
        """Return that of the collector."""
        return self.train.guarantee(columns)

    def query_guarantee(self, columns: Sequence[int]) -> Guarantee:
        """Return that of what is sent to ask."""
        return self.ask.guarantee(columns)

    def _fitted(
        self, features: Floats, labels: Labels, columns: Sequence[int]
    ) -> learners.ExportedModel:
        """Fit; a machine on classes gets each different row once, with its weight."""
        if self.classes is None or self.classifier != "svm":
            model = learners.fit(self.classifier, features, labels, weight=self.weight)
            return learners.export_model(model, self._centres(features, columns))
        machine = learners.machine_of(features, labels, self.weight)
        return (
            learners.ConstantModel(machine)
            if isinstance(machine, bool)
            else learners.export_svc(machine)
        )

    def _centres(self, features: Floats, columns: Sequence[int]) -> list[Floats] | None:
        if self.classes is None:
            return None
        if isinstance(self.classes, encoding.Discretiser):
            return [self.classes.centres(column) for column in columns]
        sizes = [self.classes.size(column) for column in columns]
        return [(2.0 * np.arange(size + 1) - 1) / size - 1 for size in sizes]
