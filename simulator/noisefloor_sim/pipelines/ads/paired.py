"""Comparing curves seed by seed: the same worlds, so that most of the noise cancels."""

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from noisefloor_sim.pipelines.base import PointFindings
from noisefloor_sim.pipelines.curves import Axis, Groups, student_interval
from noisefloor_sim.report.spec import Table


def paired_table(groups: Groups, axis: Axis) -> Iterator[Table]:
    """Show, for every two curves and place, by how much they differ over the seeds they share."""
    rows = []
    for one, other in combinations(sorted(groups), 2):
        for place in sorted(set(groups[one]) & set(groups[other])):
            first, second = _by_seed(groups[one][place]), _by_seed(groups[other][place])
            shared = sorted(set(first) & set(second))
            for name in ("rmse", "hits"):
                gaps = _gaps(first, second, shared, name)
                if len(gaps) > 1:
                    low, high = student_interval(gaps)
                    mean = float(np.mean(gaps))
                    rows.append((f"{one} minus {other}", place, name, mean, low, high, len(gaps)))
    if rows:
        yield Table(
            "Ways of training, compared seed by seed",
            "The same people under each way: mean difference with its 95 % interval. Below 0 the "
            "first has the smaller error; above 0 it has the more hits.",
            ("curves", axis.word, "of", "difference", "low", "high", "seeds"),
            rows,
        )


def _by_seed(points: Sequence[PointFindings]) -> dict[int, PointFindings]:
    return {point.scenario.seed: point for point in points}


def _gaps(
    first: dict[int, PointFindings],
    second: dict[int, PointFindings],
    seeds: Sequence[int],
    name: str,
) -> list[float]:
    pairs = [(first[seed].metric(name), second[seed].metric(name)) for seed in seeds]
    return [one.value - two.value for one, two in pairs if one is not None and two is not None]
