"""What the report shows of fake devices in training."""

from collections.abc import Iterator

from noisefloor_sim.pipelines.curves import Axis, Groups, along
from noisefloor_sim.pipelines.figures import beside, is_logarithmic
from noisefloor_sim.report.spec import Plot, Table

_COLUMNS = {
    "fraud.auc": "area under ROC",
    "fraud.found": "found",
    "fraud.false_alarms": "false alarms",
    "pushed_share": "slots of the pushed ad",
}


def fraud_figures(groups: Groups, axis: Axis) -> Iterator[Plot | Table]:
    """Show how far fakes pull, and whether they are found."""
    curves = beside(groups, "fraud.bias", [("fraud.bias_formula", "closed-form")])
    if curves:
        yield Plot(
            "How far fake devices pull the pushed ad in training",
            "Bias of the pushed ad's number in the averaged gradient, in units of the clip. The "
            "more noise the honest add, the more a forged report weighs.",
            axis.label,
            "bias",
            curves,
            log_x=is_logarithmic(groups),
        )
    rows = []
    for curve, by_place in sorted(groups.items()):
        for place in sorted(by_place):
            found = [along({place: by_place[place]}, name)[1] for name in _COLUMNS]
            if found[0]:
                rows.append((curve, place, *(some[0].value if some else None for some in found)))
    if rows:
        yield Table(
            "Detecting the fakes from the tallies of training",
            "Area under the ROC curve and detections at one false alarm in a hundred, over runs "
            "of honest and attacked rounds; an evasive forger gains less and is found less.",
            ("curve", "at", *_COLUMNS.values()),
            rows,
        )
