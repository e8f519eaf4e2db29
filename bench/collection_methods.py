"""Ours and the paper's methods in `bench/collection.py`: each on one fold, at one epsilon.

Every method trains with one report of each owner, of at most epsilon in all, and answers for the
records that were left out: (a) from what a protected query sends, again at epsilon, and (b) on the
device, with the published model. Coins come from a source of the method's own.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import numpy as np
from bench.forward_bayes import fit_forward
from bench.linear_moments import fit_linear
from bench.wave_bayes import WaveResponse, fit_wave
from numpy.typing import NDArray

from noisefloor.checks import Floats
from noisefloor.collection.collecting.collectors import UnifiedCollector
from noisefloor.collection.collecting.selection import (
    PiecewiseSelection,
    RandomSelection,
    Selector,
)
from noisefloor.collection.encoding.discretisation import Codes, Discretiser
from noisefloor.collection.encoding.joint_response import JointResponse, response_over
from noisefloor.collection.encoding.report_columns import joint_rows
from noisefloor.collection.encoding.sizing import (
    QueryMode,
    ReportSize,
    joint_choice,
    tuple_choice,
    unified_choice,
)
from noisefloor.collection.encoding.unified_response import UnifiedResponse
from noisefloor.collection.learners.classifiers import JointSVM, fit_svm, machine_of
from noisefloor.collection.learners.naive_bayes import Shrinkage, fit_counts, fit_tuples
from noisefloor.mechanisms import BinaryResponse, Reports
from noisefloor.randomness import SeededSource, Source
from noisefloor.tables.scaled_records import Continuous, Labels, ScaledRecords, ScaledSchema

PAIRS = (
    *((chosen, classes) for chosen in range(2, 8) for classes in (2, 3)),
    *((4, 4), (7, 4)),
)
"""The paper's K and L: those that it shows, and what lies between them."""


@dataclass(frozen=True)
class Fold:
    """One part of a data set to train on, another to ask about."""

    schema: ScaledSchema
    train: ScaledRecords
    test: ScaledRecords
    epsilon: float
    cost: float

    @property
    def labels(self) -> int:
        """How many labels there are."""
        return len(self.schema.label.classes)


@dataclass(frozen=True)
class Answers:
    """What a method told of the records that were left out.

    Attributes:
        protected: From protected queries.
        on_device: From the published model and the record itself.
        spent: What is proved of each owner's part in training.
    """

    protected: Labels
    on_device: Labels
    spent: float


Method = Callable[[Fold, SeededSource], Answers]


class Model(Protocol):
    """What is published."""

    def predict(self, values: Floats) -> Labels:
        """Return the labels of records."""
        ...


def rule_of(fold: Fold) -> ReportSize:
    """Return the sizes that the platform's public rule chooses."""
    return joint_choice(len(fold.train), len(fold.schema), fold.epsilon, fold.labels)


def joint_bayes(fold: Fold, source: SeededSource) -> Iterator[tuple[str, Answers]]:
    """Joint responses about attributes that each owner draws; three learners on the same."""
    choice = rule_of(fold)
    response, classes, reports = joint_reports(fold, choice.chosen, choice.classes, source)
    spent = response.guarantee().epsilon
    models: dict[str, Model] = {
        "jNB": fit_counts(response, response.tally(reports), classes),
        "jNB+": fit_tuples(response, reports, Shrinkage(classes)),
    }
    if fold.labels == 2:
        models["linear"] = fit_linear(response, reports, classes)
    for name, model in models.items():
        predicted = model.predict(fold.test.values)
        yield name, Answers(decision(predicted, fold, source.child(name)), predicted, spent)


def joint_reports(
    fold: Fold, chosen: int, most: int, source: SeededSource
) -> tuple[JointResponse, Discretiser, Reports]:
    """Return what everybody sends of drawn attributes that are cut into classes."""
    classes = Discretiser(fold.schema, most)
    response = JointResponse(classes.sizes, chosen, fold.epsilon, label_classes=fold.labels)
    rows = joint_rows(classes.codes(fold.train.values), fold.train.labels)
    return response, classes, response.randomise(rows, source.child("train"))


