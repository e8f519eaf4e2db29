"""What witnesses of a collection prove: guesses of their bits from reports that arrived."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from noisefloor.adversary.audit import PLANTED_FACTOR as PLANTED
from noisefloor.adversary.audit import WITNESS_ALPHA, lower_limit
from noisefloor.checks import Array, Floats
from noisefloor.errors import BadParameter
from noisefloor.privacy import LowerBound
from noisefloor.randomness import SeededSource
from noisefloor.tables import ScaledRecords
from noisefloor.tasks import FittedModel, RecordTask
from noisefloor_sim.inspection import WitnessScores
from noisefloor_sim.pipelines.collection.record_flow import RecordFlow
from noisefloor_sim.pipelines.collection.record_witnesses import (
    ASKERS,
    DAY,
    OWNERS,
    WitnessReports,
    joined_reports,
)
from noisefloor_sim.pipelines.collection.reference_inputs import UNKNOWN, Inputs

Bounds = dict[str, LowerBound | None]
"""Audited, null and planted."""

Step = Callable[[ScaledRecords, SeededSource], Mapping[str, Array]]
"""A device's step with too little noise: the columns of reports about records."""

_MOST_LIMITS = 256
"""Different limits that are tried for a guess."""


@dataclass(frozen=True, slots=True, eq=False)
class AuditedPhase:
    """One phase whose witnesses are guessed.

    Attributes:
        flow: Its reports.
        columns: The attributes that everybody tells of.
        model: The published model.
        planted: The device's step with too little noise, if there is one.
    """

    flow: RecordFlow
    columns: tuple[int, ...]
    model: FittedModel | None
    planted: Step | None


@dataclass(frozen=True, slots=True, eq=False)
class PairScores:
    """Log-likelihood ratios of reports, towards the bit 1.

    Attributes:
        key: Of the pair: reports of one key share a bit.
        first: Whether it is the user's first report in its epoch.
        arrived: Of what arrived.
        planted: Of the same inputs with too little noise; NaN if there are none.
        swapped: The bits.
        unused: Bits that were drawn and never used.
    """

    key: Inputs
    first: NDArray[np.bool_]
    arrived: Floats
    planted: Floats
    swapped: NDArray[np.bool_]
    unused: NDArray[np.bool_]


def witness_bounds(phases: Mapping[str, AuditedPhase], source: SeededSource) -> dict[str, Bounds]:
    """Return what witnesses prove of each claim.

    Args:
        phases: Ranges, selection, training and question, those that there were.
        source: Of the draws with too little noise.
    """
    owners = {name: _scores(one, OWNERS, source.child(name)) for name, one in phases.items()}
    found: dict[str, Bounds] = {
        name: bounds_of([owners[name]])
        for name in ("ranges", "selection", "training")
        if name in owners
    }
    found["owner"] = bounds_of(list(owners.values()))
    question = phases.get("question")
    if question is not None:
        day = _scores(question, DAY, source.child("day"))
        found["question"] = bounds_of([day], only_first=True)
        found["asker"] = bounds_of([_scores(question, ASKERS, source.child("asker"))])
    return found


def _scores(phase: AuditedPhase, group: str, source: SeededSource) -> PairScores | None:
    """Return the scores of a phase's witnesses; None if there were none."""
    parts = [one for one in phase.flow.witnesses if one.group == group]
    if not parts:
        return None
    reports = joined_reports(parts)
    arrived = _ratios(phase, reports, reports.sent)
    planted = np.full(len(arrived), np.nan)
    if phase.planted is not None:
        drawn = phase.planted(reports.records, source)
        planted = _ratios(phase, reports, {name: np.asarray(one) for name, one in drawn.items()})
    epoch = reports.epoch if group == DAY else np.zeros_like(reports.epoch)
    key = (reports.cohort << 40) + (epoch << 24) + reports.pair
    return PairScores(key, reports.number == 0, arrived, planted, reports.swapped, reports.unused)


def _ratios(phase: AuditedPhase, reports: WitnessReports, sent: Mapping[str, Array]) -> Floats:
    """Return ln P(report | swapped) - ln P(report | not); 0 where an input is not known."""
    form = phase.flow.form
    here, there = (
        form.read(sent, records, phase.columns, phase.model)
        for records in (reports.records, reports.other)
    )
    known = ((here.inputs != UNKNOWN) & (there.inputs != UNKNOWN)).all(axis=1)
    with np.errstate(invalid="ignore"):
        # Impossible under both records: infinity less infinity, from which nothing is guessed.
        ratio = np.nan_to_num(
            form.log_likelihood(there) - form.log_likelihood(here), posinf=np.inf, neginf=-np.inf
        )
    # Who is swapped reports about the partner's record, and would about the own one otherwise.
    return np.where(known, np.where(reports.swapped, -ratio, ratio), 0.0)


def bounds_of(parts: Sequence[PairScores | None], *, only_first: bool = False) -> Bounds:
    """Add up the scores of reports that share a bit, guess the bits, and count right guesses.

    Args:
        parts: Scores of one phase, or of several.
        only_first: Whether only the first report of a user in an epoch is looked at.
    """
    some = [one for one in parts if one is not None]
    if not some:
        return {"audited": None, "null": None, "planted": None}

    def joined(name: str) -> Array:
        return np.concatenate([getattr(one, name)[one.first | (not only_first)] for one in some])

    _, first, place = np.unique(joined("key"), return_index=True, return_inverse=True)
    sums = []
    for name in ("arrived", "planted"):
        total = np.zeros(len(first))
        with np.errstate(invalid="ignore"):
            np.add.at(total, place.reshape(-1), joined(name))
        sums.append(np.nan_to_num(total, posinf=np.inf, neginf=-np.inf))
    swapped, unused = joined("swapped")[first], joined("unused")[first]
    arrived, planted = (WitnessScores(least=least_score(one)) for one in sums)
    arrived.see(sums[0], swapped, unused)
    planted.see_planted(sums[1], swapped)
    return {
        "audited": arrived.bound("audited"),
        "null": arrived.bound("null"),
        "planted": planted.bound("planted"),
    }


def least_score(scores: Floats, alpha: float = WITNESS_ALPHA) -> float:
    """Return how far from 0 a score has to be for a guess, so that the bound is likely largest.

    It follows from the reports and the declared distribution alone: a guess with score s is right
    with probability e^|s| / (1 + e^|s|) if reports are what is declared.
    """
    sizes = -np.sort(-np.abs(scores[scores != 0]))
    if not len(sizes):
        return np.inf
    right = np.cumsum(1 / (1 + np.exp(-sizes)))
    # Of equal scores all are guessed: only the last of them can be a limit.
    last = np.flatnonzero(np.append(sizes[1:] < sizes[:-1], True))
    last = last[np.unique(np.linspace(0, len(last) - 1, _MOST_LIMITS).astype(np.int64))]
    limits = [float(lower_limit(right[one], one + 1, alpha)) for one in last.tolist()]
    return float(sizes[last[int(np.argmax(limits))]])


def planted_task(task: RecordTask) -> RecordTask | None:
    """Return the task with noise a quarter too small; None where thresholds cannot hold it."""
    try:
        return replace(
            task,
            epsilon=PLANTED * task.epsilon,
            attributes=task.chosen,
            classes=task.discretiser.most,
        )
    except BadParameter:
        return None
