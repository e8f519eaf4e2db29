"""Likeness, variety and privacy loss as printed, on the page."""

import numpy as np

from noisefloor_sim.papers import intervals
from noisefloor_sim.papers.text import printed
from noisefloor_sim.papers.text.plans import (
    ENCODER_DECODERS,
    PRIVATE_EDS,
    VARIANT_WORDS,
    VARIANTS,
    TextCell,
    TextRunPlan,
    TextVariant,
    cell_at,
    systems_at,
)
from noisefloor_sim.papers.text.results import SHARES, TextFigure, TextsFound, split_cells
from noisefloor_sim.papers.text.score_tables import interval_of
from noisefloor_sim.report import Cell, Curve, Figures, Plot, Reading, Table

Runs = intervals.Runs
SHOWN: tuple[TextVariant, ...] = ("inside", "corrected")


def name_of(cell: TextCell) -> str:
    """Return a system with its variant, if it has several."""
    if cell.system not in ENCODER_DECODERS:
        return cell.title
    # Without privacy there is no noise that could stand anywhere.
    is_plain = cell.system == "plain" and cell.is_paper
    return f"{cell.title}, {'as printed' if is_plain else VARIANT_WORDS[cell.variant]}"


def cosine_table(runs: Runs, found: TextsFound, plan: TextRunPlan) -> Table:
    """Return how alike real and written texts are."""
    rows: list[tuple[Cell, ...]] = []
    for cell in systems_at(plan.epsilon):
        if "row_means" in found[cell]:
            means, nearest = (
                intervals.interval(runs[TextFigure(name, cell)])
                for name in ("row_means", "row_maxima")
            )
            most = max(runs[TextFigure("row_maxima", cell)])
            rows.append((name_of(cell), *(_written(one) for one in (means, nearest)), most / 100))
    return Table(
        "Residual-IDF cosines of real and written texts",
        f"Over {plan.compared} real texts at most of each split, with 95 % intervals over these: "
        "the mean cosine with all written texts, the cosine with the nearest, the largest of all. "
        "A small cosine is no guarantee.",
        ("system", "mean", "nearest", "largest"),
        rows,
        readings=tuple((_less_alike(runs, plan, variant),) for variant in VARIANTS),
    )


def _written(ends: tuple[float, float, float]) -> str:
    mean, low, high = (one / 100 for one in ends)
    return f"{mean:.4f} ({low:.4f} to {high:.4f})"


def _less_alike(runs: Runs, plan: TextRunPlan, variant: TextVariant) -> Reading[Table]:
    dp, dpvg = (
        float(np.mean(runs[TextFigure("row_maxima", cell_at(one, plan.epsilon, variant))]))
        for one in PRIVATE_EDS
    )
    order = "less" if dpvg < dp else "more"
    words = VARIANT_WORDS[variant]
    figures = {
        "variant": words[0].upper() + words[1:],
        "order": order,
        "gap": f"{abs(dp - dpvg):.2f}",
    }
    sentence = (
        "{variant}: DPvG E-D is {order} like real texts than DP E-D, nearest by {gap} points."
    )
    return Reading(sentence, lambda table: figures)


def heat_maps(found: TextsFound, plan: TextRunPlan) -> list[Table]:
    """Return heat maps of both systems, shaded alike within a variant."""
    tables = []
    for variant in SHOWN:
        cells = [cell_at(system, plan.epsilon, variant) for system in PRIVATE_EDS]
        most = max(max(map(max, found[cell]["heat"])) for cell in cells) or 1.0
        tables += [_heat_map(found[cell]["heat"], cell, most) for cell in cells]
    return tables


def _heat_map(values: list[list[float]], cell: TextCell, most: float) -> Table:
    rows: list[tuple[Cell, ...]] = []
    shades: list[tuple[float | None, ...]] = []
    for place, row in enumerate(values):
        rows.append((f"real {place + 1}", *(f"{one / 100:.2f}" for one in row)))
        shades.append((None, *(min(1.0, max(0.0, one / most)) for one in row)))
    flat = [one / 100 for row in values for one in row]
    figures = {"mean": f"{np.mean(flat):.3f}", "most": f"{max(flat):.2f}"}
    return Table(
        f"Cosines: {name_of(cell)}",
        "Rows are real texts, columns written ones, spread evenly over those that are compared; "
        "darker is more alike, on one scale for both systems.",
        ("", *(str(place + 1) for place in range(len(values[0])))),
        rows,
        [[Reading("Mean {mean}, largest {most}.", lambda table: figures)]],
        shades,
    )


