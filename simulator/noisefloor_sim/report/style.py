"""How the curves of a plot look, in the figure and in its legend.

Colours are those of Okabe and Ito, told apart by every reader; a group has a colour and a marker,
a role has a stroke, so that nothing hangs on colour alone.
"""

from dataclasses import dataclass

from noisefloor_sim.report.spec import Curve, Plot, Role

# Okabe and Ito 2008 without black (lost on a dark page) and yellow (lost on a white one).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
GREY = "#808080"
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x")
PATTERNS = ("", "/", "x", ".", "-", "+")
DASHES: dict[Role, str] = {
    "measured": "solid", "bound": "dash", "closed-form": "dot", "baseline": "solid",
}  # fmt: skip
# Several baselines in one plot are all grey: each has a stroke of its own.
BASELINE_DASHES = ("solid", "longdashdot", "longdash", "dashdot")
_MOST_BARS = 60  # more are drawn as an area with stairs


@dataclass(frozen=True, slots=True)
class Style:
    """How one curve looks, in the figure and in the legend."""

    colour: str
    dash: str
    symbol: str
    pattern: str
    is_bar: bool
    has_line: bool
    has_marker: bool
    has_band: bool
    has_area: bool
    is_broad: bool


def styles(plot: Plot) -> list[Style]:
    """Give every group a colour and a marker in the order they come; baselines stay grey."""
    names = [_group(curve) for curve in plot.curves if curve.role != "baseline"]
    greys = [_group(curve) for curve in plot.curves if curve.role == "baseline"]
    places = {name: place for place, name in enumerate(dict.fromkeys(greys))}
    places |= {name: place for place, name in enumerate(dict.fromkeys(names))}
    return [_style(plot, curve, places[_group(curve)]) for curve in plot.curves]


def _group(curve: Curve) -> str:
    return curve.group or curve.name


def _is_dense(plot: Plot) -> bool:
    return plot.kind == "bar" and max(len(curve.x) for curve in plot.curves) > _MOST_BARS


def _style(plot: Plot, curve: Curve, place: int) -> Style:
    is_measured, is_grey = curve.role == "measured", curve.role == "baseline"
    is_data, is_dense = is_measured or is_grey, _is_dense(plot)
    is_bar = is_data and plot.kind == "bar" and not is_dense
    is_cloud = is_data and plot.kind == "scatter"
    has_line = not is_bar and not is_cloud
    is_marked = (is_measured and not is_dense) or is_cloud or len(curve.x) == 1
    return Style(
        colour=GREY if is_grey else COLOURS[place % len(COLOURS)],
        dash=BASELINE_DASHES[place % len(BASELINE_DASHES)] if is_grey else DASHES[curve.role],
        symbol=SYMBOLS[place % len(SYMBOLS)],
        pattern="" if is_grey else PATTERNS[place % len(PATTERNS)],
        is_bar=is_bar,
        has_line=has_line,
        has_marker=is_marked and not is_bar,
        has_band=curve.low is not None,
        has_area=has_line and (curve.low is not None or (is_data and is_dense)),
        is_broad=has_line and is_measured and _has_companion(plot, curve),
    )


def _has_companion(plot: Plot, curve: Curve) -> bool:
    """Whether a closed form of the same group may lie on the very same line."""
    return any(
        other.role == "closed-form" and _group(other) == _group(curve) for other in plot.curves
    )