def decision(predicted: Labels, fold: Fold, source: Source) -> Labels:
    """Return one protected answer for each decision."""
    if fold.labels == 2:
        return BinaryResponse(fold.epsilon).randomise(predicted, source)
    return response_over(fold.labels, fold.epsilon).randomise(predicted, source)


def joint_svm(fold: Fold, source: SeededSource) -> Answers:
    """The paper's random selection and machine, with one response over the tuple."""
    protected, _, spent = _joint_svm(fold, source.child("a"), on_device=False)
    _, on_device, _ = _joint_svm(fold, source.child("b"), on_device=True)
    return Answers(protected, on_device, spent)


def _joint_svm(
    fold: Fold, source: SeededSource, *, on_device: bool
) -> tuple[Labels, Labels, float]:
    queries: QueryMode = "on-device" if on_device else "protected"
    choice = tuple_choice(len(fold.train), len(fold.schema), fold.epsilon, queries)
    classes = Discretiser(fold.schema, choice.classes)
    columns = tuple(sorted(_drawn(fold, choice.chosen, source)))
    sizes = tuple(classes.sizes[column] for column in columns)
    response = JointResponse(sizes, len(sizes), fold.epsilon)
    codes = classes.codes(fold.train.values[:, columns], columns)
    reports = response.randomise(joint_rows(codes, fold.train.labels), source.child("train"))
    model = fit_svm(classes, columns, reports, fold.cost)
    predicted = _ask_jointly(fold, model, sizes, source.child("ask"))
    return predicted, model.predict(fold.test.values), response.guarantee().epsilon


def _ask_jointly(fold: Fold, model: JointSVM, sizes: tuple[int, ...], source: Source) -> Labels:
    """Send the tuple of a query as one response; a query has no label."""
    queried = JointResponse(sizes, len(sizes), fold.epsilon, labelled=False)
    codes = model.classes.codes(fold.test.values[:, model.columns], model.columns)
    return model.predict_codes(queried.randomise(codes, source)[:, len(sizes) :])


def forward(fold: Fold, source: SeededSource) -> Answers:
    """The paper's own reports at K and L from the public rule, read by one who knows the noise."""
    choice = unified_choice(len(fold.train), len(fold.schema), fold.epsilon)
    columns = _drawn(fold, choice.chosen, source)
    part = ScaledSchema(tuple(fold.schema.attributes[one] for one in columns), fold.schema.label)
    classes = Discretiser(part, choice.classes)
    each, places = fold.epsilon / (len(columns) + 1), range(len(columns))
    sender = UnifiedCollector(classes, fold.epsilon)
    rows = joint_rows(classes.codes(fold.train.values[:, columns]), fold.train.labels)
    reports = sender.response(places).randomise(rows, source.child("train"))
    model = fit_forward(reports[:, :-1], reports[:, -1] == 1, each, Shrinkage(classes))
    # A query has no label: its values have epsilon / K each.
    asker = UnifiedCollector(classes, fold.epsilon, with_label=False)
    queried = classes.codes(fold.test.values[:, columns])
    queries = asker.response(places).randomise(queried, source.child("ask"))
    predicted = model.predict_codes(queries, fold.epsilon / len(columns))
    on_device = model.published().predict(fold.test.values[:, columns])
    return Answers(predicted, on_device, sender.guarantee(places).epsilon)


def wave(fold: Fold, source: SeededSource) -> Answers:
    """One attribute of each owner by square wave; categories are taken for ranges."""
    ranges = tuple(Continuous(one.name, -1.0, 1.0) for one in fold.schema.attributes)
    response = WaveResponse(len(ranges), fold.epsilon)
    classes = Discretiser(ScaledSchema(ranges, fold.schema.label), response.bins)
    rows = np.column_stack([fold.train.values, 2.0 * fold.train.labels - 1])
    reports = response.randomise(rows, source.child("train"))
    model = fit_wave(response, response.tally(reports), Shrinkage(classes))
    predicted = model.predict(fold.test.values)
    return Answers(
        decision(predicted, fold, source.child("ask")), predicted, response.guarantee().epsilon
    )


