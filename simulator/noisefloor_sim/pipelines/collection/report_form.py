"""What the reports of each phase of a collection are declared to be, given the records.

A form says which answers a row holds, what each is about, and how it is distributed; it is made
from the public parameters of the task alone.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.adversary.audit import PLANTED_FACTOR as PLANTED
from noisefloor.adversary.fit import FitTable
from noisefloor.checks import Array, Floats
from noisefloor.collection import collecting
from noisefloor.tables import ScaledRecords
from noisefloor.tasks import ClassifierTrainer, FittedModel, RecordTask
from noisefloor_sim.pipelines.collection import answer_distributions as declared
from noisefloor_sim.pipelines.collection import reference_inputs as reference
from noisefloor_sim.pipelines.collection.reference_inputs import UNKNOWN, Inputs

Encode = Callable[[ScaledRecords, Sequence[int], FittedModel | None], Inputs]
"""The reference inputs of records: of these attributes, then of the label where one is sent."""


@dataclass(frozen=True, slots=True, eq=False)
class RecordAnswers:
    """The answers of some reports, a row for each.

    Attributes:
        attribute: What each answer is about; behind the attributes comes the label.
        inputs: What was to be answered.
        reports: What was answered.
    """

    attribute: Inputs
    inputs: Inputs
    reports: Inputs


@dataclass(frozen=True, slots=True, eq=False)
class TruthfulAnswers:
    """Which answers are the truth, and the declared chance of that.

    Attributes:
        is_true: 1 or 0, or UNKNOWN; all entries are independent given the records.
        chance: Of each entry.
        planted: The same with noise a quarter too small.
    """

    is_true: NDArray[np.int8]
    chance: Floats
    planted: Floats


@dataclass(frozen=True, slots=True, eq=False)
class RecordForm:
    """The reports of one phase.

    Attributes:
        names: Of the attributes and, last, of the label if it is sent.
        answers: The distribution of each; where all of a row are one symbol, only their sizes
            count.
        encode: Computes what is to be answered.
        attributes: How many the schema has.
        chosen: How many of them a row tells of.
        epsilon: Of the whole row; 0 without noise.
        is_drawn: Whether each owner draws them, and names them in columns of their own.
        is_joint: Whether all answers of a row are one symbol.
        value: How the columns of values are named.
    """

    names: tuple[str, ...]
    answers: tuple[declared.Answer, ...]
    encode: Encode
    attributes: int
    chosen: int
    epsilon: float
    is_drawn: bool = False
    is_joint: bool = False
    value: str = "value"

    @property
    def has_label(self) -> bool:
        """Whether a label is sent."""
        return len(self.names) > self.attributes

    @property
    def columns(self) -> dict[str, str]:
        """The columns of a row and their types."""
        if self.value == "bits":
            return {"bits": "fixed_size_binary[1]"}
        if self.value == "decision":
            return {"decision": _narrowest(self.answers[0].symbols)}
        places = range(1, self.chosen + 1)
        found = {}
        if self.is_drawn:
            found = {f"attribute_{one}": _narrowest(self.attributes) for one in places}
        most = max(one.symbols for one in self.answers[: self.attributes])
        found |= {f"{self.value}_{one}": _narrowest(most) for one in places}
        if self.has_label:
            found["label"] = _narrowest(self.answers[-1].symbols)
        return found

    def read(
        self,
        rows: Mapping[str, Array],
        records: ScaledRecords,
        columns: Sequence[int],
        model: FittedModel | None,
    ) -> RecordAnswers:
        """Put what was answered beside what was to be answered.

        Args:
            rows: The columns of the reports.
            records: What they are about.
            columns: The attributes that everybody tells of, where owners draw none.
            model: The published model, for decisions.
        """
        if self.value in ("bits", "decision"):
            reports = rows[self.value].astype(np.int64).reshape(len(records), 1)
            inputs = self.encode(records, (), model)
            return RecordAnswers(np.zeros_like(inputs), inputs, reports)
        parts = [rows[f"{self.value}_{place + 1}"] for place in range(self.chosen)]
        if self.has_label:
            parts.append(rows["label"])
        reports = np.column_stack(parts).astype(np.int64)
        if not self.is_drawn:
            same = [*columns, *([self.attributes] * self.has_label)]
            inputs = self.encode(records, columns, model)[:, : len(same)]
            return RecordAnswers(np.broadcast_to(same, inputs.shape), inputs, reports)
        drawn = np.column_stack([rows[f"attribute_{place + 1}"] for place in range(self.chosen)])
        label = np.full((len(drawn), int(self.has_label)), self.attributes)
        about = np.hstack([drawn.astype(np.int64), label])
        everything = self.encode(records, range(self.attributes), model)
        return RecordAnswers(about, np.take_along_axis(everything, about, axis=1), reports)

    def log_likelihood(self, answers: RecordAnswers) -> Floats:
        """Return ln P(report | record, attributes) of each row."""
        if self.is_joint:
            symbols = self._symbols(answers)
            truth = 1 / (1 + (symbols - 1) * math.exp(-self.epsilon))
            same = (answers.inputs == answers.reports).all(axis=1)
            return np.log(np.where(same, truth, (1 - truth) / (symbols - 1)))
        logs = np.zeros(answers.inputs.shape)
        for one, where in self._places(answers):
            logs[where] = self.answers[one].log_likelihood(
                answers.inputs[where], answers.reports[where]
            )
        return np.asarray(logs.sum(axis=1))

    def count(self, table: FitTable, answers: RecordAnswers) -> TruthfulAnswers:
        """Count answers by attribute, input and report, and say which are the truth."""
        count = self._count_joint if self.is_joint else self._count_apart
        truthful = count(table, answers)
        known = truthful.is_true != UNKNOWN
        hits, chances = truthful.is_true[known] == 1, truthful.chance[known]
        for chance in np.unique(chances).tolist():
            some = chances == chance
            name = f"answers that are the truth with chance {said(chance)}"
            fault = float(truthful.planted[known][some][0])
            table.add(name, np.count_nonzero(hits[some]), np.count_nonzero(some), chance, fault)
        return truthful

    def _count_apart(self, table: FitTable, answers: RecordAnswers) -> TruthfulAnswers:
        is_true = np.full(answers.inputs.shape, UNKNOWN, dtype=np.int8)
        chance, planted = np.zeros(is_true.shape), np.zeros(is_true.shape)
        for one, where in self._places(answers):
            inputs, reports = answers.inputs[where], answers.reports[where]
            answer, known = self.answers[one], inputs != UNKNOWN
            row, column, same = answer.cells(inputs, reports)
            is_true[where] = np.where(known, same, UNKNOWN)
            chance[where], planted[where] = answer.truth, answer.planted_truth
            tables, name = (answer.table, answer.planted), self.names[one]
            _add(
                table,
                f"answers about {name} by input and report",
                row[known],
                column[known],
                *tables,
            )
        return TruthfulAnswers(is_true, chance, planted)

    def _count_joint(self, table: FitTable, answers: RecordAnswers) -> TruthfulAnswers:
        """Count parts of a symbol by themselves: over rows with as many symbols, each binomial."""
        symbols = self._symbols(answers)
        for space in np.unique(symbols).tolist():
            rows = symbols == space
            some = RecordAnswers(
                answers.attribute[rows], answers.inputs[rows], answers.reports[rows]
            )
            for one, where in self._places(some):
                parts = _part_of(space, self.answers[one].symbols, self.epsilon)
                reports = np.minimum(some.reports[where], parts[0].shape[1] - 1)
                name = f"{self.names[one]} in one of {space} symbols, by input and report"
                _add(table, name, some.inputs[where], reports, *parts)
        same = (answers.inputs == answers.reports).all(axis=1)[:, None]
        chances = (
            1 / (1 + (symbols[:, None] - 1) * math.exp(-one * self.epsilon))
            for one in (1.0, PLANTED)
        )
        return TruthfulAnswers(same.astype(np.int8), *chances)

    def _symbols(self, answers: RecordAnswers) -> NDArray[np.int64]:
        sizes = np.array([one.symbols for one in self.answers])
        return np.asarray(sizes[answers.attribute].prod(axis=1))

    def _places(self, answers: RecordAnswers) -> list[tuple[int, tuple[Array, ...] | Array]]:
        """Return where the answers about each attribute stand, at most one in a row."""
        if not self.is_drawn:
            width = answers.attribute.shape[1]
            rows = np.arange(len(answers.attribute))
            return [
                (int(answers.attribute[0, place]), (rows, np.full(len(rows), place)))
                for place in range(width if len(rows) else 0)
            ]
        everything = range(len(self.answers))
        return [(one, np.nonzero(answers.attribute == one)) for one in everything]


def _add(
    table: FitTable, name: str, rows: Inputs, columns: Inputs, chances: Floats, planted: Floats
) -> None:
    """Count cells of a table of probabilities, each against the trials of its row."""
    width = chances.shape[1]
    counts = np.bincount(rows * width + columns, minlength=chances.size).reshape(chances.shape)
    tried = np.repeat(counts.sum(axis=1), width)
    table.add(name, counts.reshape(-1), tried, chances.reshape(-1), planted.reshape(-1))


def _part_of(space: int, size: int, epsilon: float) -> tuple[Floats, Floats]:
    """Return the distribution of one part of a symbol, as declared and with too little noise."""
    tables = []
    for one in (1.0, PLANTED):
        truth = declared.truth_of(space, one * epsilon)
        lie = (1 - truth) / (space - 1)
        table = np.full((size, size + 1), lie * (space / size))
        np.fill_diagonal(table, truth + lie * (space / size - 1))
        table[:, -1] = 0.0
        tables.append(table)
    return tables[0], tables[1]


def said(chance: float) -> str:
    """Write a probability so that two different ones read differently, also near 1."""
    return f"{chance:.6g}" if chance < 0.5 else f"1 - {1 - chance:.6g}"


def _narrowest(symbols: int) -> str:
    return str(np.min_scalar_type(symbols - 1))


RANGE_STEPS = 8
"""Parts of a declared range that owners tell of where ranges are learnt."""


def range_form(task: RecordTask) -> RecordForm:
    """Return what owners send where ranges are learnt: a part of one number's declared range."""
    schema, places = reference.range_schema(task.schema)
    epsilon = task.range_share * task.epsilon

    def encode(
        records: ScaledRecords, columns: Sequence[int], model: FittedModel | None
    ) -> Inputs:
        numbers = ScaledRecords(records.values[:, places], records.labels)
        return reference.class_inputs(schema, RANGE_STEPS, numbers, range(len(places)))

    answers = (declared.response(RANGE_STEPS, epsilon),) * len(places)
    names = schema.columns[:-1]
    return RecordForm(
        names, answers, encode, len(places), 1, epsilon, is_drawn=True, value="class"
    )


