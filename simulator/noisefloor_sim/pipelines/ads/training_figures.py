"""What the report shows of training: errors, rounds, noise, and ways compared seed by seed.

Comparing curves seed by seed: the same worlds, so that most of the noise cancels.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from noisefloor_sim.pipelines import plotting
from noisefloor_sim.pipelines.ads.ratings import BASELINES
from noisefloor_sim.pipelines.api import PointFindings
from noisefloor_sim.report import Cell, Curve, Figures, Plot, Reading, Table, readings


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
            ((Reading("{k} of {n} intervals do not contain 0.", _decided),),),
        )


def _decided(table: Table) -> Figures | None:
    pairs = list(zip(readings.column(table, "low"), readings.column(table, "high"), strict=True))
    return {"k": sum(low > 0 or high < 0 for low, high in pairs), "n": len(pairs)}


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
        "Root mean square error on held-out ratings, lower is better, beside models that learn "
        "less and one that is trained on ratings in the open.",
        "error",
        readings.against("means per ad", is_lower_better=True),
    ),
    (
        "hits",
        "How often the best ad is predicted to be the best",
        "Higher is better; a random guess is right once in the number of ads.",
        "share of users",
        readings.against("means per ad"),
    ),
)

_ROUNDS = {
    "clipped": (
        "How many values were clipped in each round",
        "share of values",
    ),
    "drift": (
        "How far the ads' factors moved in each round",
        "distance",
    ),
}

_FEWEST_ROUNDS = 4
"""Fewer make no curve."""


def training_figures(groups: plotting.Groups, axis: plotting.Axis) -> Iterator[Plot | Table]:
    """Show what was learned, how, and against which noise."""
    for name, title, describes, label, said in _SCORES:
        curves = plotting.measured_curves(groups, name)
        if curves:
            curves += _baselines(groups, name)
            log_x = plotting.is_logarithmic(groups)
            yield Plot(title, describes, axis.label, label, curves, log_x=log_x, readings=(said,))
    yield from paired_table(groups, axis)
    yield from _plans(groups)
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


_PLAN_METRICS = {
    "training.noise_over_signal": "noise over signal",
    "training.fallback": "means instead",
    "training.factors_used": "factors in use",
    "rmse_lead": "lead over means",
    "rmse_lead_untrained": "lead over untrained",
}


def _plans(groups: plotting.Groups) -> Iterator[Table]:
    """Show the noise that was predicted, what was done about it, and whether training hurt."""
    rows: list[tuple[Cell, ...]] = []
    for curve, by_place in sorted(groups.items()):
        for place in sorted(by_place):
            here = {place: by_place[place]}
            found = [plotting.metric_along_axis(here, name)[1] for name in _PLAN_METRICS]
            if all(found):
                rows.append((curve, place, *(some[0].value for some in found)))
    if rows:
        yield Table(
            "Noise and signal as predicted, and what training gained",
            "The prediction uses public numbers only: users expected, epsilon, rounds, clip, ads "
            "and factors. Above 1, a corrected training learns protected means per ad at the same "
            "epsilon, unless that is switched off; the paper's variant is trained as printed. The "
            "lead is the error of means per ad in the open, or of an untrained model, less that "
            "of the trained one: below 0 training hurt.",
            ("curve", "at", *_PLAN_METRICS.values()),
            rows,
            (
                (
                    Reading(
                        "Noise is predicted to exceed the signal, and means are learned instead, "
                        "at {k} of {n} points ({where}).",
                        _fallen_back,
                    ),
                ),
                (
                    Reading(
                        "At {k} of {n} points the predicted noise exceeds the signal and training "
                        "goes on: its lead over means is {span} there.",
                        _noisy_all_the_same,
                    ),
                ),
                (
                    Reading(
                        "Training hurts at {k} of {n} points ({where}): an untrained model has "
                        "the smaller error.",
                        _hurt,
                    ),
                    Reading(
                        "At none of {n} points has an untrained model the smaller error.", _unhurt
                    ),
                ),
            ),
        )


def _plan_rows(table: Table) -> list[tuple[str, list[float]]]:
    """Return the curve of each row, and its figures."""
    return [
        (str(row[0]), [float(cell) for cell in row[2:] if isinstance(cell, int | float)])
        for row in table.rows
    ]


def _fallen_back(table: Table) -> Figures | None:
    rows = _plan_rows(table)
    return _counted([name for name, figures in rows if figures[1] > 0], rows)


def _noisy_all_the_same(table: Table) -> Figures | None:
    rows = _plan_rows(table)
    leads = [figures[3] for _, figures in rows if figures[0] > 1 and not figures[1]]
    return {"k": len(leads), "n": len(rows), "span": readings.span(leads)} if leads else None


def _hurt(table: Table) -> Figures | None:
    rows = _plan_rows(table)
    return _counted([name for name, figures in rows if figures[4] < 0], rows)


def _unhurt(table: Table) -> Figures | None:
    return {"n": len(table.rows)} if _hurt(table) is None else None


def _counted(curves: Sequence[str], rows: Sequence[object]) -> Figures | None:
    """Return how many rows are meant, of how many, and of which curves."""
    where = "; ".join(sorted(set(curves)))
    return {"k": len(curves), "n": len(rows), "where": where} if curves else None


def _rounds(groups: plotting.Groups, axis: plotting.Axis) -> Iterator[Plot]:
    """Show the rounds at the far end of each curve that has several."""
    for name, (title, label) in _ROUNDS.items():
        curves = []
        for curve in sorted(groups):
            y = _round_by_round(groups, curve, f"training.{name}")
            if len(y) >= _FEWEST_ROUNDS:
                curves.append(Curve(curve, [float(number + 1) for number in range(len(y))], y))
        if curves:
            yield Plot(
                title,
                f"At the largest value of {axis.word} in the sweep, over all rounds of training.",
                "round",
                label,
                curves,
                log_y=name == "drift",
                readings=(
                    (Reading("The last round has {span} times the value of the first.", _last),),
                ),
            )


def _last(plot: Plot) -> Figures | None:
    """Set the last round against the first, over all curves."""
    ratios = [one.y[-1] / one.y[0] for one in readings.measured(plot) if one.y[0]]
    if not ratios:
        return None
    return {"span": readings.span(ratios)}


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
            "The last column is how many users it takes to bring it down to a tenth of the clip.",
            ("curve", "at", "measured", "formula", "users for 0.1"),
            rows,
            ((Reading("Measured over formula is {span}.", _noise_ratios),),),
        )


def _noise_ratios(table: Table) -> Figures | None:
    ratios = [
        row[2] / row[3]
        for row in table.rows
        if isinstance(row[2], float) and isinstance(row[3], float) and row[3]
    ]
    return {"span": readings.span(ratios)} if ratios else None
