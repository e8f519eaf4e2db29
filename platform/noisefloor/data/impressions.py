"""Impressions: what was shown where, and whether it was clicked; from a table of one's own."""

import os
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.data.loading import load_table
from noisefloor.data.table import Table
from noisefloor.errors import BadTable

MOST_ITEMS = 1 << 20
MOST_POSITIONS = 1 << 10

_BOUNDS = {"item": (0, MOST_ITEMS - 1), "position": (1, MOST_POSITIONS), "click": (0, 1)}
"""The columns of an own table, and the integers that each may hold."""


@dataclass(frozen=True, slots=True, eq=False)
class Impressions:
    """One row per impression.

    Attributes:
        item: Number of the item within its campaign, from 0.
        position: Place on the page, from 1.
        click: Whether it was clicked.
        propensity: Probability with which the policy chose the item for the place; NaN where
            that is not known.
        campaign: Name of the campaign; empty where that is not known.
        policy: Name of the policy; empty where that is not known.
    """

    item: NDArray[np.int64]
    position: NDArray[np.int64]
    click: NDArray[np.bool_]
    propensity: NDArray[np.float64]
    campaign: NDArray[np.str_]
    policy: NDArray[np.str_]

    def __len__(self) -> int:
        return len(self.item)


def read_impressions(
    source: str | os.PathLike[str], campaign: str | None = None, policy: str | None = None
) -> Impressions:
    """Read a table with the columns item (from 0), position (from 1) and click (0 or 1).

    Args:
        source: Path of the table.
        campaign: Keep only rows with this in the column ``campaign``.
        policy: Keep only rows with this in the column ``policy``.

    Raises:
        BadTable: Which column, and which rule.
    """
    wanted = {"campaign": campaign, "policy": policy}
    named = {name: value for name, value in wanted.items() if value is not None}
    table = load_table(source, (*_BOUNDS, *named), numbers=_BOUNDS)
    file = os.fspath(source)
    for column in _BOUNDS:
        _check_bounds(table, column, file)
    rows = np.ones(len(table["item"]), np.bool_)
    for column, value in named.items():
        rows &= np.asarray(table[column].astype(np.str_) == value)
        if not rows.any():
            raise BadTable(file, f"Expected rows of {column} {value!r}, found none.", column)
    count = int(rows.sum())
    return Impressions(
        table["item"][rows].astype(np.int64),
        table["position"][rows].astype(np.int64),
        table["click"][rows].astype(np.bool_),
        np.full(count, np.nan),
        np.full(count, campaign or ""),
        np.full(count, policy or ""),
    )


def _check_bounds(table: Table, column: str, file: str) -> None:
    low, high = _BOUNDS[column]
    values = table[column]
    if values.dtype.kind == "f" or values.min() < low or values.max() > high:
        raise BadTable(file, f"Expected integers in [{low}, {high}].", column)
