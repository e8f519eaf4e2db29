"""Impressions: what was shown where, and whether it was clicked; from a table of one's own.

Impressions and clicks: the Open Bandit data, or a table of one's own.

A shop showed items in three places of a page and logged each impression with the policy that
chose the item, the probability of the choice, and whether it was clicked. Item numbers belong to
a campaign: item 3 of one is not item 3 of another. An own table is read by ``impressions``.
"""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import check_finite
from noisefloor.errors import BadParameter, BadTable
from noisefloor.tables.data_sets import OPEN_BANDIT
from noisefloor.tables.reading import Table, load_member, load_table

MOST_ITEMS = 1 << 20
MOST_POSITIONS = 1 << 10

_BOUNDS = {"item": (0, MOST_ITEMS - 1), "position": (1, MOST_POSITIONS), "click": (0, 1)}
"""The columns of an own table, and the integers that each may hold."""


@dataclass(frozen=True, slots=True, eq=False)
class ImpressionLog:
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
) -> ImpressionLog:
    """Read a table with the columns item (from 0), position (from 1) and click (0 or 1).

    Args:
        source: Path of the table.
        campaign: Keep only rows with this in the column ``campaign``.
        policy: Keep only rows with this in the column ``policy``.

    Raises:
        BadTable: Which column, and which rule.
    """
    filters = {"campaign": campaign, "policy": policy}
    named = {name: value for name, value in filters.items() if value is not None}
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
    return ImpressionLog(
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


POLICIES = ("random", "bts")
"""Uniform choice, and Bernoulli Thompson sampling trained before the log begins."""

ITEMS = {"all": 80, "men": 34, "women": 46}
"""How many items each campaign has."""

PRIOR_IMPRESSIONS = 100.0
"""Weight of the prior: as if n impressions had been seen at the average rate."""

_COLUMNS = ("item_id", "position", "click", "propensity_score")


@dataclass(frozen=True, slots=True, eq=False)
class ClickRates:
    """How often things are clicked, by item and by position.

    Attributes:
        clicks: Of each item, by its number.
        impressions: Of each item.
        rate: Of each item: the posterior mean (clicks + a) / (impressions + a + b).
        position_clicks: At each position; the first stands at index 0.
        position_impressions: At each position.
        position_rate: At each position, smoothed likewise.
        prior: The a and b of the Beta prior that all of them share.
    """

    clicks: NDArray[np.int64]
    impressions: NDArray[np.int64]
    rate: NDArray[np.float64]
    position_clicks: NDArray[np.int64]
    position_impressions: NDArray[np.int64]
    position_rate: NDArray[np.float64]
    prior: tuple[float, float]


def load_impressions(
    campaign: str | None = None,
    policy: str | None = None,
    *,
    source: str | os.PathLike[str] = OPEN_BANDIT.name,
) -> ImpressionLog:
    """Load impressions, of one campaign or policy if it is named.

    Args:
        campaign: ``all``, ``men`` or ``women``, or what an own table calls it.
        policy: ``random`` or ``bts``, or what an own table calls it.
        source: The data set's name, or a path of a table.

    Raises:
        MissingData: The data set was not fetched; the text says how.
        BadTable: A file of the user's breaks a rule.
    """
    if os.fspath(source) != OPEN_BANDIT.name:
        return read_impressions(source, campaign, policy)
    _check_one_of(campaign, "campaign", tuple(ITEMS))
    _check_one_of(policy, "policy", POLICIES)
    parts = [
        _part(one_policy, one_campaign)
        for one_policy in POLICIES
        for one_campaign in ITEMS
        if campaign in (None, one_campaign) and policy in (None, one_policy)
    ]
    return ImpressionLog(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def click_rates(
    campaign: str | None = "all",
    policy: str | None = "random",
    *,
    source: str | os.PathLike[str] = OPEN_BANDIT.name,
    prior_impressions: float = PRIOR_IMPRESSIONS,
) -> ClickRates:
    """Count clicks by item and by position, and smooth their rates.

    The prior is Beta(w m, w (1 - m)) for the average rate m = (clicks + 1/2) / (impressions + 1)
    and the weight w = ``prior_impressions``: a thing that was rarely shown gets nearly the
    average, one that was never shown gets it exactly. Under another policy than the random one
    items are shown to chosen people and in chosen places; nothing corrects for that here.

    Args:
        campaign: Which one; None takes all rows of an own table.
        policy: Which one; None takes all.
        source: The data set's name, or a path of a table.
        prior_impressions: Weight of the prior, > 0.
    """
    weight = check_finite(prior_impressions, "prior_impressions")
    if weight <= 0:
        raise BadParameter("prior_impressions", prior_impressions, "> 0")
    is_own = os.fspath(source) != OPEN_BANDIT.name
    if campaign is None and not is_own:
        raise BadParameter("campaign", None, "to be named: each has items of its own")
    seen = load_impressions(campaign, policy, source=source)
    items = 0 if is_own else ITEMS[str(campaign)]
    prior = _prior(seen.click, weight)
    return ClickRates(
        *_rates(seen.item, seen.click, items, prior),
        *_rates(seen.position - 1, seen.click, 0, prior),
        prior,
    )


def _prior(click: NDArray[np.bool_], weight: float) -> tuple[float, float]:
    average = (int(click.sum()) + 0.5) / (len(click) + 1)
    return weight * average, weight * (1 - average)


def _rates(
    group: NDArray[np.int64], click: NDArray[np.bool_], size: int, prior: tuple[float, float]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Count clicks and impressions of at least ``size`` groups, and smooth their rates."""
    impressions = np.bincount(group, minlength=size)
    clicks = np.bincount(group[click], minlength=len(impressions))
    return clicks, impressions, (clicks + prior[0]) / (impressions + sum(prior))


def _check_one_of(value: str | None, name: str, known: tuple[str, ...]) -> None:
    if value is not None and value not in known:
        raise BadParameter(name, value, f"to be one of {', '.join(known)}")


def _part(policy: str, campaign: str) -> tuple[NDArray[Any], ...]:
    """Read the file of one policy in one campaign, in the order of the fields."""
    file = f"{policy}-{campaign}.csv"
    (member,) = (it for it in OPEN_BANDIT.members if it.file == file)
    table = load_member(OPEN_BANDIT, member, _COLUMNS)
    item, position, click, propensity = (table[name] for name in _COLUMNS)
    names = np.full(len(item), campaign), np.full(len(item), policy)
    return item, position, click.astype(np.bool_), propensity, *names
