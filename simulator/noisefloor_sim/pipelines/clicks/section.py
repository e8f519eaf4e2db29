"""What the report shows of click statistics."""

from collections.abc import Sequence

from noisefloor_sim.pipelines.base import PointFindings
from noisefloor_sim.pipelines.clicks.fraud_figures import FAKES, fraud_figures
from noisefloor_sim.pipelines.clicks.rate_tables import rate_tables
from noisefloor_sim.pipelines.curves import Axis, Groups, along
from noisefloor_sim.pipelines.figures import attack_plots
from noisefloor_sim.population import DEVICES
from noisefloor_sim.report.spec import Curve, Plot, Role, Section, Table

EPSILON = "pipelines.clicks.epsilon"

GAMES = {
    "single_bit": "one click or none, one report",
    "profiles": "the two profiles farthest apart, one report",
    "all_days": "one click or none, all fresh reports linked",
    "vector": "a whole vector of fair coins, one report",
    "row_order": "one click or none, linked by the place of a row",
    "delivered": "bits of delivered ads, with the click rate known",
}

_READINGS = {
    "vector": "Guessing blindly is right once in 2 to the number of ads.",
    "row_order": "Half is a coin toss. If frames kept the order of their rows, a place would be "
    "as good a label as a connection.",
    "delivered": "Most delivered ads are not clicked: naming none is right as often as the "
    "baseline says, and only a report that is worth more moves the guess.",
}
_READING = (
    "Half is a coin toss. Measured success lies on its closed form and below the bound that is "
    "proved."
)
_LEDGERS: tuple[tuple[str, str, Role], ...] = (
    ("spent", "debited", "measured"),
    ("spent_proved", "proved", "bound"),
)


def section(points: Sequence[PointFindings]) -> Section:
    """Describe attacks, utility, their frontier and the budget."""
    axis = Axis.of(points, {EPSILON: "claimed epsilon per report", FAKES: "share of fake devices"})
    groups = axis.grouped(points)
    return Section(
        "Click statistics",
        "Each user reports once a day: a protected vector of clicks, or the delivered ad and a "
        "protected click. The server learns how many users clicked each ad. The adversary is "
        "tested on canaries: devices whose clicks it has to name.",
        (
            *attack_plots(groups, axis, GAMES, _READINGS, usual=_READING),
            _utility_plot(groups, axis),
            *_frontier_plots(groups, axis),
            *rate_tables(groups),
            *fraud_figures(groups, axis),
            _budget_plot(groups, axis),
            _timeline(points, axis),
            _exhausted(groups),
        ),
    )


def _utility_plot(groups: Groups, axis: Axis) -> Plot:
    curves = []
    for variant, by_place in sorted(groups.items()):
        x, found = along(by_place, "error_relative")
        curves.append(Curve(variant, x, [metric.value for metric in found]))
    return Plot(
        "Error of the estimated clicks per ad and day",
        "Root mean square error over the mean number of clicks: below 1 the counts say something. "
        "A form that keeps few clicks levels off: what it drops is missing at any epsilon.",
        axis.label,
        "relative error",
        tuple(curves),
        log_x=axis.key != FAKES,
        log_y=True,
    )


def _frontier_plots(groups: Groups, axis: Axis) -> list[Plot]:
    curves = []
    for variant, by_place in sorted(groups.items()):
        x, errors = along(by_place, "error_relative")
        _, wins = along(by_place, "attack.profiles.success")
        if not wins:
            continue
        labels = [f"{place:g}" for place in x]
        y = [metric.value for metric in errors]
        curves.append(Curve(variant, [metric.value for metric in wins], y, labels=labels))
    if not curves:
        return []
    return [
        Plot(
            "Error against what the adversary gets",
            "To the left and below is better. The number at a point is its "
            f"{'claimed epsilon' if axis.key == EPSILON else axis.word}: the same claim buys very "
            "different protection.",
            "right guesses, the two profiles farthest apart",
            "relative error",
            tuple(curves),
            kind="scatter",
            log_y=True,
        )
    ]


def _budget_plot(groups: Groups, axis: Axis) -> Plot:
    """Show what a mean user has spent by each day, at the far end of each curve."""
    curves = []
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
        "What a mean user has spent",
        f"At the largest {axis.word} of the sweep. Debited is what is claimed; where it lies "
        "below what is proved, the ledger is told too little.",
        "day",
        "epsilon, summed",
        tuple(curves),
        kind="step",
        log_y=True,
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
        "Devices share one budget and pool it when in contact: a user with several of them runs "
        "out a little later if one is often silent.",
        ("curve", "devices", "users", "exhausted", "share"),
        rows,
    )
