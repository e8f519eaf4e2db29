"""The adversary against a collection, tested on owners with known records.

Canaries hold records as owners do and report by the same code; what is guessed and what the
closed forms are is told in ``noisefloor.adversary``.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from noisefloor.adversary.outcome import Outcome
from noisefloor.adversary.records.joint import attack_part, attack_tuple
from noisefloor.adversary.records.models import attack_members
from noisefloor.adversary.records.piecewise import attack_interval, attack_pair
from noisefloor.adversary.records.printed import attack_class_zero, attack_printed_label
from noisefloor.adversary.records.priors import empirical_prior, shares_of
from noisefloor.adversary.records.products import attack_products
from noisefloor.adversary.records.queries import attack_decisions, attack_repeated
from noisefloor.adversary.records.responses import (
    attack_attribute,
    attack_known_records,
    attack_record,
)
from noisefloor.adversary.records.support_vectors import joint_publisher, publisher_of
from noisefloor.adversary.records.symmetric import MOST_REPORTS
from noisefloor.collection.class_selection import WeakSelection
from noisefloor.collection.classes import Codes
from noisefloor.collection.collectors import PrintedCollector, UnifiedCollector, WeakCollector
from noisefloor.collection.course import RecordCourse
from noisefloor.collection.joint import JointResponse
from noisefloor.collection.joint_collector import JointCollector
from noisefloor.collection.joint_rows import joint_rows
from noisefloor.collection.lessons import BayesLesson, RowsLesson
from noisefloor.collection.piecewise_collectors import PiecewiseCollector
from noisefloor.collection.schema import Records
from noisefloor.mechanisms.randomised_response import BinaryResponse
from noisefloor.randomness import SeededSource
from noisefloor_sim.pipelines.attack_metrics import attack_metrics
from noisefloor_sim.pipelines.base import Metric

Named = Iterator[tuple[str, Outcome]]

_MOST_CANDIDATES = 1 << 12
"""Different records that an adversary who knows them all looks through."""

_POOL, _TRAINED, _TRAININGS = 400, 40, 400
"""Owners of whom some train, how many of them do, and how often a model is published."""


def attack(
    course: RecordCourse,
    columns: Sequence[int],
    canaries: Records,
    questions: int,
    source: SeededSource,
) -> list[Metric]:
    """Play every game, and return what came out.

    Args:
        course: What was run.
        columns: The attributes that were chosen.
        canaries: Records of known owners.
        questions: How often one user may ask the server.
        source: Of the games' coins.
    """
    games = [
        *_training_games(course, columns, canaries, source),
        *_question_games(course, columns, canaries, questions, source),
        *_member_games(course, columns, canaries, source),
    ]
    selector = course.selector
    both = bool(canaries.labels.any() and not canaries.labels.all())
    if isinstance(selector, WeakSelection) and selector.form != "corr" and both:
        products = source.child("products")
        games.append(("products", attack_products(course.cut, canaries, selector.count, products)))
    return [metric for name, outcome in games for metric in attack_metrics(name, outcome)]


def _training_games(
    course: RecordCourse, columns: Sequence[int], canaries: Records, source: SeededSource
) -> Named:
    """Guess a value, the label and the whole record from a report in training."""
    lesson = course.lesson
    if isinstance(lesson, BayesLesson):
        rows = joint_rows(lesson.classes.codes(canaries.values), canaries.labels)
        yield from _joint_games(lesson.response, rows, source)
    if not isinstance(lesson, RowsLesson):
        return
    train, held = lesson.train, canaries.values[:, list(columns)]
    if isinstance(train, JointCollector):
        rows = joint_rows(course.cut.codes(held, columns), canaries.labels)
        yield from _joint_games(train.response(columns), rows, source)
    elif isinstance(train, UnifiedCollector):
        rows = joint_rows(course.cut.codes(held, columns), canaries.labels)
        yield from _unified_games(train, columns, rows, source)
    elif isinstance(train, PrintedCollector):
        codes = train.classes.codes(held, columns)
        rows = np.column_stack([codes, train.classes.label_codes(canaries.labels)])
        response = train.response(columns)
        yield "label", attack_printed_label(response, rows, source.child("label"))
        if (rows == 0).any():
            yield "class_zero", attack_class_zero(response, rows, source.child("zero")).proved
    elif isinstance(train, PiecewiseCollector):
        response_ = train.response(len(columns))
        yield "attribute", attack_interval(response_, held[:, 0], source.child("attribute"))
        yield "label", attack_pair(response_, -1.0, 1.0, len(held), source.child("label"))
    elif isinstance(train, WeakCollector):
        yield "record", Outcome(len(held), len(held), 0.0, 1.0, 1.0)  # it is sent as it is


def _joint_games(response: JointResponse, rows: Codes, source: SeededSource) -> Named:
    label = len(response.sizes)
    known = shares_of(rows[:, label], 2)
    yield "attribute", attack_part(response, rows, source.child("attribute"), 0)
    yield "label", attack_part(response, rows, source.child("label"), label)
    yield "label_known", attack_part(response, rows, source.child("known"), label, known)
    yield "record", attack_tuple(response, rows, source.child("record"))


def _unified_games(
    collector: UnifiedCollector,
    columns: Sequence[int],
    rows: Codes,
    source: SeededSource,
) -> Named:
    response = collector.response(columns)
    last = len(columns)
    known = shares_of(rows[:, last], 2)
    yield "attribute", attack_attribute(response, rows, source.child("attribute"), 0)
    yield "label", attack_attribute(response, rows, source.child("label"), last)
    yield "label_known", attack_attribute(response, rows, source.child("known"), last, known)
    yield "record", attack_record(response, rows, source.child("record"))
    prior = empirical_prior(rows)
    if len(prior.rows) <= _MOST_CANDIDATES:
        correlated = source.child("correlated")
        yield "record_known", attack_known_records(response, rows, correlated, prior)


def _question_games(
    course: RecordCourse,
    columns: Sequence[int],
    canaries: Records,
    questions: int,
    source: SeededSource,
) -> Named:
    """Guess what all questions of one user are about."""
    lesson = course.lesson
    if not 1 <= questions <= MOST_REPORTS:
        return
    if isinstance(lesson, BayesLesson):
        response, coins = BinaryResponse(lesson.epsilon), source.child("repeated")
        yield "repeated", attack_decisions(response, canaries.labels, questions, coins)
    elif isinstance(lesson, RowsLesson) and isinstance(lesson.ask, UnifiedCollector):
        codes = course.cut.codes(canaries.values[:, list(columns)], columns)
        asked = lesson.ask.response(columns)
        yield "repeated", attack_repeated(asked, codes, questions, source.child("repeated"), 0)


def _member_games(
    course: RecordCourse, columns: Sequence[int], canaries: Records, source: SeededSource
) -> Named:
    """Guess who took part in a small training, from the support vectors that are published."""
    lesson, pool = course.lesson, canaries[slice(0, _POOL)]
    if not isinstance(lesson, RowsLesson) or lesson.classifier != "svm":
        return
    if isinstance(lesson.train, JointCollector):
        publisher = joint_publisher(course.cut, columns, course.epsilon, lesson.weight)
    elif isinstance(lesson.train, UnifiedCollector | WeakCollector):
        publisher = publisher_of(lesson.train, columns, lesson.weight)
    else:
        return
    found = attack_members(publisher, pool, _TRAINED, _TRAININGS, source.child("members"))
    right = found.members.right + found.others.n - found.others.right
    yield "members", Outcome(right, found.members.n + found.others.n, 0.5, found.bound)
