"""What the report shows of the auction: what each regime gains and sells, and a bid request."""

from collections.abc import Iterator, Sequence

from noisefloor_sim.pipelines import plotting
from noisefloor_sim.pipelines.ads.market import example_lines
from noisefloor_sim.pipelines.ads.sales import REGIMES
from noisefloor_sim.pipelines.api import PointFindings
from noisefloor_sim.report import (
    Cell,
    Curve,
    Figures,
    Plot,
    Reading,
    Table,
    number,
    readings,
)

_NAMES = {
    "protected": "released ad and page",
    "symbol": "released ad alone",
    "contextual": "page alone",
    "random": "nothing: at random",
}
_TITLES = {
    "value": "What a thousand impressions are worth to those who win them",
    "revenue": "What a thousand impressions earn",
    "relevance": "How much people like the ads that win",
    "fill": "Which share of the impressions is sold",
}


def market_figures(groups: plotting.Groups, axis: plotting.Axis) -> Iterator[Plot | Table]:
    """Show what impressions are worth by what bidders get, and what they get."""
    for curve, by_place in sorted(groups.items()):
        curves = _shares(by_place)
        if curves:
            yield Plot(
                f"Share of tracking's gain that bidders keep: {curve}",
                "What ads are worth above random ad choice, which shows every ad as often and to "
                "people drawn at random, over what it is with tracking. By what bidders get of an "
                "impression; bands are 95 % intervals over users, given what bidders have learnt.",
                axis.label,
                "share of tracking's gain",
                curves,
                log_x=plotting.is_logarithmic(groups),
                readings=_SHARE_READINGS,
            )
    yield from _gains(groups)
    for name, title in _TITLES.items():
        yield from _by_regime(groups, name, title)
    yield from _example(groups)


def _shares(by_place: dict[float, list[PointFindings]]) -> list[Curve]:
    curves = []
    for regime, name in _NAMES.items():
        x, found = plotting.metric_along_axis(by_place, f"auction.share.{regime}")
        if x:
            y, ends = [metric.value for metric in found], plotting.interval_ends(found)
            curves.append(Curve(name, x, y, *ends))
    return curves


def _curve(plot: Plot, regime: str) -> Curve | None:
    return next((curve for curve in plot.curves if curve.name == _NAMES[regime]), None)


def _listed(places: Sequence[object]) -> str:
    return ", ".join(number(place) if isinstance(place, float) else str(place) for place in places)


def _negative(plot: Plot) -> Figures | None:
    curve = _curve(plot, "protected")
    found = [] if curve is None else [x for x, y in zip(curve.x, curve.y, strict=True) if y < 0]
    return {"places": _listed(found)} if found else None


def _never_negative(plot: Plot) -> Figures | None:
    curve = _curve(plot, "protected")
    is_true = curve is not None and all(y >= 0 for y in curve.y)
    return {"n": len(curve.x)} if curve is not None and is_true else None


def _beside_page(plot: Plot) -> Figures | None:
    own, page = _curve(plot, "protected"), _curve(plot, "contextual")
    if own is None or page is None:
        return None
    pairs = list(readings.compared(own, page))
    below = [x for x, pair in zip(own.x, pairs, strict=True) if pair.y < pair.other]
    behind = f"; less at {_listed(below)}" if below else ""
    return {"k": len(pairs) - len(below), "n": len(pairs), "behind": behind}


def _around_zero(plot: Plot) -> Figures | None:
    curve = _curve(plot, "random")
    if curve is None or curve.low is None or curve.high is None:
        return None
    ends = list(zip(curve.low, curve.high, strict=True))
    return {"k": sum(low <= 0 <= high for low, high in ends), "n": len(ends)}


_SHARE_READINGS = (
    (
        Reading("The protected gain is negative at {places}.", _negative),
        Reading("The protected gain is nowhere negative, at {n} of {n} places.", _never_negative),
    ),
    (
        Reading(
            "With released ad and page bidders gain at least as much as with the page alone at "
            "{k} of {n} places{behind}.",
            _beside_page,
        ),
    ),
    (Reading("The interval of random ad choice contains 0 at {k} of {n}.", _around_zero),),
)

_COLUMNS = {
    "auction.gain.tracking": "tracking's gain",
    "auction.gain.protected": "protected gain",
    "auction.lead": "lead over the page",
    "auction.gain.random": "random's gain",
    "auction.context_r2": "R² of the page",
    "auction.symbol_r2": "R² of the released ad",
    "auction.panel.reports": "reports learnt from",
    "auction.coverage": "coverage of intervals",
}
_WITH_INTERVAL = ("auction.lead", "auction.gain.random")


def _gains(groups: plotting.Groups) -> Iterator[Table]:
    """Show gains for a thousand impressions, and how much page and released ad say."""
    rows: list[tuple[Cell, ...]] = []
    for curve, by_place in sorted(groups.items()):
        for place in sorted(by_place):
            cells: list[Cell] = []
            for name in _COLUMNS:
                _, found = plotting.metric_along_axis({place: by_place[place]}, name)
                if not found:
                    break
                metric = found[0]
                ends = f" [{number(metric.low)}, {number(metric.high)}]"
                is_range = name in _WITH_INTERVAL
                cells.append(f"{number(metric.value)}{ends}" if is_range else metric.value)
            else:
                rows.append((curve, place, *cells))
    if rows:
        yield Table(
            "What bidders gain over random ad choice, for a thousand impressions",
            "The lead is that of released ad and page over the page alone, user by user, with its "
            "95 % interval. R² is the share of the variance of likings that the page, or the "
            "released ad, explains. Bidders learnt from protected reports of other users, on the "
            "days before the sale. Coverage is how often the interval of a random half of the "
            "users covers the figure of all: 0.95 is what is claimed of it.",
            ("curve", "at", *_COLUMNS.values()),
            rows,
            (
                readings.column_range("R² of the page", "The page explains {span} of likings."),
                readings.column_range("coverage of intervals", "Intervals cover in {span}."),
            ),
        )


def _by_regime(groups: plotting.Groups, name: str, title: str) -> Iterator[Table]:
    metrics = [f"auction.{regime}.{name}" for regime in REGIMES]
    rows = [row for row in plotting.mean_rows(groups, metrics) if row[2] is not None]
    if rows:
        yield Table(
            title,
            "The same impressions, bidders and random draws; only what bidders get differs. "
            "What floors, second prices and budgets do is in these figures: they are not what "
            "knowing more gains.",
            ("curve", "at", "tracking", *_NAMES.values()),
            rows,
        )


def _example(groups: plotting.Groups) -> Iterator[Table]:
    """Show one bid request of the first point that has any, as it was sent."""
    points = [it for by_place in groups.values() for some in by_place.values() for it in some]
    for point in points:
        found = [point.metric(f"auction.request.{name}") for name in ("day", "symbol", "topic")]
        day, symbol, topic = (-1 if metric is None else int(metric.value) for metric in found)
        if day >= 0:
            lines = example_lines(point.scenario, day, symbol, topic)
            yield Table(
                "A bid request, as it leaves for bidders",
                "In the shape of OpenRTB 2.6, with no field for anybody: the one segment is the "
                "ad that the device released, beside the epsilon it was released at. Every field "
                "that is not listed is refused, here and by every reader.",
                ("line", "JSON"),
                list(enumerate(lines, start=1)),
            )
            return
