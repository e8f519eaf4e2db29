"""Witnesses of a collection: pairs of users who hold each other's record, by a random bit.

Two owners exchange their records for selection, training and questions alike, or keep them; two
who only ask do so for all their questions, and others anew for the questions of each day. The
table stays as it is: both of a pair report equally often, and both train or neither does.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import Array
from noisefloor.randomness import SeededSource
from noisefloor.tables import ScaledRecords
from noisefloor_sim.inspection import WitnessPairs, most_pairs, with_bits
from noisefloor_sim.pipelines.collection.reference_inputs import Inputs
from noisefloor_sim.scenario import Scenario

Flags = NDArray[np.bool_]

OWNERS, ASKERS, DAY = "owners", "askers", "day"
"""Groups of pairs: those with one bit for all phases, for all questions, for a day's questions."""


@dataclass(frozen=True, slots=True, eq=False)
class RecordWitnesses:
    """Pairs of one cohort who are witnesses in one phase.

    Attributes:
        group: How long their bits last.
        pairs: Users; only the report of the first of a pair is looked at.
        taking_part: Which pairs may exchange now: both report, and equally often.
        other: The record that the first of each pair would hold with the other bit.
    """

    group: str
    pairs: WitnessPairs
    taking_part: Flags
    other: ScaledRecords

    def pair_of(self, users: Inputs) -> Inputs:
        """Return the number of the pair whose first each user is, or -1."""
        order = np.argsort(self.pairs.first)
        first = self.pairs.first[order]
        place = np.minimum(np.searchsorted(first, users), max(0, len(first) - 1))
        if not len(first):
            return np.full(len(users), -1)
        found = (first[place] == users) & self.taking_part[order][place]
        return np.where(found, order[place], -1)


def exchanged_places(size: int, witnesses: Iterable[RecordWitnesses]) -> Inputs:
    """Return whose record each of a cohort's users reports about."""
    places = np.arange(size)
    for one in witnesses:
        pairs, swapped = one.pairs, one.pairs.swapped & one.taking_part
        first, second = pairs.first[swapped], pairs.second[swapped]
        places[first], places[second] = second, first
    return places


def draw_record_pairs(
    eligible: Inputs, records: ScaledRecords, most: int, source: SeededSource
) -> WitnessPairs:
    """Draw pairs that share nobody, those whose records differ most first.

    Args:
        eligible: Users who may be a witness.
        records: Of the whole cohort.
        most: Pairs.
        source: Of pairs and bits.
    """
    chance = source.generator()
    users = eligible[chance.permutation(len(eligible))]
    # Of more than two labels, the first against all others.
    is_positive = records.labels[users] > 0
    positive, negative = users[is_positive], users[~is_positive]
    both = min(len(positive), len(negative))
    rest = np.concatenate([positive[both:], negative[both:]])
    half = len(rest) // 2
    first = np.concatenate([positive[:both], rest[:half]])
    second = np.concatenate([negative[:both], rest[half : 2 * half]])
    # Whom one looks at is drawn, too: otherwise all of them would have the same label.
    turned = chance.random(len(first)) < 0.5
    first, second = np.where(turned, second, first), np.where(turned, first, second)
    apart = np.abs(records.values[first] - records.values[second]).sum(axis=1)
    apart += 2 * (records.labels[first] != records.labels[second])
    best = np.sort(np.argsort(-apart, kind="stable")[:most])
    return with_bits(first[best], second[best], chance)


