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

from noisefloor.adversary.fit.table import FitTable
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
        """Return the probability that a one among so many clicks is reported as one."""
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
class BitVectorFit:
    """Tests of one flow of bit vectors.

    Days, rows, bits and frames are compared in pairs that share nothing with each other, so that
    every count is binomial: days 0 and 1, 2 and 3; cohorts 0 and 1, 2 and 3.

    Attributes:
        declared: The distribution.
        table: The tests.
        days: By cohort and pair of days, what came of each day.
        frames: By cohort and day, a frame whose partner has not come yet.
        most_cohorts: The first so many cohorts are compared over days.
    """

    declared: BitDistribution
    table: FitTable = field(default_factory=FitTable)
    days: dict[tuple[int, int], dict[int, _Seen]] = field(default_factory=dict)
    frames: dict[tuple[int, int], _Seen] = field(default_factory=dict)
    most_cohorts: int = 8

    def see(self, rows: SeenRows) -> None:
        """Count the reports of a frame."""
        if not len(rows.users):
            return
        width, clicks = rows.bits.shape[1], rows.bits.sum(axis=1)
        reports = rows.reports[:, :width]
        self._places(rows.day, reports, rows.bits, clicks)
        if self.declared.sampled:
            self._dummies(rows.reports[:, width:], clicks)
        usable = (clicks <= self.declared.keeps_all)[:, None] | ~rows.bits
        seen = _Seen(reports, rows.bits, usable)
        self._bits(seen)
        half = len(reports) // 2
        self._pairs("two users' zeros both one", seen[:half], seen[half : 2 * half])
        self._frames(rows, seen)
        if rows.cohort < self.most_cohorts:
            self._over_days(rows, seen)

    def _places(self, day: int, reports: Bits, bits: Bits, clicks: NDArray[np.int64]) -> None:
        """Test each place by itself, and all together on each day."""
        stay, rise = self.declared.stay, self.declared.rise
        planted = self.declared.planted
        ones, raised = bits.sum(axis=0), (reports & ~bits).sum(axis=0)
        zeros = len(bits) - ones
        self.table.add("zeros reported as one", raised, zeros, rise, planted[1])
        self.table.add("all zeros reported as one", raised.sum(), zeros.sum(), rise, planted[1])
        name = f"zeros reported as one on day {day}"
        self.table.add(name, raised.sum(), zeros.sum(), rise, planted[1])
        whole = clicks <= self.declared.keeps_all
        kept = bits if whole.all() else bits & whole[:, None]
        held, tried = (kept & reports).sum(axis=0), kept.sum(axis=0)
        self.table.add("ones reported as one", held, tried, stay, planted[0])
        self.table.add("all ones reported as one", held.sum(), tried.sum(), stay, planted[0])
        if whole.all():
            return
        for count in self.declared.classes:
            rows = clicks == count
            some, found = bits[rows], reports[rows]
            chance, fault = (
                float(self.declared.one(np.array([count]), *pair)[0])
                for pair in ((stay, rise), planted)
            )
            name = f"one of {count} clicks reported as one"
            self.table.add(name, (some & found).sum(axis=0), some.sum(axis=0), chance, fault)

    def _dummies(self, dummies: Bits, clicks: NDArray[np.int64]) -> None:
        """Test the places behind the row: one is picked where the row has too few clicks."""
        cap = dummies.shape[1]
        stay, rise = self.declared.stay, self.declared.rise
        for count in range(cap):
            rows = dummies[clicks == count]
            kept = (np.arange(cap) >= count) / cap
            chance = kept * stay + (1 - kept) * rise
            name = f"padding of {count} clicks reported as one"
            self.table.add(name, rows.sum(axis=0), np.full(cap, len(rows)), chance)

    def _bits(self, seen: _Seen) -> None:
        """Test pairs of zeros in one row: noise that is drawn once for a row shows here."""
        half = seen.bits.shape[1] // 2
        left, right = slice(0, half), slice(half, 2 * half)
        zeros = ~(seen.bits[:, left] | seen.bits[:, right])
        both = seen.reports[:, left] & seen.reports[:, right] & zeros
        counts = np.count_nonzero(both), np.count_nonzero(zeros)
        self.table.add("two zeros of a row both one", *counts, self.declared.rise**2)

    def _frames(self, rows: SeenRows, seen: _Seen) -> None:
        """Test frames of two cohorts: noise that is used for both shows here."""
        partner = self.frames.pop((rows.cohort ^ 1, rows.day), None)
        if partner is None:
            self.frames[rows.cohort, rows.day] = seen
            return
        both = min(len(partner.bits), len(seen.bits))
        self._pairs("zeros in two frames both one", partner[:both], seen[:both])

    def _pairs(self, name: str, one: _Seen, other: _Seen) -> None:
        zeros = ~(one.bits | other.bits)
        both = one.reports & other.reports & zeros
        counts = np.count_nonzero(both), np.count_nonzero(zeros)
        self.table.add(name, *counts, self.declared.rise**2)

    def _over_days(self, rows: SeenRows, seen: _Seen) -> None:
        """Test one user's bit on two days: reused noise shows here, or answers not permanent."""
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
                counts = np.count_nonzero(both & cells), np.count_nonzero(cells & usable)
                chance = float(self.declared.both[was, later])
                self.table.add(f"a bit of {was}, then {later}, both times one", *counts, chance)
