"""What the report shows of click-through rates."""

from collections.abc import Iterator

from noisefloor_sim.pipelines.base import Metric, PointFindings
from noisefloor_sim.pipelines.curves import Groups, along
from noisefloor_sim.report.spec import Table

MOST_ADS = 20
"""Ads that are shown one by one, over all curves."""

_LISTED = "ctr.ad_"


def rate_tables(groups: Groups) -> Iterator[Table]:
    """Show rates with their intervals, and how well they do; nothing where there are none."""
    yield from _by_ad(groups)
    yield from _scores(groups)


def _by_ad(groups: Groups) -> Iterator[Table]:
    """Show the ads with most impressions, at the far end of each curve."""
    rows = []
    for curve, by_place in sorted(groups.items()):
        for metric in _largest(by_place[max(by_place)][0], max(1, MOST_ADS // len(groups))):
            ad = int(metric.name.removeprefix(_LISTED))
            rows.append((curve, ad, metric.n, metric.value, metric.low, metric.high))
    if rows:
        yield Table(
            "Click-through rates of the ads shown most, at the far end of the axis",
            "Estimated users who clicked, over the impressions that the ad server counted, with "
            "95 % intervals of the protecting coins; noise may take a rate below 0.",
            ("curve", "ad", "impressions", "rate", "low", "high"),
            rows,
        )


def _largest(point: PointFindings, most: int) -> list[Metric]:
    listed = [metric for metric in point.findings.metrics if metric.name.startswith(_LISTED)]
    return sorted(listed, key=lambda metric: -metric.n)[:most]


def _scores(groups: Groups) -> Iterator[Table]:
    """Show error and coverage along the axis."""
    rows = []
    for curve, by_place in sorted(groups.items()):
        places, errors = along(by_place, "ctr_error")
        _, covered = along(by_place, "ctr_coverage")
        for place, error, share in zip(places, errors, covered, strict=True):
            rows.append((curve, place, error.value, share.value))
    if rows:
        yield Table(
            "How good the click-through rates are",
            "Against the rates that a server which saw all clicks of reporting users would have "
            "counted. Intervals know of coins only: where a form drops clicks, or fakes add some, "
            "they cover less than 95 %.",
            ("curve", "at", "root mean square error", "covered"),
            rows,
        )
