"""From the points of a sweep to curves: what runs along the axis, what tells curves apart.

Curves and plots that the sections of several pipelines draw alike.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from noisefloor_sim.pipelines.api import Metric, PointFindings
from noisefloor_sim.report import Cell, Curve, Role, readings
from noisefloor_sim.scenario import Scenario

Groups = dict[str, dict[float, list[PointFindings]]]
"""Points by the name of their curve, then by their place along the axis."""


@dataclass(frozen=True, slots=True)
class Axis:
    """The swept key that runs along the plots' axis.

    Attributes:
        key: Dotted, as in the sweep.
        label: What the axis is called.
    """

    key: str
    label: str

    @classmethod
    def of(cls, points: Sequence[PointFindings], usual: Mapping[str, str]) -> "Axis":
        """Choose the number that takes most values.

        Args:
            points: All points of the sweep.
            usual: Keys that win a tie, the first one first, and what each is called.
        """
        values: dict[str, set[float]] = {key: set() for key in usual}
        for point in points:
            for key, value in point.settings:
                if (
                    key != "seed"
                    and isinstance(value, int | float)
                    and not isinstance(value, bool)
                ):
                    values.setdefault(key, set()).add(float(value))
        order = list(usual)
        best = max(
            values,
            key=lambda key: (len(values[key]), -order.index(key) if key in usual else -len(order)),
        )
        return cls(best, usual.get(best, _word(best)))

    @property
    def word(self) -> str:
        """The last word of the key."""
        return _word(self.key)

    def place(self, point: PointFindings) -> float:
        """Return where a point lies along the axis."""
        value = dict(point.settings).get(self.key, value_at(point.scenario, self.key))
        if not isinstance(value, int | float):
            raise TypeError(f"{self.key} is not a number at every point.")
        return float(value)

    def curve_of(self, point: PointFindings) -> str:
        """Name a point's curve after the variant and the last words of the other swept keys."""
        others = [
            f"{key.rpartition('.')[2]} {value}".lower()
            for key, value in point.settings
            if key not in ("variant", "seed", self.key)
        ]
        return ", ".join([point.scenario.variant, *others])

    def grouped(self, points: Sequence[PointFindings]) -> Groups:
        """Return the points by curve, then by place."""
        groups: Groups = {}
        for point in points:
            by_place = groups.setdefault(self.curve_of(point), {})
            by_place.setdefault(self.place(point), []).append(point)
        return groups


def metric_along_axis(
    by_place: dict[float, list[PointFindings]], name: str
) -> tuple[list[float], list[Metric]]:
    """Return a metric along the axis, where it was measured."""
    pairs = [(place, _mean(by_place[place], name)) for place in sorted(by_place)]
    kept = [(place, metric) for place, metric in pairs if metric is not None]
    return [place for place, _ in kept], [metric for _, metric in kept]


def mean_rows(
    groups: Groups, names: Sequence[str], missing: float | None = None
) -> list[tuple[Cell, ...]]:
    """Return a row for each curve and place: metrics averaged over replicates.

    Args:
        groups: The findings of each curve, by place.
        names: Of the metrics.
        missing: What stands where one was not measured.
    """
    rows: list[tuple[Cell, ...]] = []
    for curve, by_place in sorted(groups.items()):
        for place in sorted(by_place):
            found = [metric_along_axis({place: by_place[place]}, name)[1] for name in names]
            rows.append((curve, place, *(one[0].value if one else missing for one in found)))
    return rows


def _mean(points: Sequence[PointFindings], name: str) -> Metric | None:
    """Return a metric averaged over replicates, with the interval's two sides shrunk to match.

    Metrics that have no interval get one from how replicates differ, where there are several.
    """
    found = [metric for point in points if (metric := point.metric(name)) is not None]
    if not found:
        return None
    values, n = [metric.value for metric in found], sum(metric.n for metric in found)
    value, root = float(np.mean(values)), len(found) ** 0.5
    # A share near 0 or 1 has an interval with unlike sides: each is averaged by itself.
    below = float(np.mean([metric.value - metric.low for metric in found])) / root
    above = float(np.mean([metric.high - metric.value for metric in found])) / root
    if math.isnan(below) and len(found) > 1:
        return Metric(name, value, *student_interval(values), n)
    return Metric(name, value, value - below, value + above, n)


def student_interval(values: Sequence[float], level: float = 0.95) -> tuple[float, float]:
    """Return Student's interval of the mean of independent values; endless for fewer than two."""
    from scipy.special import stdtrit  # lazy: scipy is slow to import

    n = len(values)
    if n < 2 or not np.isfinite(values).all():
        return -math.inf, math.inf
    mean, error = float(np.mean(values)), float(np.std(values, ddof=1)) / math.sqrt(n)
    reach = float(stdtrit(n - 1, (1 + level) / 2)) * error
    return mean - reach, mean + reach


def value_at(scenario: Scenario, key: str) -> object:
    """Return the value of a dotted key of a scenario."""
    found: object = scenario
    for name in key.split("."):
        found = found[name] if isinstance(found, Mapping) else getattr(found, name)
    return found


def _word(key: str) -> str:
    return key.rpartition(".")[2].replace("_", " ")


def interval_ends(found: Sequence[Metric]) -> tuple[list[float] | None, list[float] | None]:
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
        x, found = metric_along_axis(by_place, name)
        if x:
            curves.append(
                Curve(curve, x, [metric.value for metric in found], *interval_ends(found))
            )
    return curves


def curves_with_theory(
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
        x, found = metric_along_axis(by_place, name)
        if not x:
            continue
        y = [metric.value for metric in found]
        curves.append(Curve(f"{curve}, {said}", x, y, *interval_ends(found), group=curve))
        for other, role in others:
            x, found = metric_along_axis(by_place, other)
            if x:
                y = [metric.value for metric in found]
                label = f"{curve}, {role.replace('-', ' ')}"
                curves.append(Curve(label, x, y, role=role, group=curve))
    return curves


ATTACK_READINGS = (readings.CLOSED_FORM, readings.BOUND, readings.BASELINE)
"""What may be said about the success of an attack: each where such a line is drawn."""