def training_form(task: RecordTask) -> RecordForm:
    """Return what owners send in training."""
    epsilon = (1 - task.range_share) * task.epsilon
    if isinstance(task.trainer, ClassifierTrainer):
        return _collector_form(task, task.trainer.train, epsilon, with_label=True)
    return _class_form(task, epsilon, is_drawn=True, is_joint=True, with_label=True, value="class")


def question_form(task: RecordTask) -> RecordForm:
    """Return what is sent to ask: values of the record, or one decision."""
    if isinstance(task.trainer, ClassifierTrainer):
        is_labelled = isinstance(
            task.trainer.ask, collecting.WeakCollector | collecting.PrintedCollector
        )
        return _collector_form(task, task.trainer.ask, task.epsilon, with_label=is_labelled)

    def encode(
        records: ScaledRecords, columns: Sequence[int], model: FittedModel | None
    ) -> Inputs:
        if model is None:
            raise TypeError("A decision needs the model.")
        return reference.decision_inputs(task.schema, task.discretiser.most, records, model)

    labels = labels_of(task)
    answers = (declared.response(labels, task.epsilon),)
    value = "bits" if labels == 2 else "decision"
    return RecordForm(("the decision",), answers, encode, 1, 1, task.epsilon, value=value)


def labels_of(task: RecordTask) -> int:
    """Return how many classes the label has."""
    return len(task.schema.label.classes)


