"""The parts of a course of records: its sizes, who selects, and what is taught."""

from typing import TYPE_CHECKING, Literal, get_args

from noisefloor.collection.class_selection import ResponseSelection, WeakSelection
from noisefloor.collection.classes import Classes, PrintedClasses
from noisefloor.collection.classifiers import check_classifier
from noisefloor.collection.collectors import (
    PrintedCollector,
    Telling,
    UnifiedCollector,
    WeakCollector,
)
from noisefloor.collection.decision_models import check_rows
from noisefloor.collection.joint_collector import JointCollector
from noisefloor.collection.lessons import BayesLesson, Lesson, RowsLesson
from noisefloor.collection.piecewise_collectors import PiecewiseCollector
from noisefloor.collection.rules import Choice, joint_choice, tuple_choice, unified_choice
from noisefloor.collection.selection import (
    EveryAttribute,
    PiecewiseSelection,
    RandomSelection,
    Selector,
)
from noisefloor.errors import BadParameter

if TYPE_CHECKING:
    from noisefloor.collection.course import RecordCourse

Method = Literal["joint-bayes", "joint-svm", "unified", "weak", "piecewise"]
SelectionName = Literal["none", "random", "piecewise", "response", "weak"]
RECORD_METHODS: tuple[str, ...] = get_args(Method)
SELECTIONS: tuple[str, ...] = get_args(SelectionName)

_WEAK_SIZES = Choice(10, 5, 1.0, 0.0)
"""Of classes that are sent without noise: the most that the paper looks at."""

_NUMBERS = ("svm", "linear-svm", "logistic")
"""Classifiers of numbers that can be published; on classes, all can."""


def sizes_of(course: "RecordCourse") -> tuple[int, int]:
    """Return how many attributes are told of, and how many classes each has at most."""
    if course.method == "joint-bayes" and course.selection not in ("none", "random"):
        raise BadParameter(
            "selection", course.selection, "none or random: each owner draws attributes"
        )
    rule = _rule(course)
    classes = course.classes or rule.classes
    if course.method != "joint-bayes" and course.selection == "none":
        if course.attributes not in (0, len(course.schema)):
            raise BadParameter("attributes", course.attributes, "all: nothing selects")
        return len(course.schema), classes
    return course.attributes or min(rule.chosen, len(course.schema)), classes


def selector_of(course: "RecordCourse") -> Selector:
    """Return who chooses the attributes."""
    chosen, epsilon = course.chosen, course.epsilon
    if course.method == "joint-bayes" or course.selection == "none":
        return EveryAttribute()
    if course.selection == "random":
        return RandomSelection(chosen)
    if course.selection == "piecewise":
        return PiecewiseSelection(chosen, epsilon)
    if course.selection == "weak":
        return WeakSelection(chosen, course.cut, course.form)
    return ResponseSelection(chosen, course.cut, epsilon, course.form)


def lesson_of(course: "RecordCourse") -> Lesson:
    """Return what is taught."""
    if course.method == "joint-bayes":
        return BayesLesson(course.cut, course.chosen, course.epsilon)
    check_classifier(course.classifier, course.weight)
    classes: Classes | PrintedClasses | None = course.cut
    train: Telling
    ask: Telling
    if course.method == "piecewise":
        if course.classifier not in _NUMBERS:
            rule = f"one of {', '.join(_NUMBERS)}: what is learnt of numbers has to be published"
            raise BadParameter("classifier", course.classifier, rule)
        train = PiecewiseCollector(course.epsilon)
        ask, classes = PiecewiseCollector(course.epsilon, "none"), None
    elif course.method == "weak":
        train = ask = WeakCollector(course.cut)
    elif course.method == "joint-svm":
        train = JointCollector(course.cut, course.epsilon)
        ask = JointCollector(course.cut, course.epsilon, with_label=False)
    elif course.variant == "paper":
        classes = PrintedClasses(course.schema, course.cut.most)
        train = ask = PrintedCollector(classes, course.epsilon)  # its question has a label, too
    else:
        train = UnifiedCollector(course.cut, course.epsilon)
        ask = UnifiedCollector(course.cut, course.epsilon, with_label=False)
    lesson = RowsLesson(train, ask, course.chosen, classes, course.classifier, course.weight)
    _check_lesson(course, lesson)
    return lesson


def _check_lesson(course: "RecordCourse", lesson: RowsLesson) -> None:
    """Refuse now what would fail when everybody has reported."""
    if lesson.classes is not None and course.classifier not in _NUMBERS:
        check_rows([lesson.train.symbols(course.chosen)[0]] * course.chosen)
    # The widest attributes: what they can carry, all others can.
    widest = sorted(range(len(course.schema)), key=lambda one: -course.cut.sizes[one])
    lesson.guarantee(widest[: course.chosen])


def _rule(course: "RecordCourse") -> Choice:
    """Return the sizes that follow from public figures."""
    owners, attributes, epsilon = course.owners, len(course.schema), course.epsilon
    if course.method == "weak":
        return _WEAK_SIZES
    if course.method == "joint-bayes":
        return joint_choice(owners, attributes, epsilon)
    if course.method == "joint-svm":
        return tuple_choice(owners, attributes, epsilon, course.queries)
    return unified_choice(owners, attributes, epsilon, course.queries)
