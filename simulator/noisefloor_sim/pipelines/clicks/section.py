"""What the report shows of click statistics.

What the report shows of fraud in click statistics.

What the report shows of click-through rates.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from noisefloor_sim.pipelines.api import Metric, PointFindings
from noisefloor_sim.pipelines.attack_figures import attack_plots, attack_tables
from noisefloor_sim.pipelines.clicks.block import ATTACKS
from noisefloor_sim.pipelines.clicks.dropped import UNEVEN
from noisefloor_sim.pipelines.clicks.sample_size import sample_size_tables
from noisefloor_sim.pipelines.plotting import Axis, Groups, mean_rows, metric_along_axis
from noisefloor_sim.report import (
    Cell,
    Curve,
    Figures,
    Plot,
    Reading,
    Role,
    Section,
    Table,
    number,
    readings,
)
from noisefloor_sim.world import DEVICES

MOST_ADS = 20
"""Ads that are shown one by one, over all curves."""

_LISTED = ("kept_rate.ad_", "ctr.ad_")

_SCORES = {
    "kept_share": "clicks kept",
    "dropped_per_kept": "dropped per kept click, estimated",
    "ctr_error": "root mean square error",
    "kept_rate_coverage": "rates of kept clicks covered",
    "ctr_coverage": "click-through covered",
}


def rate_tables(groups: Groups) -> Iterator[Table]:
    """Show rates with their intervals, and how well they do; nothing where there are none."""
    yield from _by_ad(groups)
    yield from _scores(groups)


def _by_ad(groups: Groups) -> Iterator[Table]:
    """Show the ads with most impressions, at the far end of each curve."""
    rows: list[tuple[Cell, ...]] = []
    for curve, by_place in sorted(groups.items()):
        most = max(1, MOST_ADS // len(groups))
        rows += [(curve, *row) for row in _largest(by_place[max(by_place)][0], most)]
    if rows:
        ends = ("low", "high")
        yield Table(
            "Click-through rates of the ads shown most, at the far end of the axis",
            "Estimated users who clicked, over the impressions that the ad server counted, with "
            "95 % intervals: of this population, so that only the protecting draws err. A form "
            "with a limit counts kept clicks: of k ads that a user clicked on a day each counts "
            "limit / k if k is above the limit. The click-through corrects for dropped clicks, "
            "where reports tell how many there are; its interval begins at the kept clicks, and "
            f"ends where an ad loses {UNEVEN:g} times as many for each kept one as a mean ad. No "
            "interval is given where fakes or reports from memory are among the reports.",
            (
                *("curve", "ad", "impressions"),
                *("kept clicks", *(f"kept, {end}" for end in ends)),
                *("click-through", *ends),
            ),
            rows,
            (
                readings.column_count(
                    "click-through",
                    lambda rate: rate < 0,
                    some="The noise takes {k} of {n} click-through rates below 0.",
                    none="No click-through rate is below 0.",
                ),
            ),
        )


def _largest(point: PointFindings, most: int) -> list[tuple[Cell, ...]]:
    """Return the ads shown most, with their rates of either name."""
    found: dict[int, dict[str, Metric]] = {}
    for metric in point.findings.metrics:
        for name in _LISTED:
            if metric.name.startswith(name):
                found.setdefault(int(metric.name.removeprefix(name)), {})[name] = metric
    shown = {ad: next(iter(rates.values())).n for ad, rates in found.items()}
    return [
        (ad, shown[ad], *(cell for name in _LISTED for cell in _cells(found[ad].get(name))))
        for ad in sorted(found, key=lambda ad: -shown[ad])[:most]
    ]


def _cells(rate: Metric | None) -> tuple[Cell, ...]:
    if rate is None:
        return None, None, None
    return rate.value, *(None if math.isnan(end) else end for end in (rate.low, rate.high))


def _scores(groups: Groups) -> Iterator[Table]:
    """Show error and coverage along the axis."""
    rows = [row for row in mean_rows(groups, tuple(_SCORES)) if row[2 + _ERROR] is not None]
    if rows:
        yield Table(
            "How good the click-through rates are",
            "Against the rates that a server which saw all clicks of reporting users would have "
            "counted. A mean over seeds and ads of how many intervals cover what they are of.",
            ("curve", "at", *_SCORES.values()),
            rows,
            (
                readings.column_range(
                    "rates of kept clicks covered",
                    "The share of rates of kept clicks that lie in their intervals is {span}.",
                ),
                readings.column_range(
                    "click-through covered",
                    "The share of click-through rates that lie in theirs is {span}.",
                ),
            ),
        )


_ERROR = list(_SCORES).index("ctr_error")


FAKES = "threat.fakes"

_COLUMNS = {
    "fraud.share": "fakes",
    "fraud.p_value": "p-value of a day",
    "fraud.auc": "area under ROC",
    "fraud.found": "found",
    "fraud.false_alarms": "false alarms",
}


def fraud_figures(groups: Groups, axis: Axis) -> Iterator[Plot | Table]:
    """Show what fakes gained and whether it shows; nothing where there are none."""
    yield from _gain(groups, axis)
    yield from _detection(groups)


def _gain(groups: Groups, axis: Axis) -> Iterator[Plot]:
    curves = []
    for name, by_place in sorted(groups.items()):
        x, found = metric_along_axis(by_place, "fraud.bias")
        if not x:
            continue
        low, high = [metric.low for metric in found], [metric.high for metric in found]
        y = [metric.value for metric in found]
        curves.append(Curve(f"{name}, measured", x, y, low, high, group=name))
        x, found = metric_along_axis(by_place, "fraud.bias_formula")
        y = [metric.value for metric in found]
        curves.append(Curve(f"{name}, formula", x, y, role="closed-form", group=name))
    if curves:
        yield Plot(
            "How far fake devices lift the pushed ad",
            "Estimated share of users who clicked it, minus the share among the honest, beside "
            "the formula of the expected gain.",
            axis.label,
            "bias of the share",
            curves,
            log_x=axis.key != FAKES,
            readings=(readings.CLOSED_FORM, readings.TREND),
        )


def _detection(groups: Groups) -> Iterator[Table]:
    """Show the detector along the axis, where one applies."""
    rows = []
    for name, by_place in sorted(groups.items()):
        places, _ = metric_along_axis(by_place, "fraud.auc")
        tried = {place: by_place[place] for place in places}
        columns = [
            [metric.value for metric in metric_along_axis(tried, column)[1]] for column in _COLUMNS
        ]
        rows += [(name, *row) for row in zip(places, *columns, strict=True)]
    if rows:
        yield Table(
            "Detecting the fakes from the number of all ones in an epoch",
            "Alarm at a p-value below 1 %, on honest and attacked epochs of a day's size; the "
            "area under the ROC curve is 0.5 for a random guess.",
            ("curve", "at", *_COLUMNS.values()),
            rows,
            (readings.column_range("found", "Of attacked epochs {span} are found."),),
        )


EPSILON = "pipelines.clicks.epsilon"

_KEPT, _PERMUTED = "canaries_keep_order true", "canaries_keep_order false"


def _order_links(plot: Plot) -> Figures | None:
    """Compare rows that keep their order with permuted ones, where both were run."""
    kept = [y for one in readings.measured(plot) if _KEPT in one.name for y in one.y]
    permuted = [y for one in readings.measured(plot) if _PERMUTED in one.name for y in one.y]
    if not kept or not permuted or min(kept) <= max(permuted):
        return None
    return {"kept": number(min(kept)), "permuted": number(max(permuted))}


_NOTES = {
    "row_order": "The adversary takes rows at the same place of frames for reports of one device.",
    "delivered": "Bits of real users; clicked ads and others count alike, whatever the click "
    "rate.",
}
_ORDER_READINGS = (
    Reading(
        "Where rows keep their order it is right at {kept} or more, where they are permuted at "
        "{permuted} or less.",
        _order_links,
    ),
)
_LEDGERS: tuple[tuple[str, str, Role], ...] = (
    ("spent", "debited", "measured"),
    ("spent_proved", "proved", "bound"),
)


def report_section(points: Sequence[PointFindings]) -> Section:
    """Describe attacks, utility, their frontier and the budget."""
    axis = Axis.of(points, {EPSILON: "claimed epsilon per report", FAKES: "share of fake devices"})
    groups = axis.grouped(points)
    return Section(
        "Click statistics",
        "Each user reports once a day: a protected vector of clicks, or the delivered ad and a "
        "protected click. The server learns how many users clicked each ad. The adversary is "
        "tested on canaries: devices whose clicks it has to name.",
        (
            *_attacks(groups, axis),
            _utility_plot(groups, axis),
            *_frontier_plots(groups, axis),
            *rate_tables(groups),
            *sample_size_tables(groups),
            *fraud_figures(groups, axis),
            _budget_plot(groups, axis),
            _timeline(points, axis),
            _exhausted(groups),
        ),
    )


def _attacks(groups: Groups, axis: Axis) -> Iterator[Plot | Table]:
    """Draw the attacks; of the order of rows, kept and permuted rows are compared."""
    for plot in attack_plots(groups, axis, ATTACKS, _NOTES):
        is_order = any(_KEPT in curve.name for curve in plot.curves)
        yield replace(plot, readings=(_ORDER_READINGS, *plot.readings)) if is_order else plot
    yield from attack_tables(groups, axis, ATTACKS)


def _utility_plot(groups: Groups, axis: Axis) -> Plot:
    curves = []
    for variant, by_place in sorted(groups.items()):
        x, found = metric_along_axis(by_place, "error_relative")
        curves.append(Curve(variant, x, [metric.value for metric in found]))
    return Plot(
        "Error of the estimated clicks per ad and day",
        "Root mean square error over the mean number of clicks per ad and day.",
        axis.label,
        "relative error",
        tuple(curves),
        log_x=axis.key != FAKES,
        log_y=True,
        readings=(
            readings.below(1.0, "where the error is smaller than the mean count"),
            readings.TREND,
        ),
    )


def _frontier_plots(groups: Groups, axis: Axis) -> list[Plot]:
    curves = []
    for variant, by_place in sorted(groups.items()):
        errors = dict(zip(*metric_along_axis(by_place, "error_relative"), strict=True))
        wins = dict(zip(*metric_along_axis(by_place, "attack.profiles.success"), strict=True))
        both = [place for place in wins if place in errors]  # without reports there is no error
        if not both:
            continue
        labels = [f"{place:g}" for place in both]
        x, y = [wins[place].value for place in both], [errors[place].value for place in both]
        curves.append(Curve(variant, x, y, labels=labels))
    if not curves:
        return []
    return [
        Plot(
            "Error against what the adversary gets",
            "To the left and below is better. The number at a point is its "
            f"{'claimed epsilon' if axis.key == EPSILON else axis.word}.",
            "right guesses, the two profiles farthest apart",
            "relative error",
            tuple(curves),
            kind="scatter",
            log_y=True,
            readings=((Reading("{said}", _same_label),),),
        )
    ]


def _same_label(plot: Plot) -> Figures | None:
    """Find the label at which right guesses differ most between curves."""
    by_label: dict[str, list[float]] = {}
    for curve in plot.curves:
        places: Sequence[float | str] = curve.x
        for label, x in zip(curve.labels or (), places, strict=True):
            if not isinstance(x, str):
                by_label.setdefault(label, []).append(x)
    spans = {one: (min(some), max(some)) for one, some in by_label.items() if len(some) > 1}
    if not spans:
        return None
    label, (least, most) = max(spans.items(), key=lambda one: one[1][1] - one[1][0])
    said = (
        f"At {label} the curves differ most: right guesses of {number(least)} and {number(most)}"
    )
    return {"said": f"{said}."} if most > least else None


def _budget_plot(groups: Groups, axis: Axis) -> Plot:
    """Show what a mean user has spent by each day, at the far end of each curve."""
    curves: list[Curve] = []
    for name, by_place in sorted(groups.items()):
        point = by_place[max(by_place)][0]
        for metric_name, said, role in _LEDGERS:
            found = [
                point.metric(f"{metric_name}.day_{day}") for day in range(point.scenario.days)
            ]
            y = [metric.value for metric in found if metric is not None]
            days = [float(day + 1) for day in range(len(y))]
            curves.append(Curve(f"{name}, {said}", days, y, role=role, group=name))
    return Plot(
        "What a mean user has spent on reports of clicks",
        f"At the largest value of {axis.word} in the sweep. Debited is what is claimed of the "
        "reports that a mean user sent up to a day, beside what is proved of them; of permanent "
        "answers it is proved for clicks that change.",
        "day",
        "epsilon, summed",
        tuple(curves),
        kind="step",
        log_y=True,
        readings=(_LEDGER_READINGS,),
    )


def _debited_too_little(plot: Plot) -> Figures | None:
    points = readings.beside(plot, "bound")
    short = sorted({one.curve.removesuffix(", debited") for one in points if one.y < one.other})
    return {"curves": "; ".join(short)} if short else None


def _debited_enough(plot: Plot) -> Figures | None:
    points = readings.beside(plot, "bound")
    return {} if points and all(one.y >= one.other for one in points) else None


_LEDGER_READINGS = (
    Reading("Less is debited than is proved: {curves}.", _debited_too_little),
    Reading("Nowhere is less debited than is proved.", _debited_enough),
)


def _timeline(points: Sequence[PointFindings], axis: Axis) -> Plot:
    """Show what the devices did on each day, at the far end of the axis."""
    point = max(points, key=axis.place)
    days = [str(day + 1) for day in range(point.scenario.days)]
    curves = []
    for name in ("fresh", "repeated", "refused"):
        found = [point.metric(f"{name}.day_{day}") for day in range(len(days))]
        curves.append(Curve(name, days, [metric.value for metric in found if metric is not None]))
    return Plot(
        "Reports on each day",
        "Fresh reports cost budget; repeated ones are sent again from memory; refused ones found "
        "the budget exhausted.",
        "day",
        "users",
        tuple(curves),
        kind="bar",
    )


def _exhausted(groups: Groups) -> Table:
    """Show who can pay no further report at the end, at the far end of each curve."""
    rows = []
    for name, by_place in sorted(groups.items()):
        point = by_place[max(by_place)][0]
        for count in range(1, len(DEVICES) + 1):
            metric = point.metric(f"exhausted.devices_{count}")
            if metric is not None and metric.n:
                rows.append((name, count, metric.n, int(metric.value), metric.value / metric.n))
    return Table(
        "Who has exhausted the budget",
        "Users who can pay no further report at the end, by the number of their devices. Devices "
        "of a user share one budget.",
        ("curve", "devices", "users", "exhausted", "share"),
        rows,
        (
            readings.column_count(
                "exhausted",
                lambda users: users > 0,
                some="Some have exhausted it in {k} of {n} rows.",
                none="Nobody has exhausted it.",
            ),
        ),
    )
