"""Rows of bits against a unary encoding, given what was to be encoded.

The input is known raw: what a cap drops at random is part of the declared distribution and is
computed here anew, so that nothing is shared with the step that a device takes. A one that is
among c clicks of a row of which at most m are kept is kept with probability min(1, m / c).

Every test restricts itself to bits that are independent. Zeros are, in all rows and places. Ones
are in one place over all rows; within a row only if no cap can drop one of them.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from noisefloor.adversary.fit.table import LEVEL, Counts, FitResult, FitTable
from noisefloor.checks import Floats

Bits = NDArray[np.bool_]

MOST_CLASSES = 6
"""Rows with more clicks than this beyond the cap are not tested one by one; they are rare."""


@dataclass(frozen=True)
class BitDistribution:
    """What is declared of a row of bits, on one day and on two.

    Attributes:
        stay: The probability that a kept one is reported as one.
        rise: The probability that a zero is.
        cap: How many ones of a row are kept at most; None if all are.
        sampled: Of a padded row one place is picked: a one is kept with probability
            1 / max(clicks, cap), and places behind the row may be.
        both: P(both reports of one place are one | bit then, bit now) over two days.
        planted: ``stay`` and ``rise`` with noise a quarter too small.
    """

    stay: float
    rise: float
    cap: int | None
    sampled: bool
    both: Floats
    planted: tuple[float, float]

    def one(self, clicks: NDArray[np.int64], stay: float, rise: float) -> Floats:
        """Return the probability that a one is reported as one, by clicks in its row."""
        if self.cap is None:
            kept = np.ones(len(clicks))
        elif self.sampled:
            kept = 1 / np.maximum(clicks, self.cap)
        else:
            kept = np.minimum(1.0, self.cap / np.maximum(clicks, 1))
        return np.asarray(kept * stay + (1 - kept) * rise)

    @cached_property
    def classes(self) -> NDArray[np.int64]:
        """The numbers of clicks in a row that are tested one by one where a cap drops some."""
        first = 1 if self.sampled or self.cap is None else self.cap + 1
        return np.arange(first, first + MOST_CLASSES)

    @property
    def keeps_all(self) -> int:
        """Up to how many clicks of a row are all kept."""
        if self.cap is None:
            return 1 << 30
        return 0 if self.sampled else self.cap


def row_sums(bits: Bits) -> NDArray[np.int64]:
    """Return the ones of each row; sums below 2**24 are exact in single precision, and faster."""
    ones = np.ones(bits.shape[1], dtype=np.float32)
    return np.asarray(bits.astype(np.float32) @ ones).astype(np.int64)


def class_sums(members: Bits, bits: Bits) -> Counts:
    """Return the ones of each column, by class of the rows: exact below 2**24 rows.

    Args:
        members: Which rows are in each class, one row per class.
        bits: The rows.
    """
    found = members.astype(np.float32) @ bits.astype(np.float32)
    return np.asarray(found).astype(np.int64)


@dataclass(slots=True)
class _Seen:
    """Reports of some users with what they hold, to be compared with others.

    Attributes:
        reports: Rows as they were received.
        bits: The raw input of each.
        usable: Bits whose report does not depend on other bits of their row.
    """

    reports: Bits
    bits: Bits
    usable: Bits

    def __getitem__(self, rows: slice | NDArray[np.int64]) -> "_Seen":
        return _Seen(self.reports[rows], self.bits[rows], self.usable[rows])

    @classmethod
    def none(cls, users: int, width: int) -> "_Seen":
        """Return rows of users who have sent nothing: they are usable for nothing."""
        return cls(*(np.zeros((users, width), dtype=np.bool_) for _ in range(3)))

    def place(self, users: NDArray[np.int64], rows: "_Seen") -> None:
        """Put rows in the places of their users."""
        self.reports[users], self.bits[users] = rows.reports, rows.bits
        self.usable[users] = rows.usable


@dataclass(frozen=True, slots=True)
class SeenRows:
    """Rows of one cohort in one frame.

    Attributes:
        cohort: Its number.
        day: Of the reports.
        size: Users in the cohort.
        users: The place of each row's user in the cohort, increasing.
        reports: Rows as they were received, in the order of the users.
        bits: The raw input of each row; reports may be wider.
    """

    cohort: int
    day: int
    size: int
    users: NDArray[np.int64]
    reports: Bits
    bits: Bits


@dataclass(slots=True)
class _Sums:
    """Integer counts of one flow, which add up in any order.

    Attributes:
        rows: Reports.
        ones: Reported ones, by place.
        tried: True ones, by number of clicks of their row and by place; the first number stands
            for all rows of which nothing is dropped.
        kept: Those of them that were reported as one.
        firsts: By number of clicks, rows and those whose first click was reported as one: of
            each row one click, so that a choice that is not random shows in all places together.
        days: By day, reported ones where the input is zero, and such inputs.
        dummies: By number of clicks, rows and their reported ones behind the row.
        pairs: By what was compared, pairs that were both one, and pairs.
    """

    rows: int
    ones: Counts
    tried: Counts
    kept: Counts
    firsts: Counts
    days: dict[int, list[int]] = field(default_factory=dict)
    dummies: dict[int, tuple[int, Counts]] = field(default_factory=dict)
    pairs: dict[str, list[int]] = field(default_factory=dict)

    @classmethod
    def none(cls, width: int) -> "_Sums":
        """Return counts of nothing."""
        by_class = np.zeros((2, MOST_CLASSES + 2, width), dtype=np.int64)
        firsts = np.zeros((2, MOST_CLASSES + 2), dtype=np.int64)
        return cls(0, np.zeros(width, dtype=np.int64), by_class[0], by_class[1], firsts)

    def add_pairs(self, name: str, both: Bits, pairs: Bits) -> None:
        """Count pairs that are both one, and pairs."""
        counts = self.pairs.setdefault(name, [0, 0])
        counts[0] += int(np.count_nonzero(both))
        counts[1] += int(np.count_nonzero(pairs))


@dataclass(slots=True)
class BitVectorFit:
    """Tests of one flow of bit vectors.

    Days, rows, bits and frames are compared in pairs that share nothing with each other, so that
    every count is binomial: days 0 and 1, 2 and 3; cohorts 0 and 1, 2 and 3.

    Attributes:
        declared: The distribution.
        table: Further tests of the same flow.
        sums: What was counted, once anything was.
        days: By cohort and pair of days, what came of each day.
        frames: By cohort and day, a frame whose partner has not come yet.
        most_cohorts: How many cohorts, from the first, are compared over days.
    """

    declared: BitDistribution
    table: FitTable = field(default_factory=FitTable)
    sums: _Sums | None = None
    days: dict[tuple[int, int], dict[int, _Seen]] = field(default_factory=dict)
    frames: dict[tuple[int, int], _Seen] = field(default_factory=dict)
    most_cohorts: int = 4

    def see(self, rows: SeenRows) -> None:
        """Count the reports of a frame."""
        if not len(rows.users):
            return
        width, clicks = rows.bits.shape[1], row_sums(rows.bits)
        if self.sums is None:
            self.sums = _Sums.none(width)
        reports, sums = rows.reports[:, :width], self.sums
        self._places(sums, rows.day, reports, rows.bits, clicks)
        if self.declared.sampled:
            self._dummies(sums, rows.reports[:, width:], clicks)
        usable = (clicks <= self.declared.keeps_all)[:, None] | ~rows.bits
        seen = _Seen(reports, rows.bits, usable)
        half = len(reports) // 2
        self._bits(sums, seen)
        self._pairs(sums, "two users' zeros both one", seen[:half], seen[half : 2 * half])
        self._frames(sums, rows, seen)
        if rows.cohort < self.most_cohorts:
            self._over_days(sums, rows, seen)

    def _places(
        self, sums: _Sums, day: int, reports: Bits, bits: Bits, clicks: NDArray[np.int64]
    ) -> None:
        """Count each place by itself, and all zeros of each day together."""
        some = np.flatnonzero(clicks)
        first = int(self.declared.classes[0])
        dropped = clicks[some] > self.declared.keeps_all
        of_class = np.where(dropped, clicks[some] - first + 1, 0).clip(0, MOST_CLASSES + 1)
        members = of_class == np.arange(MOST_CLASSES + 2)[:, None]
        own, said = bits[some], reports[some]
        kept, tried = class_sums(members, own & said), class_sums(members, own)
        first_said = said[np.arange(len(some)), own.argmax(axis=1)]
        sums.firsts += members.sum(axis=1), members[:, first_said].sum(axis=1)
        ones = class_sums(np.ones((1, len(reports)), dtype=np.bool_), reports)[0]
        sums.rows += len(reports)
        sums.ones += ones
        sums.tried += tried
        sums.kept += kept
        today = sums.days.setdefault(day, [0, 0])
        today[0] += int(ones.sum() - kept.sum())
        today[1] += bits.size - int(tried.sum())

    def _dummies(self, sums: _Sums, dummies: Bits, clicks: NDArray[np.int64]) -> None:
        """Count the places behind the row: one is picked where the row has too few clicks."""
        for count in range(dummies.shape[1]):
            rows = dummies[clicks == count]
            number, ones = sums.dummies.get(count, (0, 0))
            sums.dummies[count] = number + len(rows), ones + rows.sum(axis=0)

    def _bits(self, sums: _Sums, seen: _Seen) -> None:
        """Compare pairs of zeros in one row: noise that is drawn once for a row shows here."""
        half = seen.bits.shape[1] // 2
        left, right = slice(0, half), slice(half, 2 * half)
        zeros = ~(seen.bits[:, left] | seen.bits[:, right])
        both = seen.reports[:, left] & seen.reports[:, right] & zeros
        sums.add_pairs("two zeros of a row both one", both, zeros)

    def _frames(self, sums: _Sums, rows: SeenRows, seen: _Seen) -> None:
        """Compare frames of two cohorts: noise that is used for both shows here."""
        partner = self.frames.pop((rows.cohort ^ 1, rows.day), None)
        if partner is None:
            self.frames[rows.cohort, rows.day] = seen
            return
        both = min(len(partner.bits), len(seen.bits))
        self._pairs(sums, "zeros in two frames both one", partner[:both], seen[:both])

    def _pairs(self, sums: _Sums, name: str, one: _Seen, other: _Seen) -> None:
        zeros = ~(one.bits | other.bits)
        both = one.reports & other.reports & zeros
        sums.add_pairs(name, both, zeros)

    def _over_days(self, sums: _Sums, rows: SeenRows, seen: _Seen) -> None:
        """Compare one user's bit on two days: reused noise shows here, or fresh answers."""
        pair, place = rows.day // 2, rows.day % 2
        self.days.pop((rows.cohort, pair - 2), None)
        came = self.days.setdefault((rows.cohort, pair), {})
        if place not in came:
            came[place] = _Seen.none(rows.size, seen.bits.shape[1])
        came[place].place(rows.users, seen)
        if 1 - place not in came:
            return
        partner = came[1 - place][rows.users]
        then, now = (partner, seen) if place else (seen, partner)
        usable = then.usable & now.usable
        both = then.reports & now.reports & usable
        for was in (0, 1):
            for later in (0, 1):
                cells = (then.bits == was) & (now.bits == later)
                sums.add_pairs(_DAYS.format(was, later), both & cells, cells & usable)

    def result(self, level: float = LEVEL) -> FitResult:
        """Make all tests."""
        made = FitTable()
        made.merge(self.table)
        if self.sums is not None:
            self._tests(made, self.sums)
        return made.result(level)

    def _tests(self, table: FitTable, sums: _Sums) -> None:
        """Turn what was counted into tests."""
        stay, rise, fault = self.declared.stay, self.declared.rise, self.declared.planted
        zeros, raised = sums.rows - sums.tried.sum(axis=0), sums.ones - sums.kept.sum(axis=0)
        table.add("zeros reported as one", raised, zeros, rise, fault[1])
        table.add("all zeros reported as one", raised.sum(), zeros.sum(), rise, fault[1])
        for day, counts in sums.days.items():
            name = f"zeros reported as one on day {day}"
            table.add(name, counts[0], counts[1], rise, fault[1])
        table.add("ones reported as one", sums.kept[0], sums.tried[0], stay, fault[0])
        whole = sums.kept[0].sum(), sums.tried[0].sum()
        table.add("all ones reported as one", *whole, stay, fault[0])
        for place, count in enumerate(self.declared.classes, start=1):
            chances = [
                float(self.declared.one(np.array([count]), *pair)[0])
                for pair in ((stay, rise), fault)
            ]
            name = f"one of {count} clicks reported as one"
            table.add(name, sums.kept[place], sums.tried[place], *chances)
            rows, said = sums.firsts[:, place]
            table.add(f"the first of {count} clicks reported as one", said, rows, *chances)
        for count, (padded, ones) in sums.dummies.items():
            width = len(ones)
            kept = (np.arange(width) >= count) / width
            name = f"padding of {count} clicks reported as one"
            table.add(name, ones, np.full(width, padded), kept * stay + (1 - kept) * rise)
        both = {_DAYS.format(was, now): self.declared.both[was, now] for was, now in _BITS}
        for name, (hits, pairs) in sums.pairs.items():
            table.add(name, hits, pairs, both.get(name, rise**2))


_DAYS = "a bit of {}, then {}, both times one"
_BITS = ((0, 0), (0, 1), (1, 0), (1, 1))
