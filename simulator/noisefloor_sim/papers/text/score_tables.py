"""Scores on the page: the printed table beside what was reached, and scores over epsilon."""

from collections.abc import Sequence
from itertools import product

import numpy as np

from noisefloor_sim.papers import intervals
from noisefloor_sim.papers.text import printed
from noisefloor_sim.papers.text.plans import (
    ORIGINAL,
    PARTS,
    PRIVATE_EDS,
    VARIANT_WORDS,
    TextCell,
    TextRunPlan,
    TextSystem,
    TextVariant,
    cell_at,
)
from noisefloor_sim.papers.text.results import TextFigure, TextsFound, f1_name, split_cells
from noisefloor_sim.report import Curve, Figures, Plot, Reading, Table

Runs = intervals.Runs
OVERLAP = 1 / (PARTS - 1)
SCORES = tuple(product(printed.CLASSIFIERS, printed.LABELS))
OURS: tuple[TextSystem, ...] = ("ngrams", "crossed")


def interval_of(values: Sequence[float], least: float = 0.0, most: float = 100.0) -> list[float]:
    """Return a mean over splits and its 95 % interval, within bounds."""
    mean, low, high = intervals.interval(values, overlap=OVERLAP)
    return [mean, max(low, least), min(high, most)]


def score_table(runs: Runs, plan: TextRunPlan, variant: TextVariant) -> Table:
    """Return F1 of all systems, the printed numbers beside those that the paper has."""
    cells = [
        ORIGINAL,
        cell_at("plain", 0.0, variant),
        *(cell_at(system, plan.epsilon, variant) for system in PRIVATE_EDS),
        *(cell_at(system, plan.epsilon) for system in OURS),
    ]
    header = ["classifier", "class"]
    for cell in cells:
        if cell.system in printed.SYSTEMS:
            header.append(f"{cell.title}, printed")
        header.append(cell.title)
    rows = []
    for classifier, label in SCORES:
        row = [printed.CLASSIFIERS[classifier], label]
        for cell in cells:
            if cell.system in printed.SYSTEMS:
                row.append(f"{printed.F1[cell.system, classifier, label]:.3f}")
            found = interval_of(runs[TextFigure(f1_name(classifier, label), cell)])
            mean, low, high = (one / 100 for one in found)
            row.append(f"{mean:.3f} ({low:.2f} to {high:.2f})")
        rows.append(tuple(row))
    return Table(
        f"F1 at epsilon {plan.epsilon:g}, {VARIANT_WORDS[variant]}",
        f"Means over {plan.splits} splits with 95 % intervals that count what splits share. "
        "'Original' in print may be the second or the third system here. N-grams are corrected "
        "in every table.",
        header,
        rows,
        readings=((_orders(runs, cells),),),
    )


def _orders(runs: Runs, cells: Sequence[TextCell]) -> Reading[Table]:
    def means(cell: TextCell) -> list[float]:
        return [float(np.mean(runs[TextFigure(f1_name(*one), cell)])) for one in SCORES]

    original, plain, dp, dpvg, counted, _ = map(means, cells)

    def above(first: list[float], second: list[float]) -> int:
        return sum(one > other for one, other in zip(first, second, strict=True))

    figures = {
        "raw": above(original, dpvg),
        "plain": above(plain, dpvg),
        "gain": above(dpvg, dp),
        "ours": above(counted, dpvg),
        "n": len(SCORES),
    }
    sentence = (
        "Of {n} means, original texts are above DPvG E-D in {raw}, E-D without privacy in "
        "{plain}; DPvG E-D is above DP E-D in {gain}, DP n-grams are above DPvG E-D in {ours}."
    )
    return Reading(sentence, lambda table: figures)


def macro(runs: Runs, cell: TextCell) -> list[float]:
    """Return the mean F1 over classifiers and classes of each split, over 100."""
    rows = [runs[TextFigure(f1_name(*one), cell)] for one in SCORES]
    return [float(one) / 100 for one in np.mean(np.array(rows), axis=0)]


def score_plot(runs: Runs, found: TextsFound, plan: TextRunPlan) -> Plot:
    """Return the mean F1 over epsilon."""
    at = plan.epsilons
    curves = []
    for system, variant in _lines():
        cells = [cell_at(system, epsilon, variant) for epsilon in at]
        ends = [interval_of(macro(runs, one), most=1.0) for one in cells]
        mean, low, high = (list(column) for column in zip(*ends, strict=True))
        is_paper = system in PRIVATE_EDS
        name = f"{cells[0].title}, {VARIANT_WORDS[variant]}" if is_paper else cells[0].title
        curves.append(Curve(name, at, mean, low, high))
    for cell in (ORIGINAL, cell_at("plain", 0.0)):
        value = float(np.mean(macro(runs, cell)))
        curves.append(Curve(cell.title, at, [value] * len(at), role="baseline"))
    few = len(split_cells(found, cell_at("ngrams", min(at)), plan))
    return Plot(
        "Mean F1 over epsilon",
        "Mean of four classifiers and both classes on held-out real texts, with 95 % intervals "
        f"over {plan.splits} splits at epsilon {plan.epsilon:g} and {few} at others.",
        "epsilon claimed",
        "mean F1",
        curves,
        log_x=True,
        readings=((Reading("Best at the largest epsilon: {best}, {value}.", _best),),),
    )


def _lines() -> list[tuple[TextSystem, TextVariant]]:
    variants: tuple[TextVariant, ...] = ("inside", "corrected")
    lines = [(system, variant) for variant in variants for system in PRIVATE_EDS]
    return [*lines, *((system, "corrected") for system in OURS)]


def _best(plot: Plot) -> Figures | None:
    measured = [one for one in plot.curves if one.role == "measured"]
    best = max(measured, key=lambda one: one.y[-1])
    return {"best": best.name, "value": f"{best.y[-1]:.3f}"}
