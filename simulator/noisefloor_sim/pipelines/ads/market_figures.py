"""What the report shows of the auction: three regimes, and a bid request."""

from collections.abc import Iterator

from noisefloor_sim.pipelines.ads.bid_requests import example_lines
from noisefloor_sim.pipelines.ads.sales import REGIMES
from noisefloor_sim.pipelines.curves import Axis, Groups, along
from noisefloor_sim.pipelines.figures import band, is_logarithmic
from noisefloor_sim.report.spec import Curve, Plot, Table

_TITLES = {
    "revenue": ("What a thousand impressions earn", "revenue per thousand"),
    "value": ("What they are worth to those who win them", "value per thousand"),
    "relevance": ("How much people like the ads that win", "mean liking"),
    "fill": ("How many impressions are sold", "share sold"),
}


def market_figures(groups: Groups, axis: Axis) -> Iterator[Plot | Table]:
    """Show what impressions are worth by what bidders are told, and what they are told."""
    for name, (title, label) in _TITLES.items():
        curves = _regimes(groups, name)
        if curves:
            yield Plot(
                title,
                "The same impressions, bidders and coins; only what bidders are told differs. "
                "Tracking tells all, context only the page; between them lies what devices "
                "released.",
                axis.label,
                label,
                curves,
                log_x=is_logarithmic(groups),
            )
    yield from _example(groups)


def _regimes(groups: Groups, name: str) -> list[Curve]:
    """Return the protected regime of each curve, and the other two of the first."""
    curves = []
    for curve, by_place in sorted(groups.items()):
        for regime in REGIMES:
            x, found = along(by_place, f"auction.{regime}.{name}")
            y = [metric.value for metric in found]
            if x and regime == "protected":
                curves.append(Curve(f"{curve}, protected", x, y, *band(found)))
            elif x and curve == min(groups):
                curves.append(Curve(regime, x, y, role="baseline"))
    return curves


def _example(groups: Groups) -> Iterator[Table]:
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
                "that is not listed is refused, here and by whoever reads it.",
                ("line", "JSON"),
                list(enumerate(lines, start=1)),
            )
            return
