"""What the report shows of training: errors, rounds, noise, and ways compared seed by seed.

Comparing curves seed by seed: the same worlds, so that most of the noise cancels.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from noisefloor_sim.pipelines import plotting
from noisefloor_sim.pipelines.ads.ratings import BASELINES
from noisefloor_sim.pipelines.api import PointFindings
from noisefloor_sim.report import Curve, Plot, Table


def paired_table(groups: plotting.Groups, axis: plotting.Axis) -> Iterator[Table]:
    """Show, for every two curves and place, by how much they differ over the seeds they share."""
    rows = []
    for one, other in combinations(sorted(groups), 2):
        for place in sorted(set(groups[one]) & set(groups[other])):
            first, second = _by_seed(groups[one][place]), _by_seed(groups[other][place])
            shared = sorted(set(first) & set(second))
            for name in ("rmse", "hits"):
                gaps = _gaps(first, second, shared, name)
                if len(gaps) > 1:
                    low, high = plotting.student_interval(gaps)
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


_BASELINE_WORDS = dict(
    zip(
        BASELINES,
        ("means per ad", "one mean for all", "untrained", "ratings in the open"),
        strict=True,
    )
)

_SCORES = (
    (
        "rmse",
        "Error of predicted ratings",
        "Root mean square error on held-out ratings, lower is better. Below the mean per ad "
        "something was learned about people; the line of open ratings is what is lost.",
        "error",
    ),
    (
        "hits",
        "How often the best ad is predicted to be the best",
        "Higher is better; guessing blindly is right once in the number of ads.",
        "share of users",
    ),
)

_ROUNDS = {
    "clipped": (
        "How many values were clipped in each round",
        "share of values",
        "Clipping hard makes bits worth sending.",
    ),
    "drift": (
        "How far the ads' factors moved in each round",
        "distance",
        "Factors that keep moving as far as in the first rounds are driven by noise.",
    ),
}

_FEWEST_ROUNDS = 4
"""Fewer make no curve."""


def training_figures(groups: plotting.Groups, axis: plotting.Axis) -> Iterator[Plot | Table]:
    """Show what was learned, how, and against which noise."""
    for name, title, reading, label in _SCORES:
        curves = plotting.measured_curves(groups, name)
        if curves:
            curves += _baselines(groups, name)
            log_x = plotting.is_logarithmic(groups)
            yield Plot(title, reading, axis.label, label, curves, log_x=log_x)
    yield from paired_table(groups, axis)
    yield from _rounds(groups, axis)
    yield from _noise(groups)


def _baselines(groups: plotting.Groups, name: str) -> list[Curve]:
    """Return the baselines of the first curve: they hardly depend on what was swept."""
    by_place = groups[min(groups)]
    curves = []
    for baseline, word in _BASELINE_WORDS.items():
        x, found = plotting.metric_along_axis(by_place, f"{name}.{baseline}")
        if x:
            curves.append(Curve(word, x, [metric.value for metric in found], role="baseline"))
    return curves


def _rounds(groups: plotting.Groups, axis: plotting.Axis) -> Iterator[Plot]:
    """Show the rounds at the far end of each curve that has several."""
    for name, (title, label, reading) in _ROUNDS.items():
        curves = []
        for curve in sorted(groups):
            y = _round_by_round(groups, curve, f"training.{name}")
            if len(y) >= _FEWEST_ROUNDS:
                curves.append(Curve(curve, [float(number + 1) for number in range(len(y))], y))
        if curves:
            yield Plot(
                title,
                f"At the largest {axis.word}. {reading}",
                "round",
                label,
                curves,
                log_y=name == "drift",
            )


def _round_by_round(groups: plotting.Groups, curve: str, name: str) -> list[float]:
    """Return a metric of all rounds, at the far end of a curve."""
    last = {0.0: groups[curve][max(groups[curve])]}
    y: list[float] = []
    while found := plotting.metric_along_axis(last, f"{name}.round_{len(y)}")[1]:
        y.append(found[0].value)
    return y


def _noise(groups: plotting.Groups) -> Iterator[Table]:
    """Show the noise of the averaged gradient, measured and by its formula."""
    rows = []
    for curve, by_place in sorted(groups.items()):
        for place in sorted(by_place):
            names = ("measured", "formula", "users_needed")
            here = {place: by_place[place]}
            found = [
                plotting.metric_along_axis(here, f"training.noise.{name}")[1] for name in names
            ]
            if found[1]:
                rows.append((curve, place, *(some[0].value if some else None for some in found)))
    if rows:
        yield Table(
            "Noise in one number of the averaged gradient",
            "In units of the clip, measured from two halves of the reports and by the formula. "
            "The last column is how many users it takes to bring it down to a tenth of the clip: "
            "where that is more people than there are, the model learns nothing but noise.",
            ("curve", "at", "measured", "formula", "users for 0.1"),
            rows,
        )
