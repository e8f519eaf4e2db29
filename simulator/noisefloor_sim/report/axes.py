"""Axes of a figure: which points can be drawn, how far an axis reaches, where its ticks are."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from noisefloor_sim.report.spec import Curve, Plot
from noisefloor_sim.report.wording import clean, literal, number

_MOST_GRID_TICKS = 8
_CLOSEST_TICKS = 0.085  # of the axis: labels of four signs then stay apart on a phone
_LONGEST_TICK = 16  # signs; the whole name is in the box at the pointer and among the numbers
_MOST_NUMBERED = 10  # ticks of categories that are numbered
_SIGNS_IN_A_ROW = 38  # on a phone; more are set aslant
_PADDING = 0.04  # of the axis, at either end
_LABEL_PADDING = 0.17  # room for the text beside the outermost points


@dataclass(frozen=True, slots=True)
class DrawablePoints:
    """What of a curve can be drawn; ``None`` is a gap."""

    x: Sequence[float | str | None]
    y: Sequence[float | None]
    low: Sequence[float | None] | None
    high: Sequence[float | None] | None
    is_category: bool

    def pairs(self) -> Iterable[tuple[float | str | None, float | None]]:
        """Return x and y together."""
        return zip(self.x, self.y, strict=True)


def drawable(plot: Plot, curve: Curve) -> DrawablePoints:
    """Turn what an axis cannot show into gaps; a band may still reach the foot of a log axis."""
    foot = y_range(plot)[0] if plot.log_y else -math.inf

    def band(ends: Sequence[float] | None) -> list[float | None] | None:
        if ends is None:
            return None
        return [None if math.isnan(end) else _finite(max(end, foot)) for end in ends]

    return DrawablePoints(
        x=[value if isinstance(value, str) else _shown(value, plot.log_x) for value in curve.x],
        y=[_shown(value, plot.log_y) for value in curve.y],
        low=band(curve.low),
        high=band(curve.high),
        is_category=is_category(plot),
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _shown(value: float, is_log: bool) -> float | None:
    return None if is_log and value <= 0 else _finite(value)


def is_category(plot: Plot) -> bool:
    """Whether the x axis has names instead of numbers."""
    return any(isinstance(value, str) for curve in plot.curves for value in curve.x)


def _numbers(values: Iterable[object], is_log: bool) -> list[float]:
    """Return the distinct numbers that the axis can show, sorted."""
    floats = {float(value) for value in values if isinstance(value, int | float)}
    return sorted(value for value in floats if _shown(value, is_log) is not None)


def y_range(plot: Plot) -> tuple[float, float]:
    """Return the ends of the y axis: of all curves, and of bands so far as they can be shown."""
    ends = [_all_y(curve) for curve in plot.curves]
    values = _numbers((value for some in ends for value in some), plot.log_y)
    return _padded(values, plot.log_y)


def _all_y(curve: Curve) -> list[float]:
    return [*curve.y, *(curve.low or ()), *(curve.high or ())]


def _padded(values: Sequence[float], is_log: bool, air: float = _PADDING) -> tuple[float, float]:
    """Return the least and the largest with a little air; 1 to 10 if there is nothing."""
    if not values:
        return (1.0, 10.0)
    low, high = values[0], values[-1]
    if is_log:
        factor = max((high / low) ** air, 1.12)
        return (low / factor, high * factor)
    width = (high - low or abs(high) or 1.0) * air
    return (low - width, high + width)


def x_axis(plot: Plot) -> dict[str, object]:
    """Return the x axis; a sweep over a few values has its ticks there."""
    axis: dict[str, object] = {"automargin": True, "fixedrange": False, "ticks": "outside"}
    if is_category(plot):
        return axis | _category_axis(plot)
    values = _numbers((x for curve in plot.curves for x in curve.x), plot.log_x)
    if plot.log_x:
        has_labels = any(curve.labels for curve in plot.curves)
        ends = _padded(values, True, air=_LABEL_PADDING if has_labels else _PADDING)
        ticks = values if _is_grid(values) else log_ticks(*ends)
        return axis | _log_axis(ends, ticks)
    axis |= {"type": "linear", "zeroline": False, "separatethousands": True}
    if any(curve.labels for curve in plot.curves):
        axis["range"] = _padded(values, False, air=_LABEL_PADDING)
    if plot.x_tick is not None:
        return axis | {"tick0": 0, "dtick": plot.x_tick}
    return axis | {"nticks": 7}


def _category_axis(plot: Plot) -> dict[str, object]:
    """Name each category, at a fixed slant: plotly.js looks for one in circles otherwise."""
    names = [clean(str(x)) for curve in plot.curves for x in curve.x]
    names = list(dict.fromkeys(names))
    if all(name.isdigit() for name in names):  # days: the names in between are not missed
        names = names[:: -(-len(names) // _MOST_NUMBERED)]
    short = [_shortened(name) for name in names]
    return {
        "type": "category",
        "fixedrange": True,
        "tickmode": "array",
        "tickvals": [literal(name) for name in names],
        "ticktext": [literal(name) for name in short],
        "tickangle": 0 if sum(len(name) + 2 for name in short) <= _SIGNS_IN_A_ROW else -35,
    }


def _shortened(name: str) -> str:
    """Leave out the middle of a long name: names of one family differ at their ends."""
    if len(name) <= _LONGEST_TICK:
        return name
    half = _LONGEST_TICK // 2
    return f"{name[:half]}\N{HORIZONTAL ELLIPSIS}{name[-half + 1 :]}"


def y_axis(plot: Plot) -> dict[str, object]:
    """Return the y axis; it starts at zero where that costs little room."""
    axis: dict[str, object] = {"automargin": True, "fixedrange": False}
    if plot.log_y:
        ends = y_range(plot)
        return axis | _log_axis(ends, log_ticks(*ends))
    values = _numbers((value for curve in plot.curves for value in _all_y(curve)), False)
    from_zero = bool(values) and 0 <= values[0] <= values[-1] / 4
    return axis | {
        "type": "linear",
        "rangemode": "tozero" if from_zero else "normal",
        "separatethousands": True,
        "exponentformat": "none" if max(values, default=0) < 1e9 else "power",
        "nticks": 6,
    }


def _log_axis(ends: tuple[float, float], ticks: Sequence[float]) -> dict[str, object]:
    return {
        "type": "log",
        "range": [round(math.log10(end), 6) for end in ends],
        "tickmode": "array",
        "tickvals": list(ticks),
        "ticktext": [number(tick) for tick in ticks],
    }


def _is_grid(values: Sequence[float]) -> bool:
    """Whether so few values lie so far apart that each can have its tick."""
    if not 1 < len(values) <= _MOST_GRID_TICKS:
        return len(values) == 1
    logs = [math.log10(value) for value in values]
    steps = [right - left for left, right in pairwise(logs)]
    return min(steps) >= _CLOSEST_TICKS * (logs[-1] - logs[0])


def log_ticks(low: float, high: float) -> list[float]:
    """Return round numbers between the ends: powers of ten, or 1, 2, 5, or all digits.

    The coarsest that gives three; the ends themselves if even all digits give less than two.
    """
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    every = max(1, math.ceil((last - first) / 7))
    inside: list[float] = []
    for digits, step in (((1,), every), ((1, 2, 5), 1), (range(1, 10), 1)):
        powers = range(first - first % step, last + 1, step)
        ticks = (float(f"{digit}e{power}") for power in powers for digit in digits)
        inside = [tick for tick in ticks if low <= tick <= high]
        if len(inside) >= 3:
            return inside
    return inside if len(inside) == 2 else [low, high]
