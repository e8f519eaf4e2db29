"""The adversary against a collection, tested on owners with known records.

Canaries hold records as owners do and report by the same code; what is guessed and what the
closed forms are stands in ``noisefloor.adversary``. The records that the adversary tells apart,
their number and their prior do not depend on epsilon, nor on the classes and attributes that a
rule makes of it: so points of a curve can be compared.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

import numpy as np

from noisefloor.adversary import records
from noisefloor.adversary.audit import AttackOutcome, draw_truth, score
from noisefloor.collection import collecting
from noisefloor.collection.encoding import Codes, JointResponse, UnifiedResponse, joint_rows
from noisefloor.randomness import SeededSource
from noisefloor.tables import ScaledRecords
from noisefloor.tasks import ClassifierTrainer, NaiveBayesTrainer, RecordTask
from noisefloor_sim.pipelines.api import Metric
from noisefloor_sim.pipelines.scoring import game_metrics

NamedAttacks = Iterator[tuple[str, Callable[[], AttackOutcome]]]
"""Games by name, each played when it is called: those that are not selected are not."""

CANDIDATES = 16
"""Records that the adversary tells apart, at most."""

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
        metric for name, play in games if is_mounted(name) for metric in game_metrics(name, play())
    ]


@dataclass(frozen=True, slots=True)
class CandidateRecords:
    """Some different records, as many of each label as there are, all of them equally likely.

    Attributes:
        records: The candidates.
        labels: The group of each by its label, numbered from 0.
        halves: The group of each by the first attribute that differs: up to the candidates'
            median, or above.
    """

    records: ScaledRecords
    labels: list[int]
    halves: list[int]

    @classmethod
    def of(cls, canaries: ScaledRecords) -> "CandidateRecords":
        """Take the first of them."""
        both = np.column_stack([canaries.values, canaries.labels])
        first = np.sort(np.unique(both, axis=0, return_index=True)[1])
        _, label = np.unique(canaries.labels[first], return_inverse=True)
        each = max(1, CANDIDATES // (int(label.max()) + 1))
        places = [first[label == one][:each] for one in range(int(label.max()) + 1)]
        chosen = canaries[np.sort(np.concatenate(places))]
        halves = chosen.values > np.median(chosen.values, axis=0)
        differs = halves.any(axis=0) & ~halves.all(axis=0)
        _, labels = np.unique(chosen.labels, return_inverse=True)
        half = halves[:, int(differs.argmax())]
        return cls(chosen, labels.tolist(), half.astype(int).tolist())


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
    trainer, candidates = task.trainer, CandidateRecords.of(canaries)
    some = candidates.records
    if isinstance(trainer, NaiveBayesTrainer):
        rows = joint_rows(trainer.classes.codes(canaries.values), canaries.labels)
        own = joint_rows(trainer.classes.codes(some.values), some.labels)
        yield from _record_games(trainer.response, own, candidates, len(canaries), source)
        yield from _known_label(trainer.response, rows, source)
    if not isinstance(trainer, ClassifierTrainer):
        return
    train, chosen_values = trainer.train, canaries.values[:, list(columns)]
    own = joint_rows(task.discretiser.codes(some.values[:, list(columns)], columns), some.labels)
    if isinstance(train, collecting.JointCollector | collecting.UnifiedCollector):
        rows = joint_rows(task.discretiser.codes(chosen_values, columns), canaries.labels)
        yield from _record_games(train.response(columns), own, candidates, len(canaries), source)
        yield from _known_label(train.response(columns), rows, source)
    elif isinstance(train, collecting.PrintedCollector):
        codes = train.classes.codes(chosen_values, columns)
        rows = np.column_stack([codes, train.classes.label_codes(canaries.labels)])
        response = train.response(columns)
        yield "label", lambda: records.attack_printed_label(response, rows, source.child("label"))
        if (rows == 0).any():
            zero = partial(records.attack_class_zero, response, rows)
            yield "class_zero", lambda: zero(source.child("zero")).proved
    elif isinstance(train, collecting.PiecewiseCollector):
        # The lowest value and the highest; labels are sent as these.
        pair = partial(records.attack_pair, train.response(len(columns)), -1.0, 1.0)
        yield "attribute", lambda: pair(len(canaries), source.child("attribute"))
        yield "label", lambda: pair(len(canaries), source.child("label"))
    elif isinstance(train, collecting.WeakCollector):
        yield "record", partial(_sent_as_it_is, own, len(canaries), source.child("record"))


def _record_games(
    response: UnifiedResponse | JointResponse,
    rows: Codes,
    candidates: CandidateRecords,
    count: int,
    source: SeededSource,
) -> NamedAttacks:
    """Guess which candidate it is, its label, and on which side its first attribute lies."""
    if len(rows) < 2:
        return
    secrets = {"attribute": candidates.halves, "label": candidates.labels, "record": None}
    for name, groups in secrets.items():
        if groups is None or max(groups):
            game = records.RecordGame(response, rows, groups=groups)
            yield name, partial(game.play, count, source.child(name))


def _known_label(
    response: UnifiedResponse | JointResponse, rows: Codes, source: SeededSource
) -> NamedAttacks:
    """Guess the label from what is reported of it alone, its shares in the population known."""
    labels = response.labels if isinstance(response, JointResponse) else 2
    place, known = rows.shape[1] - 1, records.shares_of(rows[:, -1], labels)
    if isinstance(response, JointResponse):
        play = partial(records.attack_part, response, rows)
    else:
        play = partial(records.attack_attribute, response, rows)
    yield "label_known", lambda: play(source.child("known"), place, known)


def _sent_as_it_is(rows: Codes, count: int, source: SeededSource) -> AttackOutcome:
    """Guess the candidate by its classes, which are sent without noise; of equal ones, the first.

    Sees:      the classes of all values, and the label.
    Knows:     the candidates.
    Guesses:   the candidate.
    Reference: none needed; no bound is proved.
    """
    _, first, kind = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    truth = draw_truth(np.full(len(rows), 1 / len(rows)), count, source)
    return score(
        first[kind.reshape(-1)][truth],
        truth,
        baseline=1 / len(rows),
        bound=1.0,
        closed_form=len(first) / len(rows),
        candidates=len(rows),
    )


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
        candidates = CandidateRecords.of(canaries)
        if max(candidates.halves):
            rows = task.discretiser.codes(candidates.records.values[:, list(columns)], columns)
            game = records.RecordGame(
                trainer.ask.response(columns), rows, questions, candidates.halves
            )
            yield "repeated", partial(game.play, len(canaries), source.child("repeated"))


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
