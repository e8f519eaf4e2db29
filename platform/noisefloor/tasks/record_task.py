"""A collection of records as a task: select attributes, collect, learn, then answer questions.

A frozen value of public parameters, so that server and devices agree on it by its description.
What passes between them are contents (see ``contents``): the round, the chosen attributes and in
the end the model. Owners who take part in both rounds pay for both.

The parts of a task of records: its sizes, who selects, and what is taught.
"""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from decimal import Decimal
from functools import lru_cache
from typing import Any, Literal, Protocol, get_args

import numpy as np
import pyarrow as pa

from noisefloor.canonical_json import canonical_json
from noisefloor.checks import check_count, check_finite, check_types
from noisefloor.collection import collecting, encoding
from noisefloor.collection.learners import check_classifier, check_table_size
from noisefloor.errors import BadFrame, BadParameter
from noisefloor.randomness import SeededSource, Source
from noisefloor.tables import Labels, ScaledRecords, ScaledSchema
from noisefloor.tasks import round_trainers
from noisefloor.tasks.round_content import RoundContent, read_content, write_content
from noisefloor.wire import Kind

RecordMethod = Literal["joint-bayes", "joint-counts", "joint-svm", "unified", "weak", "piecewise"]
SelectionName = Literal["none", "random", "piecewise", "response", "weak"]
RECORD_METHODS: tuple[str, ...] = get_args(RecordMethod)
SELECTIONS: tuple[str, ...] = get_args(SelectionName)

_WEAK_SIZES = encoding.ReportSize(10, 5, 1.0, 0.0)
"""Of classes that are sent without noise: the most that the paper looks at."""

_NUMBERS = ("svm", "linear-svm", "logistic")
"""Classifiers of numbers that can be published; on classes, all can."""


def report_sizes_of(task: "RecordTask") -> tuple[int, int]:
    """Return how many attributes are reported, and how many classes each has at most."""
    if task.is_bayes and task.selection not in ("none", "random"):
        raise BadParameter(
            "selection", task.selection, "none or random: each owner draws attributes"
        )
    rule = _rule(task)
    classes = task.classes or rule.classes
    if not task.is_bayes and task.selection == "none":
        if task.attributes not in (0, len(task.schema)):
            raise BadParameter("attributes", task.attributes, "all: nothing selects")
        return len(task.schema), classes
    return task.attributes or min(rule.chosen, len(task.schema)), classes


def selector_of(task: "RecordTask") -> collecting.Selector:
    """Return who chooses the attributes."""
    chosen, epsilon = task.chosen, task.epsilon
    if task.is_bayes or task.selection == "none":
        return collecting.EveryAttribute()
    if task.selection == "random":
        return collecting.RandomSelection(chosen)
    if task.selection == "piecewise":
        return collecting.PiecewiseSelection(chosen, epsilon)
    if task.selection == "weak":
        return collecting.WeakSelection(chosen, task.discretiser, task.form)
    return collecting.ResponseSelection(chosen, task.discretiser, epsilon, task.form)


