"""From a Plot to the JSON that plotly.js draws.

Titles, axis labels and legend are HTML around the figure: they wrap on a phone, and never cover
data. plotly.js reads a little markup in every text; ``words.literal`` takes that away.

How the curves of a plot look, in the figure and in its legend.

Colours are those of Okabe and Ito, distinct for every reader; a group has a colour and a marker,
a role has a stroke, so that nothing hangs on colour alone.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from noisefloor_sim.report import axes
from noisefloor_sim.report.spec import Curve, Plot, Role
from noisefloor_sim.report.wording import literal

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
class CurveStyle:
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


def styles(plot: Plot) -> list[CurveStyle]:
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


def _style(plot: Plot, curve: Curve, place: int) -> CurveStyle:
    is_measured, is_grey = curve.role == "measured", curve.role == "baseline"
    is_data, is_dense = is_measured or is_grey, _is_dense(plot)
    is_bar = is_data and plot.kind == "bar" and not is_dense
    is_cloud = is_data and plot.kind == "scatter"
    has_line = not is_bar and not is_cloud
    is_marked = (is_measured and not is_dense) or is_cloud or len(curve.x) == 1
    return CurveStyle(
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


Json = dict[str, object]

# Drawn first to last: a fine dotted line is seen on a broad solid one, not beneath it.
_ORDER: tuple[Role, ...] = ("baseline", "measured", "closed-form", "bound")
_MOST_MARKERS = 14  # on one line; of a longer one, no more are shown
_SIGNIFICANT = ",.4~r"


def figure(plot: Plot) -> Json:
    """Return data and layout; colours of text and grid are set by the page, which has a theme."""
    has_labels = any(curve.labels for curve in plot.curves)
    x_axis, y_axis = axes.x_axis(plot), axes.y_axis(plot)
    pairs = list(zip(plot.curves, styles(plot), strict=True))
    data: list[Json] = []
    for place in sorted(range(len(pairs)), key=lambda place: _layer(*pairs[place])):
        data += _traces(plot, *pairs[place], place)
    bands = [trace for trace in data if "hoverinfo" in trace]
    layout: Json = {
        "autosize": True,
        "showlegend": False,
        "hovermode": "closest",
        "barmode": "group",
        "bargap": 0.2,
        "margin": {"l": 8, "r": 36 if has_labels else 14, "t": 10, "b": 8, "pad": 0},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "xaxis": x_axis,
        "yaxis": y_axis,
    }
    return {
        "data": bands + [trace for trace in data if "hoverinfo" not in trace],
        "layout": layout,
    }


def _layer(curve: Curve, style: CurveStyle) -> int:
    """Return where a curve is drawn: bars lowest and in their order, then by role."""
    return -1 if style.is_bar else _ORDER.index(curve.role)


def _traces(plot: Plot, curve: Curve, style: CurveStyle, place: int) -> list[Json]:
    points = axes.drawable(plot, curve)
    x = [literal(value) if isinstance(value, str) else value for value in points.x]
    trace: Json = {
        "meta": place,  # the legend hides and shows all traces of one curve by this
        "name": literal(curve.name),
        "x": x,
        "y": points.y,
        "hovertemplate": _hover(plot, points, has_labels=bool(curve.labels)),
    }
    if points.low is not None and points.high is not None:
        trace["customdata"] = list(zip(points.low, points.high, strict=True))
    is_thin = not style.has_line or len(curve.x) == 1
    if style.has_band and is_thin:
        trace["error_y"] = _error_bars(points, style)
    trace |= _bar(style) if style.is_bar else _line(plot, curve, style)
    has_area = style.has_band and not is_thin
    return [*(_band(plot, points, x, style, place) if has_area else []), trace]


def _bar(style: CurveStyle) -> Json:
    pattern = {"shape": style.pattern, "fillmode": "overlay", "size": 6, "solidity": 0.2}
    return {"type": "bar", "marker": {"color": style.colour, "pattern": pattern}}


def _line(plot: Plot, curve: Curve, style: CurveStyle) -> Json:
    parts = {"lines": style.has_line, "markers": style.has_marker, "text": curve.labels}
    marker = {"color": style.colour, "symbol": style.symbol, "size": 8}
    if style.has_line:
        marker["maxdisplayed"] = _MOST_MARKERS
    trace: Json = {
        "type": "scatter",
        "mode": "+".join(name for name, is_there in parts.items() if is_there),
        "connectgaps": False,
        "cliponaxis": False,
        "line": {
            "color": _pale(style.colour, 0.4) if style.is_broad else style.colour,
            "dash": style.dash,
            "width": 6 if style.is_broad else 2,
            "shape": _shape(plot),
        },
        "marker": marker,
    }
    if style.has_area and not style.has_band:
        trace |= {"fill": "tozeroy", "fillcolor": _pale(style.colour, 0.2)}
    return trace | (_labels(curve, style) if curve.labels else {})


def _labels(curve: Curve, style: CurveStyle) -> Json:
    """Set the labels beside the line, whether it rises or falls, groups on opposite sides."""
    is_falling = _falls(curve)
    is_above = SYMBOLS.index(style.symbol) % 2 == 0
    side = "right" if is_falling is is_above else "left"
    return {
        "text": [literal(text) for text in curve.labels or ()],
        "textposition": f"{'top' if is_above else 'bottom'} {side}",
    }


def _falls(curve: Curve) -> bool:
    (x, y), (end_x, end_y) = ((curve.x[at], curve.y[at]) for at in (0, -1))
    if isinstance(x, str) or isinstance(end_x, str):
        return end_y < y
    return (end_y - y) * (end_x - x) < 0


def _pale(colour: str, opacity: float) -> str:
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"


def _shape(plot: Plot) -> str:
    if plot.kind == "step":
        return "hv"
    return "hvh" if plot.kind == "bar" else "linear"


def _band(
    plot: Plot, points: axes.DrawablePoints, x: Sequence[object], style: CurveStyle, place: int
) -> list[Json]:
    """Return the lower edge and the area from it up to the upper one."""
    edge: Json = {
        "type": "scatter",
        "meta": place,
        "mode": "lines",
        "x": x,
        "line": {"width": 0, "shape": _shape(plot)},
        "hoverinfo": "skip",
    }
    area = {"fill": "tonexty", "fillcolor": _pale(style.colour, 0.2)}
    return [edge | {"y": points.low}, edge | area | {"y": points.high}]


def _error_bars(points: axes.DrawablePoints, style: CurveStyle) -> Json:
    triples = list(zip(points.y, points.low or (), points.high or (), strict=True))

    def arm(ends: Sequence[tuple[float | None, float | None]]) -> list[float]:
        return [0.0 if high is None or low is None else max(high - low, 0.0) for low, high in ends]

    return {
        "type": "data",
        "symmetric": False,
        "array": arm([(y, high) for y, _, high in triples]),
        "arrayminus": arm([(low, y) for y, low, _ in triples]),
        "thickness": 1.5,
        "width": 3,
    } | ({} if style.is_bar else {"color": style.colour})


def _hover(plot: Plot, points: axes.DrawablePoints, *, has_labels: bool) -> str:
    """Return plotly's template of the box at the pointer; its names are escaped twice."""
    x = "%{x}" if points.is_category else f"%{{x:{_SIGNIFICANT}}}"
    lines = [
        f"<b>%{{fullData.name}}</b>{', at %{text}' if has_labels else ''}",
        f"{_in_template(plot.x_label)}: {x}",
        f"{_in_template(plot.y_label)}: %{{y:{_SIGNIFICANT}}}",
    ]
    if points.low is not None:
        ends = (f"%{{customdata[{place}]:{_SIGNIFICANT}}}" for place in (0, 1))
        lines.append("between " + " and ".join(ends))
    return "<br>".join(lines) + "<extra></extra>"


def _in_template(text: str) -> str:
    return literal(text).replace("%", "&#37;").replace("{", "&#123;")


def gaps(plot: Plot) -> str:
    """Say which points are not drawn; empty if all are."""
    skipped = [
        f"{lost} of {len(curve.x)} points of \N{LEFT DOUBLE QUOTATION MARK}{curve.name}"
        "\N{RIGHT DOUBLE QUOTATION MARK}"
        for curve in plot.curves
        if (lost := sum(y is None or x is None for x, y in axes.drawable(plot, curve).pairs()))
    ]
    rule = "infinite, unknown or not positive on a logarithmic axis"
    return f"Not drawn: {', '.join(skipped)} ({rule})." if skipped else ""


def is_small(plot: Plot, most: int = 120) -> bool:
    """Whether the numbers of a plot can be listed beneath it."""
    return sum(len(curve.x) for curve in plot.curves) <= most and not all(
        math.isnan(y) for curve in plot.curves for y in curve.y
    )
