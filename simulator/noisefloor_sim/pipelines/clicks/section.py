"""What the report shows of click statistics."""

from collections.abc import Sequence

import numpy as np

from noisefloor_sim.pipelines.base import Metric, PointFindings
from noisefloor_sim.pipelines.clicks.block import block_of
from noisefloor_sim.report.spec import Curve, Plot, Role, Section

GAMES = {
    "single_bit": "one click or none, one report",
    "profiles": "the two profiles farthest apart, one report",
    "all_days": "one click or none, all fresh reports linked",
    "vector": "a whole vector of fair coins, one report",
    "row_order": "one click or none, linked by the place of a row",
    "delivered": "bits of delivered ads, with the click rate known",
}

_THEORY: tuple[tuple[str, Role], ...] = (
    ("closed_form", "closed-form"),
    ("bound", "bound"),
    ("prior", "baseline"),
)
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

Groups = dict[str, dict[float, list[PointFindings]]]


def section(points: Sequence[PointFindings]) -> Section:
    """Describe attacks, utility, their frontier and the budget."""
    groups = _grouped(points)
    shown = [
        _attack_plot(name, what, curves)
        for name, what in GAMES.items()
        if (curves := _attack_curves(name, groups))
    ]
    return Section(
        "Click statistics",
        "Each user reports a protected vector of clicks once a day; the server learns how many "
        "users clicked each ad. The adversary is tested on canaries: devices whose clicks it has "
        "to name.",
        (
            *shown,
            _utility_plot(groups),
            *_frontier_plots(groups),
            _budget_plot(points),
            _timeline(points),
        ),
    )


def _grouped(points: Sequence[PointFindings]) -> Groups:
    """Return the points by what was swept besides epsilon and seed, then by epsilon."""
    groups: Groups = {}
    for point in points:
        epsilon = block_of(point.scenario).epsilon
        groups.setdefault(_label(point), {}).setdefault(epsilon, []).append(point)
    return groups


def _label(point: PointFindings) -> str:
    """Name a curve after the variant and the last words of the other swept keys."""
    others = [
        f"{key.rpartition('.')[2]} {value}".lower()
        for key, value in point.settings
        if key not in ("variant", "seed", "pipelines.clicks.epsilon")
    ]
    return ", ".join([point.scenario.variant, *others])


def _mean(points: Sequence[PointFindings], name: str) -> Metric | None:
    """Return a metric averaged over replicates, with the interval's half-width shrunk to match."""
    found = [metric for point in points if (metric := point.metric(name)) is not None]
    if not found:
        return None
    value = float(np.mean([metric.value for metric in found]))
    half = float(np.mean([metric.high - metric.low for metric in found])) / 2 / len(found) ** 0.5
    return Metric(name, value, value - half, value + half, sum(metric.n for metric in found))


def _curve(
    by_epsilon: dict[float, list[PointFindings]], name: str
) -> tuple[list[float], list[Metric]]:
    pairs = [(epsilon, _mean(by_epsilon[epsilon], name)) for epsilon in sorted(by_epsilon)]
    kept = [(epsilon, metric) for epsilon, metric in pairs if metric is not None]
    return [epsilon for epsilon, _ in kept], [metric for _, metric in kept]


def _attack_curves(game: str, groups: Groups) -> list[Curve]:
    curves = []
    for variant, by_epsilon in sorted(groups.items()):
        x, found = _curve(by_epsilon, f"attack.{game}.success")
        if not x:
            continue
        low, high = [metric.low for metric in found], [metric.high for metric in found]
        y = [metric.value for metric in found]
        curves.append(Curve(f"{variant}, measured", x, y, low, high, group=variant))
        for name, role in _THEORY:
            x, found = _curve(by_epsilon, f"attack.{game}.{name}")
            if x:
                y = [metric.value for metric in found]
                label = f"{variant}, {role.replace('-', ' ')}"
                curves.append(Curve(label, x, y, role=role, group=variant))
    return curves


def _attack_plot(game: str, what: str, curves: Sequence[Curve]) -> Plot:
    return Plot(
        f"How often the adversary is right: {what}",
        _READINGS.get(game, _READING),
        "claimed epsilon per report",
        "right guesses",
        tuple(curves),
        log_x=True,
    )


def _utility_plot(groups: Groups) -> Plot:
    curves = []
    for variant, by_epsilon in sorted(groups.items()):
        x, found = _curve(by_epsilon, "error_relative")
        curves.append(Curve(variant, x, [metric.value for metric in found]))
    return Plot(
        "Error of the estimated clicks per ad and day",
        "Root mean square error over the mean number of clicks: below 1 the counts say something. "
        "A form that keeps few clicks levels off: what it drops is missing at any epsilon.",
        "claimed epsilon per report",
        "relative error",
        tuple(curves),
        log_x=True,
        log_y=True,
    )


def _frontier_plots(groups: Groups) -> list[Plot]:
    curves = []
    for variant, by_epsilon in sorted(groups.items()):
        x, errors = _curve(by_epsilon, "error_relative")
        _, wins = _curve(by_epsilon, "attack.profiles.success")
        if not wins:
            continue
        labels = [f"{epsilon:g}" for epsilon in x]
        y = [metric.value for metric in errors]
        curves.append(Curve(variant, [metric.value for metric in wins], y, labels=labels))
    if not curves:
        return []
    return [
        Plot(
            "Error against what the adversary gets",
            "To the left and below is better. The number at a point is the claimed epsilon: the "
            "same claim buys very different protection.",
            "right guesses, the two profiles farthest apart",
            "relative error",
            tuple(curves),
            kind="scatter",
            log_y=True,
        )
    ]


def _budget_plot(points: Sequence[PointFindings]) -> Plot:
    """Show what a mean user has spent by each day, at the first point of each variant."""
    curves = []
    for variant in sorted({_label(point) for point in points}):
        point = max(
            (one for one in points if _label(one) == variant),
            key=lambda one: block_of(one.scenario).epsilon,
        )
        for name, said, role in _LEDGERS:
            found = [point.metric(f"{name}.day_{day}") for day in range(point.scenario.days)]
            y = [metric.value for metric in found if metric is not None]
            days = [float(day + 1) for day in range(len(y))]
            curves.append(Curve(f"{variant}, {said}", days, y, role=role, group=variant))
    return Plot(
        "What a mean user has spent",
        "At the largest epsilon of the sweep. Debited is what is claimed; where it lies below "
        "what is proved, the ledger is told too little.",
        "day",
        "epsilon, summed",
        tuple(curves),
        kind="step",
        log_y=True,
    )


def _timeline(points: Sequence[PointFindings]) -> Plot:
    """Show what the devices did on each day, at the largest epsilon of the last variant."""
    point = max(points, key=lambda one: (one.scenario.variant, block_of(one.scenario).epsilon))
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