def selection_form(task: RecordTask) -> RecordForm:
    """Return what owners send in a selection by data."""
    selector, schema, most = task.selector, task.schema, task.discretiser.most
    epsilon = task.epsilon
    if isinstance(selector, collecting.PiecewiseSelection):
        share = epsilon / (task.chosen + 1)
        return _grid_form(task, epsilon, share, is_drawn=True, with_label=True)
    if isinstance(selector, collecting.ResponseSelection):
        share = epsilon / (selector.per_owner + 1)
        return _class_form(
            task, epsilon, is_drawn=True, chosen=selector.per_owner, share=share, with_label=True
        )
    if task.form == "corr":
        return _class_form(task, epsilon, is_drawn=True, share=0.0, with_label=True)

    def encode(
        records: ScaledRecords, columns: Sequence[int], model: FittedModel | None
    ) -> Inputs:
        return reference.product_inputs(schema, most, records)

    counts = reference.product_counts(schema, most)
    answers = tuple(declared.as_it_is(count) for count in counts)
    return RecordForm(_names(task), answers, encode, len(schema), task.chosen, 0.0, is_drawn=True)


def _collector_form(
    task: RecordTask,
    collector: collecting.ReportingCollector,
    epsilon: float,
    *,
    with_label: bool,
) -> RecordForm:
    share = epsilon / (task.chosen + with_label)
    if isinstance(collector, collecting.PiecewiseCollector):
        return _grid_form(task, epsilon, share, with_label=with_label)
    if isinstance(collector, collecting.JointCollector):
        return _class_form(task, epsilon, is_joint=True, with_label=with_label)
    if isinstance(collector, collecting.WeakCollector):
        return _class_form(task, epsilon, share=0.0, with_label=with_label)
    if isinstance(collector, collecting.UnifiedCollector):
        return _class_form(task, epsilon, share=share, with_label=with_label)
    return _printed_form(task, epsilon, share)


