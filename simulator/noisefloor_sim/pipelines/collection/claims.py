"""What is claimed, proved and audited of a collection: phase by phase, and for a whole owner."""

from collections.abc import Sequence
from typing import Any

from noisefloor.accounting.composition import sequential
from noisefloor.adversary.intervals import ceiling
from noisefloor.adversary.joint import Part, joint_bound
from noisefloor.collection.class_selection import ResponseSelection, WeakSelection
from noisefloor.collection.collectors import PrintedCollector, UnifiedCollector
from noisefloor.collection.course import RecordCourse
from noisefloor.collection.joint_collector import JointCollector
from noisefloor.collection.lessons import BayesLesson, RowsLesson
from noisefloor.collection.piecewise_collectors import PiecewiseCollector
from noisefloor.collection.selection import (
    PiecewiseSelection,
)
from noisefloor.mechanisms import BinaryResponse, KaryResponse, Piecewise
from noisefloor.privacy import Claim, Guarantee, LowerBound, Neighbours
from noisefloor.randomness import SeededSource
from noisefloor_sim.pipelines.base import NamedClaim
from noisefloor_sim.pipelines.collection.costs import Costs

ALPHA = 1e-5
"""The probability that an audited bound is wrong."""

Parts = list[Part] | None
"""What a phase releases; nothing where classes are sent without noise."""


def claims_of(
    course: RecordCourse,
    columns: Sequence[int],
    *,
    asked: int,
    asked_by_owners: int,
    canaries: int,
    source: SeededSource,
) -> tuple[NamedClaim, ...]:
    """Return the claims of each phase, of who only asks, and of an owner who is in all phases.

    Args:
        course: What was run.
        columns: The attributes that were chosen.
        asked: How often who did not train may ask the server; 0: the model is on the device.
        asked_by_owners: How often an owner of a training record may, besides.
        canaries: Runs of each audit on either of two inputs.
        source: Of the audits' coins.
    """
    costs = Costs.of(course, columns)
    selection, training = _selection_parts(course), _lesson_parts(course, columns, asks=False)
    question = _lesson_parts(course, columns, asks=True)
    rows: list[tuple[str, list[Claim], list[Parts]]] = []
    if course.selector.uses_data:
        rows.append(("selection", [costs.selection], [selection]))
    rows.append(("training", [costs.training], [training]))
    if asked:
        rows.append(("question", [costs.question], [question]))
        rows.append(("asker", [costs.question] * asked, [_times(question, asked)]))
    owner = [costs.selection, costs.training, *[costs.question] * asked_by_owners]
    sent = [selection, training, *([_times(question, asked_by_owners)] * bool(asked_by_owners))]
    rows.append(("owner", owner, sent))
    # The paper's epsilon is that of one phase, and is said of the whole.
    said = Guarantee(course.epsilon, Neighbours.USER) if course.variant == "paper" else None
    return tuple(
        NamedClaim(name, _whole(claims, _audited(parts, canaries, source.child(name)), said))
        for name, claims, parts in rows
    )


def _whole(claims: Sequence[Claim], audited: LowerBound, said: Guarantee | None) -> Claim:
    """Return the claims of several phases as one: phases add up."""
    if len(claims) == 1:
        return Claim(claims[0].claimed, claims[0].proved, audited)
    claimed = said or sequential([one.claimed for one in claims])
    return Claim(claimed, sequential([one.proved for one in claims]), audited)


def _audited(phases: Sequence[Parts], canaries: int, source: SeededSource) -> LowerBound:
    """Return what canaries prove; what is sent without noise tells two inputs apart each time."""
    parts: list[Part] = []
    for some in phases:
        if some is None:
            held_out = canaries - canaries // 2
            most = ceiling(held_out, alpha=ALPHA)
            return LowerBound(most, 1 - ALPHA, held_out, most)
        parts += some
    return joint_bound(parts, canaries, source, alpha=ALPHA)


def _times(parts: Parts, times: int) -> Parts:
    if parts is None:
        return None
    return [Part(one.mechanism, one.first, one.second, one.times * times) for one in parts]


def _selection_parts(course: RecordCourse) -> Parts:
    """Return what an owner sends to the selection, for two records that differ in everything."""
    selector = course.selector
    if isinstance(selector, WeakSelection):
        return None
    if isinstance(selector, PiecewiseSelection):
        return [Part(selector.response, -1.0, 1.0, selector.count + 1)]
    if isinstance(selector, ResponseSelection):
        size = max(selector.classes.sizes)
        value = Part(KaryResponse(size, selector.share), 0, size - 1, selector.per_owner)
        return [value, Part(BinaryResponse(selector.share), False, True)]
    return []


def _lesson_parts(course: RecordCourse, columns: Sequence[int], *, asks: bool) -> Parts:
    """Return what an owner sends in training or to ask, for two records that differ in all."""
    lesson = course.lesson
    if isinstance(lesson, BayesLesson):
        if asks:
            return [Part(BinaryResponse(lesson.epsilon), False, True)]
        return [_worst(lesson.response)]
    if not isinstance(lesson, RowsLesson):
        raise TypeError(type(lesson).__name__)
    collector = lesson.ask if asks else lesson.train
    if isinstance(collector, PiecewiseCollector):
        response: Piecewise = collector.response(len(columns))
        return [Part(response, -1.0, 1.0, len(columns) + (collector.label != "none"))]
    if isinstance(collector, UnifiedCollector | PrintedCollector | JointCollector):
        return [_worst(collector.response(columns))]
    return None


def _worst(mechanism: Any) -> Part:  # Any: one of several mechanisms
    first, second = mechanism.worst_pairs(Neighbours.USER)[0]
    return Part(mechanism, first, second)
