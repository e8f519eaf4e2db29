"""What training reports were made of, and what came of them; only scoring reads it."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from noisefloor.ads.training import Broadcast
from noisefloor.mechanisms import Reports
from noisefloor_sim.inspection import WitnessPairs
from noisefloor_sim.pipelines.ads.flows.report_reference import RatingInputs

Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class RoundWitnesses:
    """Witnesses among the reports of a cohort in one round.

    Attributes:
        pairs: As places among the cohort's reports of this round.
        ids: Which of the cohort's pairs they are.
        group: Under which those were drawn.
        inputs: What the first of each pair reports about.
        other: What it would report about with the other bit.
    """

    pairs: WitnessPairs
    ids: Rows
    group: int
    inputs: RatingInputs
    other: RatingInputs


@dataclass(frozen=True, slots=True, eq=False)
class TrainingTruth:
    """What the reports of a frame were made of; only scoring reads it.

    Reports come in two parts: honest ones, and forged ones.

    Attributes:
        number: Of the round.
        sent: The broadcast that they answer.
        size: Users in the cohort.
        places: The place of each honest report of the frame among those of the round.
        users: The user of each honest report of the round.
        inputs: What each honest report of the round is about.
        witnesses: Of the cohort in this round.
    """

    number: int
    sent: Broadcast
    size: int
    places: Rows
    users: Rows
    inputs: RatingInputs
    witnesses: RoundWitnesses

    def part(self, rows: NDArray[np.bool_]) -> "TrainingTruth":
        """Return the truth of those reports of the round that are sent together."""
        return replace(self, places=np.flatnonzero(rows))


@dataclass(frozen=True, slots=True, eq=False)
class ArrivedReports:
    """Honest reports that came in one frame.

    Attributes:
        truth: What they were made of.
        count: How many came.
        places: The place of each that is tested among those of the round.
        reports: Those.
    """

    truth: TrainingTruth
    count: int
    places: Rows
    reports: Reports


@dataclass(frozen=True, slots=True, eq=False)
class ArrivedWitnesses:
    """Reports of witnesses that came in one frame.

    Attributes:
        key: Cohort and group of the pairs.
        sent: The broadcast that they answer.
        ids: Which of the pairs.
        reports: Of the first of each.
        inputs: What those are about.
        other: What they would be about with the other bit.
    """

    key: tuple[int, int]
    sent: Broadcast
    ids: Rows
    reports: Reports
    inputs: RatingInputs
    other: RatingInputs
