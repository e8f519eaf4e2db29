"""How the curves of the section are called, and lines that all of them share."""

from collections.abc import Mapping, Sequence

from noisefloor_sim.pipelines.base import PointFindings
from noisefloor_sim.pipelines.curves import Axis, Groups, along
from noisefloor_sim.report.spec import Curve, Role

HIDDEN = "pipelines.models.hidden"


def named_groups(axis: Axis, points: Sequence[PointFindings]) -> Groups:
    """Return the points by curve; the variant is named where there are two.

    Methods are named without the word; what is the same for all curves is left out.
    """
    variants = {point.scenario.variant for point in points}
    groups: Groups = {}
    for name, by_place in axis.grouped(points).items():
        words = [word.removeprefix("method ") for word in name.split(", ")]
        kept = words if len(variants) > 1 or len(words) == 1 else words[1:]
        groups[", ".join(kept)] = by_place
    return groups


def widest(points: Sequence[PointFindings]) -> list[PointFindings]:
    """Return the points of the widest networks, where several widths were swept; else all.

    A figure of every width has too many curves to be read; tables hold them all.
    """
    counts = [
        sum(int(word) for word in str(dict(point.settings)[HIDDEN]).split(",") if word != "none")
        for point in points
        if HIDDEN in dict(point.settings)
    ]
    if len(counts) < len(points):
        return list(points)
    return [point for point, count in zip(points, counts, strict=True) if count == max(counts)]


def shared_curves(groups: Groups, lines: Mapping[str, tuple[str, Role]]) -> list[Curve]:
    """Return metrics that are alike for all groups, averaged over them: one line each.

    Args:
        groups: The points.
        lines: Name and role of each line, by its metric.
    """
    everybody: dict[float, list[PointFindings]] = {}
    for by_place in groups.values():
        for place, some in by_place.items():
            everybody.setdefault(place, []).extend(some)
    curves = []
    for metric, (name, role) in lines.items():
        x, found = along(everybody, metric)
        if x:
            curves.append(Curve(name, x, [one.value for one in found], role=role))
    return curves