def _class_form(
    task: RecordTask,
    epsilon: float,
    *,
    chosen: int | None = None,
    share: float | None = None,
    is_drawn: bool = False,
    is_joint: bool = False,
    with_label: bool,
    value: str = "value",
) -> RecordForm:
    """Return classes: in one symbol with the whole epsilon, or each with a share; 0: no noise."""
    schema, most = task.schema, task.discretiser.most
    sizes = [*reference.class_sizes(schema, most), *([labels_of(task)] * with_label)]
    each = epsilon if share is None else share
    by_size = {
        size: declared.response(size, each) if each else declared.as_it_is(size)
        for size in set(sizes)
    }

    def encode(
        records: ScaledRecords, columns: Sequence[int], model: FittedModel | None
    ) -> Inputs:
        return reference.class_inputs(schema, most, records, columns)

    return RecordForm(
        _names(task, with_label=with_label),
        tuple(by_size[size] for size in sizes),
        encode,
        len(schema),
        task.chosen if chosen is None else chosen,
        epsilon if each else 0.0,
        is_drawn,
        is_joint,
        value,
    )


def _grid_form(
    task: RecordTask, epsilon: float, share: float, *, is_drawn: bool = False, with_label: bool
) -> RecordForm:
    def encode(
        records: ScaledRecords, columns: Sequence[int], model: FittedModel | None
    ) -> Inputs:
        return reference.grid_inputs(records, columns)

    names = _names(task, with_label=with_label)
    answers = (declared.window(share),) * len(names)
    return RecordForm(names, answers, encode, len(task.schema), task.chosen, epsilon, is_drawn)


def _printed_form(task: RecordTask, epsilon: float, share: float) -> RecordForm:
    schema, most = task.schema, task.discretiser.most

    def encode(
        records: ScaledRecords, columns: Sequence[int], model: FittedModel | None
    ) -> Inputs:
        return reference.printed_inputs(schema, most, records, columns)

    sizes = [*reference.printed_sizes(schema, most), most]
    by_size = {size: declared.printed(size, share) for size in set(sizes)}
    answers = tuple(by_size[size] for size in sizes)
    names = _names(task, with_label=True)
    return RecordForm(names, answers, encode, len(schema), task.chosen, epsilon)


def _names(task: RecordTask, *, with_label: bool = False) -> tuple[str, ...]:
    return task.schema.columns if with_label else task.schema.columns[:-1]
