"""Curves and plots that the sections of several pipelines draw alike."""

import math
from collections.abc import Iterator, Mapping, Sequence

from noisefloor_sim.pipelines.base import Metric
from noisefloor_sim.pipelines.curves import Axis, Groups, along
from noisefloor_sim.report.spec import Curve, Plot, Role

THEORY: tuple[tuple[str, Role], ...] = (
    ("closed_form", "closed-form"),
    ("bound", "bound"),
    ("prior", "baseline"),
)
"""What stands beside the success of an attack, and how it is drawn."""


def band(found: Sequence[Metric]) -> tuple[list[float] | None, list[float] | None]:
    """Return the ends of the intervals, or nothing unless all metrics have one."""
    ends = [metric.low for metric in found], [metric.high for metric in found]
    return (None, None) if any(math.isnan(end) for some in ends for end in some) else ends


def is_logarithmic(groups: Groups) -> bool:
    """Say whether all places along the axis can be drawn on a logarithmic one."""
    return all(place > 0 for by_place in groups.values() for place in by_place)


def measured_curves(groups: Groups, name: str) -> list[Curve]:
    """Return a metric along the axis, one curve for each group that has it."""
    curves = []
    for curve, by_place in sorted(groups.items()):
        x, found = along(by_place, name)
        if x:
            curves.append(Curve(curve, x, [metric.value for metric in found], *band(found)))
    return curves


def beside(
    groups: Groups, name: str, others: Sequence[tuple[str, Role]], *, said: str = "measured"
) -> list[Curve]:
    """Return a metric along the axis with what theory says of it, one colour for each group.

    Args:
        groups: The points.
        name: The metric.
        others: Further metrics and the role of each.
        said: What the metric itself is called.
    """
    curves = []
    for curve, by_place in sorted(groups.items()):
        x, found = along(by_place, name)
        if not x:
            continue
        y = [metric.value for metric in found]
        curves.append(Curve(f"{curve}, {said}", x, y, *band(found), group=curve))
        for other, role in others:
            x, found = along(by_place, other)
            if x:
                y = [metric.value for metric in found]
                label = f"{curve}, {role.replace('-', ' ')}"
                curves.append(Curve(label, x, y, role=role, group=curve))
    return curves


def attack_plots(
    groups: Groups,
    axis: Axis,
    games: Mapping[str, str],
    readings: Mapping[str, str],
    *,
    usual: str,
) -> Iterator[Plot]:
    """Draw how often the adversary is right in each game that was played.

    Args:
        groups: The points.
        axis: What runs along the axis.
        games: What is guessed in each game, by its name in the metrics.
        readings: What is to be seen, for games of which something special is.
        usual: What is to be seen in the others.
    """
    for game, what in games.items():
        theory = [(f"attack.{game}.{name}", role) for name, role in THEORY]
        curves = beside(groups, f"attack.{game}.success", theory)
        if curves:
            yield Plot(
                f"How often the adversary is right: {what}",
                readings.get(game, usual),
                axis.label,
                "right guesses",
                curves,
                log_x=is_logarithmic(groups),
            )
