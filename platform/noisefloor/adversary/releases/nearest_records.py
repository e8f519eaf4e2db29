"""Membership by nearness: do synthetic rows lie closer to those who were in the data?

Nearness alone says nothing: a good synthetic table lies near to everybody. So members are set
beside people of the same population who were left out, and the attack beside a null (a table made
without either) and a planted leak (a table of copied rows), on which it has to succeed.

Hamming distances between the rows of two tables of codes, a block at a time.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import binary_success
from noisefloor.adversary.audit import AttackOutcome
from noisefloor.adversary.releases.reconstruction_bounds import as_substitution
from noisefloor.checks import Floats, blocks
from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee

Codes = NDArray[np.integer]
Distances = NDArray[np.uint16]

_TABLE_ROWS = 1 << 10
_MOST_COLUMNS = 1 << 15


def distances(rows: Codes, table: Codes) -> Iterator[tuple[slice, slice, Distances]]:
    """Yield blocks of distances: which rows, which rows of the table, how many columns differ.

    Blocks come row by row of the first table; none is larger than a constant.
    """
    first, second = _compared(rows, table)
    for some in blocks(len(rows), _TABLE_ROWS):
        for start in range(0, len(table), _TABLE_ROWS):
            others = slice(start, min(start + _TABLE_ROWS, len(table)))
            apart = np.zeros((some.stop - some.start, others.stop - others.start), np.uint16)
            for mine, theirs in zip(first[:, some], second[:, others], strict=True):
                apart += mine[:, None] != theirs
            yield some, others, apart


def closest(rows: Codes, table: Codes) -> Distances:
    """Return the distance from each row to the nearest row of a table."""
    if not len(table):
        raise BadParameter("table", "<0 rows>", "at least one row")
    least = np.full(len(rows), _MOST_COLUMNS, dtype=np.uint16)
    for some, _, apart in distances(rows, np.unique(table, axis=0)):
        np.minimum(least[some], apart.min(axis=1), out=least[some])
    return least


def _compared(rows: Codes, table: Codes) -> tuple[Codes, Codes]:
    """Return both tables by columns, in the smallest integers that hold them."""
    if rows.ndim != 2 or table.ndim != 2 or rows.shape[1] != table.shape[1]:
        raise BadParameter("table", table.shape, f"of as many columns as the rows, {rows.shape}")
    if rows.shape[1] > _MOST_COLUMNS:
        raise BadParameter("rows", rows.shape, f"of at most {_MOST_COLUMNS} columns")
    most = max((int(one.max()) for one in (rows, table) if one.size), default=0)
    least = min((int(one.min()) for one in (rows, table) if one.size), default=0)
    kind = np.uint8 if least >= 0 and most < 256 else np.int64
    return np.ascontiguousarray(rows.T.astype(kind)), np.ascontiguousarray(table.T.astype(kind))


_MISSED = 0.05
"""The probability that an interval misses the true area, at most."""


def area_under_curve(members: Floats, others: Floats) -> float:
    """Return how often a member's score is above another's; ties count as half."""
    if not len(members) or not len(others):
        raise BadParameter("members", (len(members), len(others)), "and others: at least one each")
    ranked = np.sort(others)
    below = np.searchsorted(ranked, members, side="left").mean()
    up_to = np.searchsorted(ranked, members, side="right").mean()
    return float(below + up_to) / (2 * len(others))


def area_margin(members: int, others: int, alpha: float = _MISSED) -> float:
    """Return what an area may be off by, but for a probability of alpha, whatever the scores.

    Formula: ``sqrt(ln(2 / alpha) / (2 min(members, others)))``.
    Reference: Hoeffding 1963, section 5b (two-sample statistics).
    """
    return math.sqrt(math.log(2 / alpha) / (2 * min(members, others)))


@dataclass(frozen=True, slots=True)
class NearestRecords:
    """What nearness gave away of one synthetic table.

    Attributes:
        members: Copies of members: rows at distance 0, of how many.
        others: Copies of people who were left out: what chance alone does.
        distance: The mean distance of a member to the nearest synthetic row.
        other_distance: The same for those who were left out.
        area: How often a member lies nearer than one who was left out (ROC AUC).
        bound: What the mean area over releases cannot pass if the guarantee holds.
    """

    members: AttackOutcome
    others: AttackOutcome
    distance: float
    other_distance: float
    area: float
    bound: float

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the area, over the draw of people: wide, but always right."""
        margin = area_margin(self.members.n, self.others.n)
        return max(0.0, self.area - margin), min(1.0, self.area + margin)


def nearness(rows: Codes, table: Codes, reference: Codes | None = None) -> Floats:
    """Return how much nearer each row is to a synthetic table than to a reference.

    Without a reference it is minus the distance. The reference seldom moves the area, but it finds
    members of rare rows at small false positive rates: common rows no longer score high.
    """
    far = 0.0 if reference is None else closest(rows, reference).astype(np.float64)
    return np.asarray(far - closest(rows, table))


def attack_nearest(
    members: Codes,
    others: Codes,
    table: Codes,
    guarantee: Guarantee,
    reference: Codes | None = None,
) -> NearestRecords:
    """Tell members by the distance to the nearest synthetic row.

    Sees:      the synthetic table.
    Knows:     the target's row; with a reference, a sample of the population as well.
    Guesses:   that the nearer of two people was in the data. With a reference: the one who is
               nearer to the table than to the reference, so that common rows do not count.
    Reference: van Breugel, Sun, Qian and van der Schaar 2023, arXiv 2302.12580 (with reference).

    A member and somebody who was left out change places by one substitution. So the mean area is
    at most ``binary_success`` of the guarantee for substitution.

    Args:
        members: Rows that the table was made from.
        others: Rows of the same population that it was not made from.
        table: The synthetic rows.
        guarantee: Of the synthetic table.
        reference: Rows of the population, disjoint from both.
    """
    near = [closest(rows, table).astype(np.float64) for rows in (members, others)]
    scores = [nearness(rows, table, reference) for rows in (members, others)]
    both = as_substitution(guarantee)
    copied = [int(np.count_nonzero(some == 0)) for some in near]
    chance = copied[1] / len(others)
    return NearestRecords(
        # How often a row is copied is no guess: only the area has a bound.
        AttackOutcome(copied[0], len(members), chance, 1.0),
        AttackOutcome(copied[1], len(others), chance, 1.0),
        float(near[0].mean()),
        float(near[1].mean()),
        area_under_curve(*scores),
        float(binary_success(both.epsilon, both.delta)),
    )
