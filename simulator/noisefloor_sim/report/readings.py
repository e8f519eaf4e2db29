"""What may be said about the data of a plot or table: sentences with predicates, and captions.

A caption is what is plotted, in words that are true whatever the data are, followed by the first
true reading of each topic. ``caption`` is the only function that prints a reading, and it prints
none whose predicate is false of the data. Predicates take the plot or table as it is drawn.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from noisefloor_sim.report.spec import Curve, Figures, Plot, Reading, Role, Shown, Table
from noisefloor_sim.report.wording import number

PlotReadings = tuple[Reading[Plot], ...]
TableReadings = tuple[Reading[Table], ...]

_DUST = 1e-9
"""Differences of floats that are no differences."""


def caption(shown: Plot | Table) -> str:
    """Return what is plotted, then the first true reading of each topic."""
    return " ".join(part for part in (shown.describes, *true_readings(shown)) if part)


def true_readings(shown: Plot | Table) -> list[str]:
    """Return the first true reading of each topic, with its figures."""
    if isinstance(shown, Plot):
        said = [_first_true(topic, shown) for topic in shown.readings]
    else:
        said = [_first_true(topic, shown) for topic in shown.readings]
    return [sentence for sentence in said if sentence is not None]


def _first_true(topic: Sequence[Reading[Shown]], shown: Shown) -> str | None:
    for reading in topic:
        sentence = reading.said(shown)
        if sentence is not None:
            return sentence
    return None


def span(values: Sequence[float]) -> str:
    """Write the least and the largest of some numbers; one if they are written alike."""
    least, most = number(min(values)), number(max(values))
    return least if least == most else f"{least} to {most}"


@dataclass(frozen=True, slots=True)
class ComparedPoint:
    """A measured value, and what it is compared with at the same place.

    Attributes:
        curve: The measured curve.
        y: The value.
        low: Lower end of its interval; NaN if there is none.
        high: Upper end.
        other: The value of the other curve there.
    """

    curve: str
    y: float
    low: float
    high: float
    other: float

    @property
    def is_inside(self) -> bool:
        """Whether the other value lies in the interval."""
        return self.low - _DUST <= self.other <= self.high + _DUST

    @property
    def is_above(self) -> bool:
        """Whether the measured value is above the other."""
        return self.y > self.other + _DUST

    @property
    def is_surely_above(self) -> bool:
        """Whether the whole interval is above the other."""
        return self.low > self.other + _DUST


def measured(plot: Plot) -> list[Curve]:
    """Return the measured curves."""
    return [curve for curve in plot.curves if curve.role == "measured"]


def beside(plot: Plot, role: Role) -> list[ComparedPoint]:
    """Compare each measured curve with the curves of a role in its group.

    A curve that has none in its group is compared with those that stand in no measured curve's
    group: lines that all curves share.
    """
    groups = {_group(curve) for curve in measured(plot)}
    others = [curve for curve in plot.curves if curve.role == role]
    shared = [curve for curve in others if _group(curve) not in groups]
    found: list[ComparedPoint] = []
    for curve in measured(plot):
        own = [other for other in others if _group(other) == _group(curve)]
        for other in own or shared:
            found += compared(curve, other)
    return found


def compared(curve: Curve, other: Curve) -> Iterator[ComparedPoint]:
    """Compare two curves wherever both have a number at the same place."""
    there = dict(zip(other.x, other.y, strict=True))
    nothing = (math.nan,) * len(curve.x)
    low, high = curve.low or nothing, curve.high or nothing
    for x, y, least, most in zip(curve.x, curve.y, low, high, strict=True):
        if x in there and not math.isnan(y) and not math.isnan(there[x]):
            yield ComparedPoint(curve.name, y, least, most, there[x])


def _group(curve: Curve) -> str:
    return curve.group or curve.name


def _with_interval(points: Sequence[ComparedPoint]) -> list[ComparedPoint]:
    return [point for point in points if not math.isnan(point.low)]


def _all_inside(plot: Plot) -> Figures | None:
    points = _with_interval(beside(plot, "closed-form"))
    is_true = points and all(point.is_inside for point in points)
    return {"n": len(points)} if is_true else None


def _some_inside(plot: Plot) -> Figures | None:
    points = _with_interval(beside(plot, "closed-form"))
    outside = [point for point in points if not point.is_inside]
    if not outside:
        return None
    gap = max(abs(point.y - point.other) for point in outside)
    return {"inside": len(points) - len(outside), "n": len(points), "gap": number(gap)}


CLOSED_FORM: PlotReadings = (
    Reading("The 95 % intervals of all {n} measured values contain the closed form.", _all_inside),
    Reading(
        "The 95 % intervals of {inside} of {n} measured values contain the closed form; the "
        "others are up to {gap} away.",
        _some_inside,
    ),
)
"""Whether what was measured agrees with a closed form, where there is one and intervals are."""


def _never_above(plot: Plot) -> Figures | None:
    points = beside(plot, "bound")
    is_true = points and not any(point.is_above for point in points)
    return {"n": len(points)} if is_true else None


def _above_by_chance(plot: Plot) -> Figures | None:
    points = _with_interval(beside(plot, "bound"))
    above = sum(point.is_above for point in points)
    is_true = above and not any(point.is_surely_above for point in points)
    return {"above": above, "n": len(points)} if is_true else None


def _above(plot: Plot) -> Figures | None:
    points = beside(plot, "bound")
    above = [point for point in points if point.is_above]
    gap = max((point.y - point.other for point in above), default=0.0)
    return {"above": len(above), "n": len(points), "gap": number(gap)} if above else None


BOUND: PlotReadings = (
    Reading("None of {n} measured values is above the bound.", _never_above),
    Reading(
        "{above} of {n} measured values are above the bound, none by more than its interval.",
        _above_by_chance,
    ),
    Reading("{above} of {n} measured values are above the bound, by up to {gap}.", _above),
)
"""Whether what was measured stays below a bound, where one is drawn."""


def _within_baseline(plot: Plot) -> Figures | None:
    points = _with_interval(beside(plot, "baseline"))
    is_true = points and not any(point.is_surely_above for point in points)
    return {"n": len(points)} if is_true else None


def _beyond_baseline(plot: Plot) -> Figures | None:
    points = _with_interval(beside(plot, "baseline"))
    above = [point for point in points if point.is_surely_above]
    gap = max((point.y - point.other for point in above), default=0.0)
    return {"above": len(above), "n": len(points), "gap": number(gap)} if above else None


BASELINE: PlotReadings = (
    Reading("None of {n} is above the baseline by more than its interval.", _within_baseline),
    Reading(
        "{above} of {n} are above the baseline by more than their interval, by up to {gap}.",
        _beyond_baseline,
    ),
)
"""Whether what was measured passes the baseline of its group."""


def against(name: str, *, is_lower_better: bool = False) -> PlotReadings:
    """Return a reading that counts the measured points on the better side of a named line."""
    side = "below" if is_lower_better else "above"

    def points(plot: Plot) -> list[bool]:
        lines = [curve for curve in plot.curves if curve.name == name]
        pairs = [
            one for line in lines for curve in measured(plot) for one in compared(curve, line)
        ]
        return [(one.y < one.other) if is_lower_better else (one.y > one.other) for one in pairs]

    def counted(plot: Plot) -> Figures | None:
        better = points(plot)
        return {"k": sum(better), "n": len(better)} if better else None

    return (Reading(f"{{k}} of {{n}} points are {side} \u201c{name}\u201d.", counted),)


def below(level: float, meaning: str) -> PlotReadings:
    """Return a reading that counts the measured points below a level, and says what it means."""

    def counted(plot: Plot) -> Figures | None:
        y = [value for curve in measured(plot) for value in curve.y if not math.isnan(value)]
        return {"k": sum(value < level for value in y), "n": len(y)} if y else None

    return (Reading(f"{{k}} of {{n}} points are below {number(level)}, {meaning}.", counted),)


def _trend(is_falling: bool) -> Callable[[Plot], Figures | None]:
    def found(plot: Plot) -> Figures | None:
        curves = [curve for curve in measured(plot) if len(curve.x) > 1]
        if not curves or not all(_runs(curve, is_falling) for curve in curves):
            return None
        return {"curves": "The curve" if len(curves) == 1 else f"Each of {len(curves)} curves"}

    return found


def _runs(curve: Curve, is_falling: bool) -> bool:
    """Whether a curve ends higher (lower) than it begins and never turns by more than chance."""
    nothing = curve.y
    rows = list(zip(curve.y, curve.low or nothing, curve.high or nothing, strict=True))
    if any(math.isnan(value) for row in rows for value in row):
        return False
    if is_falling:
        steps = (low <= before for (_, _, before), (_, low, _) in pairwise(rows))
        return all(steps) and rows[-1][2] < rows[0][1]
    steps = (high >= before for (_, before, _), (_, _, high) in pairwise(rows))
    return all(steps) and rows[-1][1] > rows[0][2]


TREND: PlotReadings = (
    Reading("{curves} rises along the axis, within the intervals.", _trend(is_falling=False)),
    Reading("{curves} falls along the axis, within the intervals.", _trend(is_falling=True)),
)
"""Whether all measured curves run one way, as far as their intervals tell."""


def column(table: Table, name: str) -> list[float]:
    """Return the numbers of a column; none if there is no such column."""
    if name not in table.header:
        return []
    at = list(table.header).index(name)
    cells = (row[at] for row in table.rows)
    return [float(cell) for cell in cells if isinstance(cell, int | float) and cell == cell]


def column_range(name: str, sentence: str) -> TableReadings:
    """Return a reading of the least and the largest number of a column.

    Args:
        name: Of the column.
        sentence: With ``{span}`` for both.
    """

    def found(table: Table) -> Figures | None:
        values = column(table, name)
        return {"span": span(values)} if values else None

    return (Reading(sentence, found),)


def column_count(
    name: str, is_meant: Callable[[float], bool], *, some: str, none: str
) -> TableReadings:
    """Return readings that count the rows of which a column meets a condition.

    Args:
        name: Of the column.
        is_meant: The condition.
        some: With ``{k}`` and ``{n}``, where at least one row meets it.
        none: With ``{n}``, where none does.
    """

    def counted(table: Table) -> Figures | None:
        values = column(table, name)
        k = sum(map(is_meant, values))
        return {"k": k, "n": len(values)} if k else None

    def absent(table: Table) -> Figures | None:
        values = column(table, name)
        return {"n": len(values)} if values and not any(map(is_meant, values)) else None

    return (Reading(some, counted), Reading(none, absent))