def trainer_of(task: "RecordTask") -> round_trainers.RoundTrainer:
    """Return what is taught."""
    if task.is_bayes:
        return round_trainers.NaiveBayesTrainer(
            task.discretiser,
            task.chosen,
            task.training_epsilon,
            task.epsilon,
            task.method == "joint-counts",
        )
    if len(task.schema.label.classes) > 2:
        rule = "joint-bayes or joint-counts: the others learn a label of two classes"
        raise BadParameter("method", task.method, rule)
    check_classifier(task.classifier, task.weight)
    classes: encoding.Discretiser | encoding.PrintedDiscretiser | None = task.discretiser
    train: collecting.ReportingCollector
    ask: collecting.ReportingCollector
    if task.method == "piecewise":
        if task.classifier not in _NUMBERS:
            rule = f"one of {', '.join(_NUMBERS)}: the fitted numbers have to be published"
            raise BadParameter("classifier", task.classifier, rule)
        train = collecting.PiecewiseCollector(task.training_epsilon)
        ask, classes = collecting.PiecewiseCollector(task.epsilon, "none"), None
    elif task.method == "weak":
        train = ask = collecting.WeakCollector(task.discretiser)
    elif task.method == "joint-svm":
        train = collecting.JointCollector(task.discretiser, task.training_epsilon)
        ask = collecting.JointCollector(task.discretiser, task.epsilon, with_label=False)
    elif task.variant == "paper":
        classes = encoding.PrintedDiscretiser(task.schema, task.discretiser.most)
        train = collecting.PrintedCollector(classes, task.training_epsilon)
        ask = collecting.PrintedCollector(classes, task.epsilon)  # its question has a label, too
    else:
        train = collecting.UnifiedCollector(task.discretiser, task.training_epsilon)
        ask = collecting.UnifiedCollector(task.discretiser, task.epsilon, with_label=False)
    trainer = round_trainers.ClassifierTrainer(
        train, ask, task.chosen, classes, task.classifier, task.weight
    )
    _check_trainer(task, trainer)
    return trainer


def _check_trainer(task: "RecordTask", trainer: round_trainers.ClassifierTrainer) -> None:
    """Refuse now what would fail when everybody has reported."""
    if trainer.classes is not None and task.classifier not in _NUMBERS:
        check_table_size([trainer.train.symbols(task.chosen)[0]] * task.chosen)
    # The widest attributes: what they can carry, all others can.
    widest = sorted(range(len(task.schema)), key=lambda one: -task.discretiser.sizes[one])
    trainer.guarantee(widest[: task.chosen])


def _rule(task: "RecordTask") -> encoding.ReportSize:
    """Return the sizes that follow from public figures."""
    owners, attributes, epsilon = task.owners, len(task.schema), task.training_epsilon
    if task.method == "weak":
        return _WEAK_SIZES
    if task.is_bayes:
        return encoding.joint_choice(owners, attributes, epsilon, len(task.schema.label.classes))
    if task.method == "joint-svm":
        return encoding.tuple_choice(owners, attributes, epsilon, task.queries)
    return encoding.unified_choice(owners, attributes, epsilon, task.queries)


Variant = Literal["corrected", "paper"]


class ReleasedRows(Protocol):
    """What a closed round released."""

    @property
    def count(self) -> int:
        """Reports behind it."""
        ...

    @property
    def rows(self) -> pa.RecordBatch | None:
        """The rows of a kind that is collected."""
        ...


