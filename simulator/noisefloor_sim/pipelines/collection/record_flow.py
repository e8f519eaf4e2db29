"""Reports about records as they are inspected: their distribution given the records.

What is declared is computed from raw records by formulas of its own; no step of a device is used.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from noisefloor.accounting import Amount
from noisefloor.adversary.fit import FitResult, FitTable
from noisefloor.checks import Array
from noisefloor.privacy import Claim
from noisefloor.tables import ScaledRecords
from noisefloor.tasks import FittedModel
from noisefloor.wire import Kind
from noisefloor_sim.inspection import Flow, LedgerPrice, SeenFrame
from noisefloor_sim.pipelines.collection.record_witnesses import RecordWitnesses, WitnessReports
from noisefloor_sim.pipelines.collection.reference_inputs import UNKNOWN, Inputs
from noisefloor_sim.pipelines.collection.report_form import (
    RecordAnswers,
    RecordForm,
    TruthfulAnswers,
    said,
)

REMEMBERED_COHORTS = 8
"""The number of cohorts whose answers are remembered, to compare them with others."""


@dataclass(frozen=True, slots=True, eq=False)
class RecordTruth:
    """What the reports of a cohort were made of; only scoring reads it.

    Attributes:
        users: The user of each report of the cohort in this epoch, in rising order.
        records: What each report is about.
        first: The place of the frame's first report among them.
        columns: The attributes that everybody tells of.
        model: The published model, where reports are decisions.
        witnesses: Users whose record is decided by a random bit.
    """

    users: Inputs
    records: ScaledRecords
    first: int
    columns: tuple[int, ...]
    model: FittedModel | None = None
    witnesses: tuple[RecordWitnesses, ...] = ()


@dataclass(slots=True)
class _Remembered:
    """Answers of one cohort in one epoch, in the order of its users."""

    users: list[Inputs] = field(default_factory=list)
    rows: list[Inputs] = field(default_factory=list)
    answers: list[TruthfulAnswers] = field(default_factory=list)

    def joined(self) -> tuple[Inputs, Inputs, TruthfulAnswers]:
        """Return users, which report of the user each is, and answers."""
        rows = np.concatenate(self.rows)
        order = np.argsort(rows)
        users = np.concatenate(self.users)[order]
        parts = (
            np.concatenate([getattr(one, name) for one in self.answers])[order]
            for name in ("is_true", "chance", "planted")
        )
        return users, rows[order], TruthfulAnswers(*parts)


@dataclass(slots=True)
class RecordFlow(Flow):
    """One flow of reports about records.

    Attributes:
        flow_name: As accounts call it.
        kind: Of the frames.
        epochs: The round, or the days.
        form: What is declared of a report.
        claim: Of one report; the ledger debits what is claimed.
        table: The tests.
        seen: Answers by cohort and epoch.
        witnesses: Reports of witnesses.
    """

    flow_name: str
    kind: Kind
    epochs: range
    form: RecordForm
    claim: Claim
    table: FitTable = field(default_factory=FitTable)
    seen: dict[tuple[int, int], _Remembered] = field(default_factory=dict)
    witnesses: list[WitnessReports] = field(default_factory=list)

    @property
    def name(self) -> str:
        """As accounts call it."""
        return self.flow_name

    @property
    def columns(self) -> dict[str, str]:
        """Those that the form declares; nothing else."""
        return self.form.columns

    def kind_at(self, epoch: int) -> Kind:
        """Return the one kind."""
        return self.kind

    @property
    def price(self) -> LedgerPrice | None:
        """What the ledger debits for a report: what is claimed of it, nothing without noise."""
        claimed = self.claim.claimed
        micro = Amount.cost(claimed).micro_epsilon if claimed.is_finite else 0
        return LedgerPrice(self.flow_name, micro)

    def inspect(self, seen: SeenFrame) -> None:
        """Count answers by what they were made of, and remember those to be compared."""
        truth = seen.truth
        if not isinstance(truth, RecordTruth):
            raise TypeError("Reports about records come with their records.")
        # Back in the order of the devices: rows next to each other are users next to each other.
        back = np.argsort(seen.order)
        rows = truth.first + seen.order[back]
        sent = {
            name: column[back] for name, column in seen.frame.kind.decode(seen.frame.batch).items()
        }
        records = truth.records[rows]
        answers = self.form.read(sent, records, truth.columns, truth.model)
        truthful = self.form.count(self.table, answers)
        if self.form.is_drawn and self.form.chosen < self.form.attributes:
            self._see_draws(answers, records, truth)
        if seen.cohort < REMEMBERED_COHORTS:
            found = self.seen.setdefault((seen.cohort, seen.frame.epoch), _Remembered())
            found.users.append(truth.users[rows])
            found.rows.append(rows)
            found.answers.append(truthful)
        for witnesses in truth.witnesses:
            self._see_witnesses(witnesses, seen, truth, rows, sent)

    def _see_draws(
        self, answers: RecordAnswers, records: ScaledRecords, truth: RecordTruth
    ) -> None:
        """Test which attributes owners draw: each equally often, whatever the record says."""
        form = self.form
        share = form.chosen / form.attributes
        everything = range(form.attributes)
        drawn = np.zeros((len(records), form.attributes), dtype=np.bool_)
        np.put_along_axis(drawn, answers.attribute[:, : form.chosen], True, axis=1)
        inputs = form.encode(records, everything, truth.model)
        for one in everything:
            known, name = form.answers[one], form.names[one]
            row, _, _ = known.cells(inputs[:, one], inputs[:, one])
            size = known.table.shape[0]
            hits, tried = (np.bincount(some, minlength=size) for some in (row[drawn[:, one]], row))
            self.table.add(f"{name} drawn, by input", hits, tried, share)
        half = len(drawn) // 2
        both = (drawn[: 2 * half : 2] & drawn[1 : 2 * half : 2]).sum(axis=0)
        self.table.add(
            "an attribute drawn by two owners", both, np.full(len(both), half), share**2
        )
        last = form.attributes // 2 * 2
        together = (drawn[:, 0:last:2] & drawn[:, 1:last:2]).sum(axis=0)
        chance = share * (form.chosen - 1) / max(1, form.attributes - 1)
        tried = np.full(len(together), len(drawn))
        self.table.add("two attributes drawn by one owner", together, tried, chance)

    def _see_witnesses(
        self,
        witnesses: RecordWitnesses,
        seen: SeenFrame,
        truth: RecordTruth,
        rows: Inputs,
        sent: dict[str, Array],
    ) -> None:
        """Keep the reports of witnesses that arrived."""
        users = truth.users[rows]
        pair = witnesses.pair_of(users)
        mine = np.flatnonzero(pair >= 0)
        if not len(mine):
            return
        # Which of the user's reports in this epoch it is: those of a user stand together.
        number = rows[mine] - np.searchsorted(truth.users, users[mine])
        pair = pair[mine]
        self.witnesses.append(
            WitnessReports(
                witnesses.group,
                np.full(len(mine), seen.cohort),
                np.full(len(mine), seen.frame.epoch),
                pair,
                number,
                {name: column[mine] for name, column in sent.items()},
                truth.records[rows[mine]],
                witnesses.other[pair],
                witnesses.pairs.swapped[pair],
                witnesses.pairs.unused[pair],
            )
        )

    def fit(self) -> FitResult:
        """Test everything that was counted, and answers in pairs that share nothing.

        Noise that is not there cannot be too small: nothing is missed where none is declared.
        """
        table = FitTable()
        table.merge(self.table)
        joined = {key: one.joined() for key, one in sorted(self.seen.items())}
        for (cohort, epoch), (users, _, answers) in joined.items():
            self._see_rows(table, users, answers)
            beside = joined.get((cohort + 1, epoch))
            if cohort % 2 == 0 and beside is not None:
                both = min(len(users), len(beside[0]))
                name = "two frames"
                _see_pairs(table, name, _some(answers, slice(both)), _some(beside[2], slice(both)))
            after = joined.get((cohort, epoch + 1))
            if (epoch - self.epochs.start) % 2 == 0 and after is not None:
                firsts = [np.unique(one[0], return_index=True) for one in ((users,), after)]
                _, here, there = np.intersect1d(
                    firsts[0][0], firsts[1][0], assume_unique=True, return_indices=True
                )
                first, second = firsts[0][1][here], firsts[1][1][there]
                _see_pairs(
                    table, "two days of a user", _some(answers, first), _some(after[2], second)
                )
        return table.result() if self.form.epsilon else replace(table.result(), finds_planted=True)

    def _see_rows(self, table: FitTable, users: Inputs, answers: TruthfulAnswers) -> None:
        """Compare answers of a row, of two users, and of a user who reports twice."""
        width = answers.is_true.shape[1] // 2 * 2
        left, right = (_some(answers, (slice(None), slice(start, width, 2))) for start in (0, 1))
        _see_pairs(table, "two answers of a report", left, right)
        half = len(users) // 2
        _see_pairs(
            table,
            "two reports",
            _some(answers, slice(half)),
            _some(answers, slice(half, 2 * half)),
        )
        _, first, count = np.unique(users, return_index=True, return_counts=True)
        twice = first[count > 1]
        _see_pairs(
            table, "two reports of a user", _some(answers, twice), _some(answers, twice + 1)
        )


def _some(answers: TruthfulAnswers, rows: object) -> TruthfulAnswers:
    parts = (answers.is_true, answers.chance, answers.planted)
    return TruthfulAnswers(*(part[rows] for part in parts))  # type: ignore[call-overload]  # a slice, places, or both


def _see_pairs(table: FitTable, name: str, one: TruthfulAnswers, other: TruthfulAnswers) -> None:
    """Count pairs that are both the truth, and both not: reused noise shows here."""
    known = (one.is_true != UNKNOWN) & (other.is_true != UNKNOWN)
    if not known.any():
        return
    truths = [some.is_true[known] == 1 for some in (one, other)]
    chances, place = np.unique([some.chance[known] for some in (one, other)], return_inverse=True)
    places = place.reshape(2, -1)
    combined = places[0] * len(chances) + places[1]
    for number in np.unique(combined).tolist():
        first, second = (float(chances[at]) for at in divmod(number, len(chances)))
        here = combined == number
        tried, given = np.count_nonzero(here), f"with chances {said(first)} and {said(second)}"
        both = np.count_nonzero(truths[0] & truths[1] & here)
        neither = np.count_nonzero(~truths[0] & ~truths[1] & here)
        table.add(f"{name} both the truth {given}", both, tried, first * second)
        table.add(f"{name} both not the truth {given}", neither, tried, (1 - first) * (1 - second))
