"""The adversary against a collection, tested on owners with known records.

Canaries hold records as owners do and report by the same code; what is guessed and what the
closed forms are stands in ``noisefloor.adversary``.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain

import numpy as np

from noisefloor.adversary import records
from noisefloor.adversary.audit import AttackOutcome
from noisefloor.collection import collecting
from noisefloor.collection.encoding import Codes, JointResponse, joint_rows
from noisefloor.randomness import SeededSource
from noisefloor.tables import ScaledRecords
from noisefloor.tasks import ClassifierTrainer, NaiveBayesTrainer, RecordTask
from noisefloor_sim.pipelines.api import Metric
from noisefloor_sim.pipelines.scoring import attack_metrics

NamedAttacks = Iterator[tuple[str, Callable[[], AttackOutcome]]]
"""Games by name, each played when it is called: those that are not selected are not."""

_MOST_CANDIDATES = 1 << 12
"""Different records that an adversary who knows them all looks through."""

_POOL, _TRAINED, _TRAININGS = 400, 40, 400
"""Owners of whom some train, how many of them do, and how often a model is published."""


def attack(
    task: RecordTask,
    columns: Sequence[int],
    canaries: ScaledRecords,
    questions: int,
    source: SeededSource,
    is_mounted: Callable[[str], bool],
) -> list[Metric]:
    """Mount the selected attacks, and return their metrics.

    Args:
        task: What was run.
        columns: The attributes that were chosen.
        canaries: Records of known owners.
        questions: How often one user may ask the server.
        source: Of the attacks' random numbers.
        is_mounted: Whether a game is selected.
    """
    games = chain(
        _training_games(task, columns, canaries, source),
        _question_games(task, columns, canaries, questions, source),
        _member_games(task, columns, canaries, source),
        _product_games(task, canaries, source),
    )
    return [
        metric
        for name, play in games
        if is_mounted(name)
        for metric in attack_metrics(name, play())
    ]


def _product_games(
    task: RecordTask, canaries: ScaledRecords, source: SeededSource
) -> NamedAttacks:
    """Guess the label from products that the weak selection sends without noise."""
    selector = task.selector
    both = bool(canaries.labels.any() and not canaries.labels.all())
    if isinstance(selector, collecting.WeakSelection) and selector.form != "corr" and both:
        yield (
            "products",
            lambda: records.attack_products(
                task.discretiser, canaries, selector.count, source.child("products")
            ),
        )


def _training_games(
    task: RecordTask, columns: Sequence[int], canaries: ScaledRecords, source: SeededSource
) -> NamedAttacks:
    """Guess a value, the label and the whole record from a report in training."""
    trainer = task.trainer
    if isinstance(trainer, NaiveBayesTrainer):
        rows = joint_rows(trainer.classes.codes(canaries.values), canaries.labels)
        yield from _joint_games(trainer.response, rows, source)
    if not isinstance(trainer, ClassifierTrainer):
        return
    train, chosen_values = trainer.train, canaries.values[:, list(columns)]
    if isinstance(train, collecting.JointCollector):
        rows = joint_rows(task.discretiser.codes(chosen_values, columns), canaries.labels)
        yield from _joint_games(train.response(columns), rows, source)
    elif isinstance(train, collecting.UnifiedCollector):
        rows = joint_rows(task.discretiser.codes(chosen_values, columns), canaries.labels)
        yield from _unified_games(train, columns, rows, source)
    elif isinstance(train, collecting.PrintedCollector):
        codes = train.classes.codes(chosen_values, columns)
        rows = np.column_stack([codes, train.classes.label_codes(canaries.labels)])
        response = train.response(columns)
        yield "label", lambda: records.attack_printed_label(response, rows, source.child("label"))
        if (rows == 0).any():
            zero = partial(records.attack_class_zero, response, rows)
            yield "class_zero", lambda: zero(source.child("zero")).proved
    elif isinstance(train, collecting.PiecewiseCollector):
        response_ = train.response(len(columns))
        first, count = chosen_values[:, 0], len(chosen_values)
        yield (
            "attribute",
            lambda: records.attack_interval(response_, first, source.child("attribute")),
        )
        yield (
            "label",
            lambda: records.attack_pair(response_, -1.0, 1.0, count, source.child("label")),
        )
    elif isinstance(train, collecting.WeakCollector):
        count = len(chosen_values)
        yield "record", lambda: AttackOutcome(count, count, 0.0, 1.0, 1.0)  # sent as it is


def _joint_games(response: JointResponse, rows: Codes, source: SeededSource) -> NamedAttacks:
    label = len(response.sizes)
    known = records.shares_of(rows[:, label], response.labels)
    play = partial(records.attack_part, response, rows)
    yield "attribute", lambda: play(source.child("attribute"), 0)
    yield "label", lambda: play(source.child("label"), label)
    yield "label_known", lambda: play(source.child("known"), label, known)
    yield "record", lambda: records.attack_tuple(response, rows, source.child("record"))


def _unified_games(
    collector: collecting.UnifiedCollector,
    columns: Sequence[int],
    rows: Codes,
    source: SeededSource,
) -> NamedAttacks:
    response = collector.response(columns)
    last = len(columns)
    known = records.shares_of(rows[:, last], 2)
    play = partial(records.attack_attribute, response, rows)
    yield "attribute", lambda: play(source.child("attribute"), 0)
    yield "label", lambda: play(source.child("label"), last)
    yield "label_known", lambda: play(source.child("known"), last, known)
    yield "record", lambda: records.attack_record(response, rows, source.child("record"))
    prior = records.empirical_prior(rows)
    if len(prior.rows) <= _MOST_CANDIDATES:
        known_records = partial(records.attack_known_records, response, rows)
        yield "record_known", lambda: known_records(source.child("correlated"), prior)


def _question_games(
    task: RecordTask,
    columns: Sequence[int],
    canaries: ScaledRecords,
    questions: int,
    source: SeededSource,
) -> NamedAttacks:
    """Guess what all questions of one user are about."""
    trainer = task.trainer
    if not 1 <= questions <= records.MOST_REPORTS:
        return
    if isinstance(trainer, NaiveBayesTrainer):
        decisions = partial(records.attack_decisions, trainer.decision, canaries.labels)
        yield "repeated", lambda: decisions(questions, source.child("repeated"))
    elif isinstance(trainer, ClassifierTrainer) and isinstance(
        trainer.ask, collecting.UnifiedCollector
    ):
        codes = task.discretiser.codes(canaries.values[:, list(columns)], columns)
        repeated = partial(
            records.attack_repeated, trainer.ask.response(columns), codes, questions
        )
        yield "repeated", lambda: repeated(source.child("repeated"), 0)


def _member_games(
    task: RecordTask, columns: Sequence[int], canaries: ScaledRecords, source: SeededSource
) -> NamedAttacks:
    """Guess who took part in a small training, from the support vectors that are published."""
    trainer, pool = task.trainer, canaries[slice(0, _POOL)]
    if not isinstance(trainer, ClassifierTrainer) or trainer.classifier != "svm":
        return
    if isinstance(trainer.train, collecting.JointCollector):
        publisher = records.joint_publisher(
            task.discretiser, columns, task.training_epsilon, trainer.weight
        )
    elif isinstance(trainer.train, collecting.UnifiedCollector | collecting.WeakCollector):
        publisher = records.collector_publisher(trainer.train, columns, trainer.weight)
    else:
        return

    def play() -> AttackOutcome:
        found = records.attack_members(
            publisher, pool, _TRAINED, _TRAININGS, source.child("members")
        )
        right = found.members.right + found.others.n - found.others.right
        return AttackOutcome(right, found.members.n + found.others.n, 0.5, found.bound)

    yield "members", play