def diversity_table(runs: Runs, found: TextsFound, plan: TextRunPlan) -> Table:
    """Return how varied corpora are."""
    rows: list[tuple[Cell, ...]] = []
    for cell in systems_at(plan.epsilon):
        row: list[Cell] = [name_of(cell)]
        for name in SHARES:
            values = runs[TextFigure(name, cell)]
            if name in ("vocabulary", "rare_kinds"):
                row.append(f"{np.mean(values):,.0f}")
                continue
            mean, low, high = interval_of(values)
            row.append(f"{mean:.2f} ({low:.2f} to {high:.2f})")
        nats = [found[one].get("nats") for one in split_cells(found, cell, plan)]
        row.append("" if None in nats else f"{np.mean(np.array(nats, dtype=float)):.2f}")
        rows.append(tuple(row))
    header = ("system", "distinct 1", "distinct 2", "rare pieces", "self-BLEU")
    return Table(
        "Variety",
        "Percent, with 95 % intervals over splits; corpora are about equally large. The mark of "
        "a suppressed name is left out. Rare pieces "
        "are in at most one of 1,000 real texts. Counts of different pieces "
        "are means; so are the nats that a network needs for a piece of held-out texts. They are "
        "of its own vocabulary: only those of one variant compare.",
        (*header, "different pieces", "different rare pieces", "nats a piece"),
        rows,
        readings=((_rarer(runs, plan),),),
    )


def _rarer(runs: Runs, plan: TextRunPlan) -> Reading[Table]:
    more = 0
    for variant in VARIANTS:
        dp, dpvg = (
            np.mean(runs[TextFigure("rare_share", cell_at(one, plan.epsilon, variant))])
            for one in PRIVATE_EDS
        )
        more += bool(dpvg > dp)
    figures = {"more": more, "n": len(VARIANTS)}
    sentence = "DPvG E-D writes more rare pieces than DP E-D in {more} of {n} variants."
    return Reading(sentence, lambda table: figures)


def loss_plot(runs: Runs, plan: TextRunPlan, variant: TextVariant) -> Plot:
    """Return the curve that the paper calls privacy loss."""
    curves = []
    for system in PRIVATE_EDS:
        cells = [cell_at(system, epsilon, variant) for epsilon in plan.epsilons]
        ends = [intervals.interval(runs[TextFigure("loss", one)]) for one in cells]
        mean, low, high = (list(column) for column in zip(*ends, strict=True))
        curves.append(Curve(cells[0].title, plan.epsilons, mean, low, high))
    return Plot(
        f"The paper's privacy loss, {VARIANT_WORDS[variant]}: no audit",
        "Mean size of ln of the ratio of two generators' largest output probabilities after the "
        f"same {plan.inputs} public pieces, for two corpora of the same kind, with 95 % intervals "
        "over these pieces. It measures the confidence of generators; no epsilon follows from "
        "it, and one that always writes the same has 0.",
        "epsilon claimed",
        "mean size of ln of the ratio",
        curves,
        log_x=True,
        readings=((Reading("{order}", _loss_order),),),
    )


def _loss_order(plot: Plot) -> Figures | None:
    dp, dpvg = plot.curves
    above = [
        float(x) for x, one, other in zip(map(str, dp.x), dp.y, dpvg.y, strict=True)
        if float(x) > printed.LOSS_BORDER and one < other
    ]  # fmt: skip
    n = sum(float(x) > printed.LOSS_BORDER for x in map(str, dp.x))
    return {"order": f"DP E-D is below DPvG E-D at {len(above)} of {n} epsilons above 0.8."}


def sample_table(found: TextsFound, plan: TextRunPlan) -> Table:
    """Return the beginnings of a few written texts, as they are."""
    rows = [
        (name_of(cell), text)
        for cell in systems_at(plan.epsilon)
        for text in found[cell]["samples"]
    ]
    return Table(
        "What is written",
        "The first characters of the first texts of each corpus of the first split. Generators "
        "without privacy may repeat private texts: this page is for the holder of these.",
        ("system", "text"),
        rows,
    )
