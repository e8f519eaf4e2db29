"""What the report shows of fraud in click statistics."""

from collections.abc import Iterator

from noisefloor_sim.pipelines.curves import Axis, Groups, along
from noisefloor_sim.report.spec import Curve, Plot, Table

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
        x, found = along(by_place, "fraud.bias")
        if not x:
            continue
        low, high = [metric.low for metric in found], [metric.high for metric in found]
        y = [metric.value for metric in found]
        curves.append(Curve(f"{name}, measured", x, y, low, high, group=name))
        x, found = along(by_place, "fraud.bias_formula")
        y = [metric.value for metric in found]
        curves.append(Curve(f"{name}, formula", x, y, role="closed-form", group=name))
    if curves:
        yield Plot(
            "How far fake devices lift the pushed ad",
            "Estimated share of users who clicked it, minus the share among the honest. A forged "
            "report weighs the more, the more noise the honest add; a lie about the clicks gains "
            "the share of fakes at any epsilon.",
            axis.label,
            "bias of the share",
            curves,
            log_x=axis.key != FAKES,
        )


def _detection(groups: Groups) -> Iterator[Table]:
    """Show the detector along the axis, where one applies."""
    rows = []
    for name, by_place in sorted(groups.items()):
        places, _ = along(by_place, "fraud.auc")
        tried = {place: by_place[place] for place in places}
        columns = [[metric.value for metric in along(tried, column)[1]] for column in _COLUMNS]
        rows += [(name, *row) for row in zip(places, *columns, strict=True)]
    if rows:
        yield Table(
            "Detecting the fakes from the number of all ones in an epoch",
            "Alarm at a p-value below 1 %, on honest and attacked epochs of a day's size; the "
            "area under the ROC curve is 0.5 for a coin. Fakes that keep the number of ones of "
            "an honest report are not found.",
            ("curve", "at", *_COLUMNS.values()),
            rows,
        )