@dataclass(slots=True)
class WitnessBook:
    """All witnesses of a collection, those with a constant bit the same at each wake.

    Attributes:
        scenario: Of the world.
        source: Of pairs and bits.
        owners: Pairs of each cohort who report, drawn in the first round.
        askers: Pairs of each cohort who only ask, drawn on the first day of questions.
    """

    scenario: Scenario
    source: SeededSource
    owners: dict[int, WitnessPairs] = field(default_factory=dict)
    askers: dict[int, WitnessPairs] = field(default_factory=dict)

    def of_owners(self, number: int, records: ScaledRecords, paid: Flags) -> RecordWitnesses:
        """Return the witnesses of a round: both of a pair report, or neither is exchanged.

        Args:
            number: Of the cohort.
            records: Of its users, as they were assigned.
            paid: Who reports.
        """
        if number not in self.owners:
            self.owners[number] = self._drawn(
                np.flatnonzero(paid), number, records, self.source.child(OWNERS, number)
            )
        pairs = self.owners[number]
        return _witnesses(OWNERS, pairs, paid.astype(np.int64), records)

    def of_questions(
        self,
        number: int,
        day: int,
        records: ScaledRecords,
        is_test: Flags,
        granted: Inputs,
    ) -> tuple[RecordWitnesses, ...]:
        """Return the witnesses of a day's questions: both of a pair ask equally often.

        Args:
            number: Of the cohort.
            day: Of the questions.
            records: Of its users, as they were assigned.
            is_test: Whose record nobody trains on.
            granted: How often each asks.
        """
        if number not in self.askers:
            source = self.source.child(ASKERS, number)
            tested = np.flatnonzero(is_test)
            half = tested[source.child("half").permutation(len(tested))[: len(tested) // 2]]
            self.askers[number] = self._drawn(np.sort(half), number, records, source)
        constant = [
            _witnesses(group, book[number], granted, records)
            for group, book in ((OWNERS, self.owners), (ASKERS, self.askers))
            if number in book
        ]
        free = granted > 0
        for one in constant:
            free[one.pairs.first] = free[one.pairs.second] = False
        # Those who ask equally often, of records that all are to be tested or none.
        kinds, counts = np.unique((2 * granted + is_test)[free], return_counts=True)
        if len(kinds):
            free &= 2 * granted + is_test == kinds[np.argmax(counts)]
        source = self.source.child(DAY, number, day)
        pairs = self._drawn(np.flatnonzero(free), number, records, source)
        return (*constant, _witnesses(DAY, pairs, granted, records))

    def _drawn(
        self, eligible: Inputs, number: int, records: ScaledRecords, source: SeededSource
    ) -> WitnessPairs:
        return draw_record_pairs(eligible, records, most_pairs(self.scenario, number), source)


def _witnesses(
    group: str, pairs: WitnessPairs, reports: Inputs, records: ScaledRecords
) -> RecordWitnesses:
    """Return pairs, of whom those who report equally often take part."""
    first, second = reports[pairs.first], reports[pairs.second]
    other = np.where(pairs.swapped, pairs.first, pairs.second)
    return RecordWitnesses(group, pairs, (first == second) & (first > 0), records[other])


@dataclass(frozen=True, slots=True, eq=False)
class WitnessReports:
    """Reports of witnesses as they arrived, a row for each.

    Attributes:
        group: How long their bits last.
        cohort: Of the pair.
        epoch: Of the report.
        pair: The number of the pair.
        number: Which of the user's reports in this epoch it is.
        sent: The columns of the reports.
        records: What they are about.
        other: What they would be about with the other bit.
        swapped: The bits.
        unused: Bits that were drawn and never used.
    """

    group: str
    cohort: Inputs
    epoch: Inputs
    pair: Inputs
    number: Inputs
    sent: Mapping[str, Array]
    records: ScaledRecords
    other: ScaledRecords
    swapped: Flags
    unused: Flags


def joined_reports(parts: Sequence[WitnessReports]) -> WitnessReports:
    """Return the reports of one group in an order that does not depend on their arrival."""

    def joined(name: str) -> Array:
        return np.concatenate([getattr(one, name) for one in parts])

    keys = [joined(name) for name in ("number", "pair", "epoch", "cohort")]
    order = np.lexsort(keys)
    number, pair, epoch, cohort = (one[order] for one in keys)
    records, other = (
        ScaledRecords(
            np.concatenate([getattr(one, name).values for one in parts])[order],
            np.concatenate([getattr(one, name).labels for one in parts])[order],
        )
        for name in ("records", "other")
    )
    sent = {
        name: np.concatenate([one.sent[name] for one in parts])[order] for name in parts[0].sent
    }
    swapped, unused = (joined(name)[order] for name in ("swapped", "unused"))
    return WitnessReports(
        parts[0].group, cohort, epoch, pair, number, sent, records, other, swapped, unused
    )
