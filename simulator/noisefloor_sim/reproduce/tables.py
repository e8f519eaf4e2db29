"""The tables that every reproduction has: its figures, and their readings."""

import math
from collections.abc import Mapping, Sequence

from noisefloor_sim.report.spec import Table
from noisefloor_sim.reproduce.verdicts import (
    DEPENDS,
    NOT,
    REPRODUCED,
    UNDECIDED,
    Found,
    Judged,
    number,
)


def figures_table(
    judged: Sequence[Judged], titles: Mapping[str, str], larger: str, digits: int = 2
) -> Table:
    """Return every printed figure with its verdict, the worst first.

    Args:
        judged: The figures.
        titles: Of the data sets.
        larger: What always telling the larger class gets, in words.
        digits: Of numbers.
    """
    order = (NOT, DEPENDS, UNDECIDED, REPRODUCED)
    ranked = sorted(judged, key=lambda one: order.index(one.verdict))
    rows = [
        (
            titles[one.item.data],
            one.item.what,
            one.item.printed,
            _span(one.found, digits),
            one.verdict,
            one.reading
            or ("none for certain" if one.verdict == UNDECIDED else "none of those run"),
        )
        for one in ranked
    ]
    return Table(
        "Every printed figure",
        f"Ours is the mean, over all readings; always telling the larger class gets: {larger}.",
        ("data", "figure", "printed", "ours", "verdict", "comes out under"),
        rows,
    )


def _span(found: Sequence[Found], digits: int) -> str:
    low, high = min(one.value for one in found), max(one.value for one in found)
    return number(low, digits) if low == high else _range(low, high, digits)


def _range(low: float, high: float, digits: int) -> str:
    return f"{number(low, digits)} to {number(high, digits)}"


def readings_table(
    judged: Sequence[Judged], titles: Mapping[str, str], reading: str, digits: int = 2
) -> Table:
    """Return every reading of every figure.

    Args:
        judged: The figures.
        titles: Of the data sets.
        reading: How the table is read.
        digits: Of numbers.
    """
    rows = [
        (
            titles[one.item.data],
            one.item.what,
            one.item.printed,
            found.reading,
            number(found.value, digits),
            _range(found.low, found.high, digits),
            "" if math.isnan(found.one_low) else _range(found.one_low, found.one_high, digits),
            found.fits.value,
        )
        for one in judged
        for found in one.found
    ]
    return Table(
        "Every reading",
        reading,
        (
            "data",
            "figure",
            "printed",
            "reading",
            "ours",
            "95 % of the mean",
            "one more run",
            "fits",
        ),
        rows,
    )
