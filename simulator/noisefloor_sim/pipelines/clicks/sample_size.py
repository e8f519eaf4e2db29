"""How many reports it takes until clicks per ad are known well enough to be of use.

The standard error of an estimate has a closed form, and falls with the square root of the reports.
So the error of this run's days gives the user-days of a stated error; the measured error stands
beside the closed form, and shows whether it can be trusted. Even without noise few clicks say
little of an ad: that clicks are a matter of chance counts in what is needed, with the variance of
a Poisson number, and not in the error against what was clicked.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from noisefloor_sim.pipelines.api import Metric
from noisefloor_sim.pipelines.clicks.estimates import ClickCounts
from noisefloor_sim.pipelines.plotting import Groups, mean_rows
from noisefloor_sim.report import Cell, Figures, Reading, Table, number

USEFUL = 0.2
"""The relative error per ad at which clicks are called known."""


def sample_size_metrics(
    found: Sequence[ClickCounts], truths: NDArray[np.float64], days: int
) -> list[Metric]:
    """Return the closed form of the relative error, and what an error of 20 % per ad takes.

    All are of kept clicks and of the mean ad: root mean square error over mean clicks.
    ``error_relative.gap`` is by which part the measured error is off the closed form.

    Args:
        found: The released clicks, of days whose errors are independent.
        truths: What they estimate, one row a day.
        days: Of the run.
    """
    mean = float(truths.mean()) if found else 0.0
    errors = np.array([one.clicks.standard_error for one in found])
    relative = _root_mean_square(errors) / mean if mean else 0.0
    if not relative:
        return []
    measured = _root_mean_square(np.array([one.clicks.value for one in found]) - truths) / mean
    reports = float(np.mean([one.n for one in found]))
    needed = reports * (relative**2 + 1 / mean) / USEFUL**2
    return [
        Metric("error_relative.kept", measured, n=truths.size),
        Metric("error_relative.formula", relative, n=len(found)),
        Metric("error_relative.gap", abs(measured / relative - 1), n=truths.size),
        Metric("needed.user_days", needed, n=len(found)),
        Metric("needed.users", needed / days, n=len(found)),
        Metric("needed.days", needed / reports, n=len(found)),
    ]


def _root_mean_square(values: NDArray[np.float64]) -> float:
    return math.sqrt(float(np.mean(np.square(values))))


_COLUMNS = {
    "error_relative.kept": "relative error, measured",
    "error_relative.formula": "closed form",
    "needed.user_days": "user-days for 20 %",
    "needed.users": "users, in as many days",
    "needed.days": "days, with as many users",
}


def sample_size_tables(groups: Groups) -> Iterator[Table]:
    """Show what it takes until clicks per ad are known; nothing where days share randomness."""
    rows: list[tuple[Cell, ...]] = [
        row for row in mean_rows(groups, list(_COLUMNS)) if all(row[2:])
    ]
    if rows:
        yield Table(
            "What it takes to know the clicks per ad to 20 %",
            "Root mean square error per ad and day over mean kept clicks, as measured "
            "and by the closed form of the standard error. With the chance of the clicks "
            "themselves it falls with the square root of the reports: user-days that bring both "
            "together to 0.2, as users over as many days as the run has, or as days with as many "
            "reports a day.",
            ("curve", "at", *_COLUMNS.values()),
            rows,
            ((Reading("{said}", _first_and_last),), (Reading("{said}", _agreement),)),
        )


def _first_and_last(table: Table) -> Figures | None:
    """Name the least and the largest need."""
    rows = sorted(
        (need, number(at), str(curve))
        for curve, at, _, _, need, *_ in table.rows
        if isinstance(need, float) and isinstance(at, int | float)
    )
    if not rows:
        return None
    said = [
        f"{number(need)} user-days at {at} ({curve})" for need, at, curve in (rows[0], rows[-1])
    ]
    return {"said": f"A relative error of 20 % per ad takes from {said[0]} to {said[1]}."}


def _agreement(table: Table) -> Figures | None:
    """Return by how much the measured error and its closed form differ at most."""
    ratios = [
        float(row[2]) / float(row[3])
        for row in table.rows
        if isinstance(row[2], float) and isinstance(row[3], float)
    ]
    if not ratios:
        return None
    ends = number(min(ratios)), number(max(ratios))
    return {"said": f"The measured error is {ends[0]} to {ends[1]} times the closed form."}
