"""From stored cells to what claims are judged by: one value for each judged text."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from noisefloor_sim.papers import intervals
from noisefloor_sim.papers.lowrank.claims import ClipPoint, LowRankRise
from noisefloor_sim.papers.lowrank.plans import FACTORS, LowRankCell, LowRankPlan

Found = Mapping[LowRankCell, Mapping[str, Any]]  # JSON of each cell


def runs_of(found: Found, plan: LowRankPlan) -> dict[intervals.Setting, list[float]]:
    """Return 100 or 0 for each judged text under each cell of the first split.

    Texts of further splits follow where a cell was run there, so that gaps pair text by text.
    """
    runs: dict[intervals.Setting, list[float]] = {}
    for cell in found:
        if cell.kind == "training" and not cell.split:
            runs[cell] = text_scores(found, cell, plan)
    for cell in list(runs):
        for low in plan.epsilons:
            if cell.epsilon and low < cell.epsilon and cell.at(low) in runs:
                pairs = zip(runs[cell], runs[cell.at(low)], strict=False)
                runs[LowRankRise(cell, low)] = [one - other for one, other in pairs]
    factors = found[FACTORS]
    for name in ("unmasked", "masked"):
        clipped = [100.0 * (one < 1) for one in factors[name]]
        runs[ClipPoint(is_masked=name == "masked")] = clipped
    return runs


def text_scores(found: Found, cell: LowRankCell, plan: LowRankPlan) -> list[float]:
    """Return 100 for each text that is right and 0 for the others, split after split."""
    values: list[float] = []
    for split in range(1 + plan.more_splits):
        one = found.get(replace(cell, split=split))
        if one is None:
            break
        values += [100.0 * (sign == "1") for sign in one["right"]]
    return values


def by_split(found: Found, cell: LowRankCell, plan: LowRankPlan) -> list[float]:
    """Return the accuracy of a cell on each split that it was run on, in percent."""
    cells = [replace(cell, split=split) for split in range(1 + plan.more_splits)]
    return [_percent(found[one]["right"]) for one in cells if one in found]


def _percent(right: str) -> float:
    return 100 * right.count("1") / len(right)


def accuracy(found: Found, cell: LowRankCell) -> float:
    """Return the accuracy of one cell on the texts of its own split, in percent."""
    return _percent(found[cell]["right"])


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Return Spearman's correlation; NaN where one of both is constant."""
    from scipy.stats import rankdata

    one, other = (rankdata(some) for some in (first, second))
    if np.ptp(one) == 0 or np.ptp(other) == 0:
        return float("nan")
    return float(np.corrcoef(one, other)[0, 1])


def cell_rows(found: Found) -> list[dict[str, Any]]:  # Any: JSON
    """Return every cell with what it gave, judged texts counted."""
    rows = []
    for cell, one in found.items():
        given = {name: value for name, value in one.items() if name != "right"}
        if "right" in one:
            given |= {"right": one["right"].count("1"), "judged": len(one["right"])}
        rows.append(asdict(cell) | given)
    return rows