def paper(fold: Fold, source: SeededSource) -> Iterator[tuple[str, Answers]]:
    """The paper's honest methods over its grid: DR.Rand, and DR.PM with both phases charged."""
    for chosen, classes in PAIRS:
        free = RandomSelection(chosen)
        yield f"DR.Rand({chosen},{classes})", _paper(fold, free, classes, fold.epsilon, source)
        half = fold.epsilon / 2
        paid = PiecewiseSelection(chosen, half)
        yield f"DR.PM({chosen},{classes})", _paper(fold, paid, classes, half, source)


def paper_by_rule(fold: Fold, source: SeededSource) -> Answers:
    """The paper's DR.Rand with K and L from the public rule instead of hindsight."""
    choice = unified_choice(len(fold.train), len(fold.schema), fold.epsilon)
    selector = RandomSelection(choice.chosen)
    return _paper(fold, selector, choice.classes, fold.epsilon, source)


def _paper(
    fold: Fold, selector: Selector, most: int, epsilon: float, source: SeededSource
) -> Answers:
    mine = source.child(selector.name, most, getattr(selector, "count", 0))
    chosen = selector.select(fold.train, mine.child("selection")).columns
    classes = Discretiser(fold.schema, most)
    sizes = tuple(classes.sizes[column] for column in chosen)
    send, spent = unified(sizes, epsilon)
    sent = send.randomise(_rows(fold.train, classes, chosen), mine.child("train"))
    values = classes.values(sent[:, :-1], chosen)
    machine = machine_of(values, np.asarray(sent[:, -1] == 1), fold.cost)
    model = JointSVM(classes, chosen, machine)
    ask, _ = unified(sizes, fold.epsilon)
    queried = ask.randomise(_rows(fold.test, classes, chosen), mine.child("ask"))[:, :-1]
    plain = classes.codes(fold.test.values[:, chosen], chosen)
    # One call: each has a fixed cost.
    predicted = model.predict_codes(np.concatenate([queried, plain]))
    total = selector.guarantee().epsilon + spent
    return Answers(predicted[: len(queried)], predicted[len(queried) :], total)


def _rows(records: ScaledRecords, classes: Discretiser, columns: tuple[int, ...]) -> Codes:
    return joint_rows(classes.codes(records.values[:, columns], columns), records.labels)


@cache
def unified(sizes: tuple[int, ...], epsilon: float) -> tuple[UnifiedResponse, float]:
    """Return the paper's response over values and label, and what it is proved to cost."""
    response = UnifiedResponse((*sizes, 2), epsilon)
    return response, response.guarantee().epsilon


def _drawn(fold: Fold, count: int, source: SeededSource) -> tuple[int, ...]:
    return RandomSelection(count).select(fold.train, source.child("selection")).columns


OURS: dict[str, Method] = {"jSVM": joint_svm, "forward": forward, "wave": wave}
"""Those of one answer a fold, for two labels; ``joint_bayes`` has three."""


def every_answer(
    fold: Fold, source: SeededSource, *, with_paper: bool
) -> Iterator[tuple[str, Answers]]:
    """Run ours and the paper's methods on a fold; the latter where the table has a cost."""
    yield from joint_bayes(fold, source.child("joint"))
    if not fold.cost:
        return
    for name, method in OURS.items():
        yield name, method(fold, source.child(name))
    yield "paper by rule", paper_by_rule(fold, source.child("rule"))
    if with_paper:
        yield from paper(fold, source.child("paper"))


def folds_of(
    schema: ScaledSchema,
    records: ScaledRecords,
    epsilon: float,
    cost: float,
    parts: Sequence[NDArray[np.intp]],
) -> Iterator[Fold]:
    """Leave each part out once."""
    for place, part in enumerate(parts):
        rest = np.concatenate([one for at, one in enumerate(parts) if at != place])
        yield Fold(schema, records[rest], records[part], epsilon, cost)