@dataclass(frozen=True, slots=True)
class RecordTask:
    """One collection of records.

    Attributes:
        schema: Of the records.
        epsilon: Of each phase: a report to the selection, one in training, one question. Where
            ranges are learnt, what a report to that phase and one in training cost together.
        owners: How many will take part, as far as is publicly known; sizes follow from it.
        method: ``joint-bayes`` or ``joint-counts`` (naive Bayes by likelihood, or from debiased
            counts; both for labels of any number of classes), ``joint-svm``, ``unified``, ``weak``
            (no noise) or ``piecewise``.
        attributes: How many are reported; 0: by the public rule.
        classes: Of an attribute, at most; 0: by the public rule.
        selection: How attributes are chosen; each owner of naive Bayes draws by itself.
        form: How the selections ``response`` and ``weak`` score.
        classifier: A key of ``CLASSIFIERS``; naive Bayes has its own.
        weight: Its C.
        variant: Whether the unified response is as it has to be or as its paper prints it.
        queries: Whether those who ask later send protected values, or ask their own device.
        seed: Of attributes that are chosen at random; public.
        range_share: Part of epsilon by which ranges are learnt before; 0: they are as declared.
    """

    schema: ScaledSchema
    epsilon: float
    owners: int
    method: RecordMethod = "joint-bayes"
    attributes: int = 0
    classes: int = 0
    selection: SelectionName = "random"
    form: collecting.ScoreForm = "prod"
    classifier: str = "svm"
    weight: float = 1.0
    variant: Variant = "corrected"
    queries: encoding.QueryMode = "on-device"
    seed: int = 0
    range_share: float = 0.0
    chosen: int = field(init=False, compare=False)
    discretiser: encoding.Discretiser = field(init=False, repr=False, compare=False)
    selector: collecting.Selector = field(init=False, repr=False, compare=False)
    trainer: round_trainers.RoundTrainer = field(init=False, repr=False, compare=False)
    range_phase: encoding.RangePhase | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._check()
        chosen, classes = report_sizes_of(self)
        object.__setattr__(self, "chosen", chosen)
        object.__setattr__(self, "discretiser", encoding.Discretiser(self.schema, classes))
        object.__setattr__(self, "selector", selector_of(self))
        object.__setattr__(self, "trainer", trainer_of(self))
        has_ranges = self.range_share > 0
        phase = encoding.RangePhase(self.schema, self.range_epsilon) if has_ranges else None
        object.__setattr__(self, "range_phase", phase)

    @property
    def range_epsilon(self) -> float:
        """Of a report to the range phase."""
        return self.epsilon * self.range_share

    @property
    def training_epsilon(self) -> float:
        """Of a report in training: what the range phase leaves, never more in sum."""
        left = self.epsilon - self.range_epsilon
        is_over = Decimal(left) + Decimal(self.range_epsilon) > Decimal(self.epsilon)
        return math.nextafter(left, 0.0) if is_over else left

    @property
    def phases(self) -> tuple[str, ...]:
        """What is asked in each round: ranges and a selection, if reports decide, and training."""
        return (
            *(("ranges",) if self.range_share > 0 else ()),
            *(("selection",) if isinstance(self.selector, collecting.ReportingSelector) else ()),
            "training",
        )

    @property
    def is_bayes(self) -> bool:
        """Whether naive Bayes is learnt from joint responses about drawn attributes."""
        return self.method in ("joint-bayes", "joint-counts")

    @property
    def rounds(self) -> int:
        """One of training, and one before it for whatever else owners' reports decide."""
        return len(self.phases)

    @property
    def query_kind(self) -> Kind | None:
        """The kind of frame of protected questions."""
        return self.trainer.query_kind

    def kind(self, number: int) -> Kind:
        """Return the kind of frame of a round."""
        check_count(number, "number", least=0, most=self.rounds - 1)
        if self._is_range_round(number):
            return self._range_phase.kind
        if self._is_selection_round(number):
            return self._reporting_selector.kind(len(self.schema))
        return self.trainer.kind

    def first(self) -> bytes:
        """Return the first broadcast: attributes, if no data are needed to choose them."""
        drawn = () if isinstance(self.selector, collecting.ReportingSelector) else self._drawn()
        return self._written(0, drawn)

    def round_of(self, content: bytes) -> int:
        """Return the round of a content, or raise BadFrame if it is of another task."""
        return int(self._read(content).payload["round"])

    def columns(self, content: bytes) -> tuple[int, ...]:
        """Return the chosen attributes; none are named before a selection by data."""
        return tuple(self._read(content).payload["columns"])

    def ranges(self, content: bytes) -> encoding.Ranges | None:
        """Return the ranges that were learnt; None where they are, or still are, as declared."""
        found = self._read(content).payload.get("ranges")
        return None if found is None else tuple((low, high) for low, high in found)

    def within_ranges(self, content: bytes, records: ScaledRecords) -> ScaledRecords:
        """Return records scaled to the ranges of a content, on their device."""
        ranges = self.ranges(content)
        return records if ranges is None else encoding.within_ranges(records, ranges)

    def fitted_model(self, content: bytes) -> round_trainers.FittedModel:
        """Return the model, or raise BadFrame before the last round is closed."""
        read = self._read(content)
        if read.payload["round"] < self.rounds:
            raise BadFrame("content", "is of a round that is still open")
        return round_trainers.FittedModel(read.payload["form"], read.arrays)

    def report(
        self, number: int, content: bytes, records: ScaledRecords, source: Source
    ) -> round_trainers.ColumnArrays:
        """Return what devices send in a round, as the columns of its kind."""
        if self.round_of(content) != number:
            raise BadFrame("content", "is of another round")
        if self._is_range_round(number):
            return self._range_phase.report(records, source)
        scaled = self.within_ranges(content, records)
        if self._is_selection_round(number):
            return self._reporting_selector.report(scaled, source).columns()
        return self.trainer.report(scaled, self.columns(content), source)

    def next(self, number: int, content: bytes, released: ReleasedRows) -> bytes:
        """Return the next content.

        A selection without reports chooses at random; training without reports teaches nothing.
        """
        rows: round_trainers.ColumnArrays = {}
        if released.count and released.rows is not None:
            rows = self.kind(number).decode(released.rows)
        columns = self.columns(content)
        if self._is_range_round(number):
            return self._written(number + 1, columns, self._range_phase.ranges(rows))
        ranges = self.ranges(content)
        if self._is_selection_round(number):
            return self._written(number + 1, self._selected(rows), ranges)
        fitted_model = (
            self.trainer.fit_model(rows, columns) if rows else round_trainers.UNTRAINED_MODEL
        )
        return self._written(number + 1, columns, ranges, fitted_model)

    def predict(self, content: bytes, records: ScaledRecords) -> Labels:
        """Return the labels of records that stay on their devices."""
        values = self.within_ranges(content, records).values
        return self.trainer.predict(self.fitted_model(content), values, self.columns(content))

    def query(
        self, content: bytes, records: ScaledRecords, source: Source
    ) -> round_trainers.ColumnArrays:
        """Return what devices send to ask about records, as the columns of ``query_kind``."""
        columns, scaled = self.columns(content), self.within_ranges(content, records)
        return self.trainer.query(self.fitted_model(content), scaled, columns, source)

    def answers(self, content: bytes, queries: pa.RecordBatch) -> Labels:
        """Return a decision for each protected question."""
        rows = self.trainer.query_kind.decode(queries)
        return self.trainer.answers(self.fitted_model(content), rows, self.columns(content))

    def as_json(self) -> dict[str, Any]:  # Any: JSON
        """Return plain data that ``of_json`` reads."""
        payload = {one.name: getattr(self, one.name) for one in fields(self) if one.init}
        return {**payload, "schema": self.schema.as_json()}

    @classmethod
    def of_json(cls, payload: Mapping[str, Any]) -> "RecordTask":  # Any: JSON
        """Read a task from plain data, or raise BadParameter."""
        check_types(cls, payload)
        try:
            return cls(**{**payload, "schema": ScaledSchema.of_json(payload["schema"])})
        except (TypeError, KeyError):
            rule = "to have schema, epsilon, owners and what else a task of records takes"
            raise BadParameter("course", sorted(payload), rule) from None

    def _check(self) -> None:
        choices = {
            "method": RECORD_METHODS,
            "selection": SELECTIONS,
            "variant": get_args(Variant),
            "queries": get_args(encoding.QueryMode),
        }
        for name, listed in choices.items():
            if getattr(self, name) not in listed:
                raise BadParameter(name, getattr(self, name), f"one of {', '.join(listed)}")
        check_count(self.attributes, "attributes", least=0, most=len(self.schema))
        check_count(self.seed, "seed", least=0, most=1 << 53)
        if not 0 <= check_finite(self.range_share, "range_share") < 1:
            raise BadParameter("range_share", self.range_share, "in [0, 1)")

    def _is_range_round(self, number: int) -> bool:
        return number < self.rounds and self.phases[number] == "ranges"

    def _is_selection_round(self, number: int) -> bool:
        return number < self.rounds and self.phases[number] == "selection"

    @property
    def _range_phase(self) -> encoding.RangePhase:
        if self.range_phase is None:
            raise BadFrame("content", "is of a task that learns no ranges")
        return self.range_phase

    @property
    def _reporting_selector(self) -> collecting.ReportingSelector:
        if not isinstance(self.selector, collecting.ReportingSelector):
            raise BadFrame("content", "is of a task without a selection by reports")
        return self.selector

    def _selected(self, rows: round_trainers.ColumnArrays) -> tuple[int, ...]:
        """Return the chosen attributes; answers that no device could give are left out."""
        if not rows:
            return self._drawn()
        answers = collecting.SelectionReports.of(rows)
        return self._reporting_selector.choose(answers, len(self.schema)).columns

    def _drawn(self) -> tuple[int, ...]:
        """Return attributes that are chosen without data: all, or n by the public seed."""
        if self.is_bayes:
            return ()  # every owner draws
        if self.selection == "none":
            return tuple(range(len(self.schema)))
        order = SeededSource(self.seed, "attributes").generator().permutation(len(self.schema))
        return tuple(int(one) for one in order[: self.chosen])

    def _written(
        self,
        number: int,
        columns: tuple[int, ...],
        ranges: encoding.Ranges | None = None,
        fitted_model: round_trainers.FittedModel | None = None,
    ) -> bytes:
        payload: dict[str, Any] = {  # Any: JSON
            "course": self._digest(),
            "round": number,
            "columns": list(columns),
        }
        if ranges is not None:
            payload["ranges"] = [list(ends) for ends in ranges]
        if fitted_model is None:
            return write_content(RoundContent(payload, {}))
        return write_content(
            RoundContent({**payload, "form": fitted_model.form}, fitted_model.arrays)
        )

    def _read(self, content: bytes) -> RoundContent:
        """Read a content of this task; whatever else it is raises BadFrame."""
        read = read_content(content)
        payload, number = read.payload, read.payload.get("round")
        is_done = type(number) is int and number == self.rounds
        keys = {"course", "round", "columns", *({"form"} if is_done else ())}
        if self.range_share > 0 and number != 0:
            keys.add("ranges")
        if set(payload) != keys or type(number) is not int or not 0 <= number <= self.rounds:
            raise BadFrame("content", "is not one of a collection of records")
        if payload["course"] != self._digest():
            raise BadFrame("content", "is of another task")
        self._check_ranges(payload.get("ranges"))
        columns = payload["columns"]
        places = range(len(self.schema))
        if not isinstance(columns, list) or not all(
            type(one) is int and one in places for one in columns
        ):
            raise BadFrame("content", "names attributes that the schema does not have")
        is_chosen = "selection" not in self.phases[number:]
        expected_columns = self.chosen if is_chosen and not self.is_bayes else 0
        if len(set(columns)) != len(columns) or len(columns) != expected_columns:
            raise BadFrame("content", "does not name as many attributes as are reported")
        if is_done:
            self._check_model(round_trainers.FittedModel(payload["form"], read.arrays), columns)
        return read

    def _check_ranges(self, ranges: object) -> None:
        """Refuse what is no range for each attribute, within what is declared."""
        if ranges is None:
            return
        is_listed = isinstance(ranges, list) and len(ranges) == len(self.schema)
        if not is_listed or not all(_is_range(one) for one in ranges):  # type: ignore[attr-defined]  # a list by now
            raise BadFrame("content", "does not have a range for each attribute")

    def _check_model(self, fitted_model: round_trainers.FittedModel, columns: list[int]) -> None:
        """Refuse a model that does not go with the attributes, by trying it."""
        try:
            self.trainer.predict(fitted_model, np.zeros((1, len(self.schema))), columns)
        except (BadParameter, KeyError, IndexError, ValueError, TypeError):
            raise BadFrame("content", "has no model of this task") from None

    def _digest(self) -> str:
        return _digest_of(self)


def _is_range(ends: object) -> bool:
    if not isinstance(ends, list) or len(ends) != 2:
        return False
    return all(type(one) is float for one in ends) and -1 <= ends[0] < ends[1] <= 1


@lru_cache(maxsize=64)
def _digest_of(task: RecordTask) -> str:
    """Return a hash of a task's description."""
    return hashlib.blake2b(canonical_json(task.as_json()), digest_size=16).hexdigest()
