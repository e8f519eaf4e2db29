"""From stored cells to what claims are judged by.

Scores and shares are over splits; cosines over real texts and losses over input pieces, of the
corpora and generators that were made.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from noisefloor.publication.text.evaluation import PrintedPrivacyLoss, printed_privacy_loss
from noisefloor_sim.papers import intervals
from noisefloor_sim.papers.text import printed
from noisefloor_sim.papers.text.plans import (
    ENCODER_DECODERS,
    PRIVATE_EDS,
    VARIANTS,
    TextCell,
    TextRunPlan,
    TextVariant,
    cell_at,
    splits_of,
)

TextsFound = Mapping[TextCell, Mapping[str, Any]]  # JSON of each cell
SHARES = ("distinct_1", "distinct_2", "rare_share", "self_bleu", "vocabulary", "rare_kinds")


@dataclass(frozen=True, slots=True)
class TextFigure:
    """One figure of one system.

    Attributes:
        what: ``f1 CLASSIFIER LABEL``, a share, ``row_means``, ``row_maxima``, or ``loss``.
        cell: Of the first split.
    """

    what: str
    cell: TextCell


@dataclass(frozen=True, slots=True)
class GainFigure:
    """By how much DPvG E-D has a better F1 than DP E-D.

    Attributes:
        what: ``f1 CLASSIFIER LABEL``.
        variant: Of both.
    """

    what: str
    variant: TextVariant


def f1_name(classifier: str, label: str) -> str:
    """Return the name of the figure."""
    return f"f1 {classifier} {label}"


def runs_of(found: TextsFound, plan: TextRunPlan) -> dict[intervals.Setting, list[float]]:
    """Return all figures, run by run."""
    runs: dict[intervals.Setting, list[float]] = {}
    for cell in (one for one in found if not one.split):
        runs |= {TextFigure(name, cell): values for name, values in _by_split(found, cell, plan)}
        if "row_means" in found[cell]:
            for name in ("row_means", "row_maxima"):
                runs[TextFigure(name, cell)] = _joined(found, cell, plan, name)
        if cell.system in ENCODER_DECODERS and cell.epsilon:
            losses = privacy_loss(found, cell).losses
            runs[TextFigure("loss", cell)] = [float(one) for one in np.abs(losses)]
    for variant in VARIANTS:
        plain, named = (cell_at(one, plan.epsilon, variant) for one in PRIVATE_EDS)
        for classifier in printed.CLASSIFIERS:
            for label in printed.LABELS:
                what = f1_name(classifier, label)
                gains = intervals.gaps(TextFigure(what, named), TextFigure(what, plain), runs)
                runs[GainFigure(what, variant)] = gains
    return runs


def split_cells(found: TextsFound, cell: TextCell, plan: TextRunPlan) -> list[TextCell]:
    """Return a cell on every split that it was run on."""
    cells = [replace(cell, split=split) for split in range(splits_of(plan, cell.epsilon))]
    return [one for one in cells if one in found]


def _by_split(
    found: TextsFound, cell: TextCell, plan: TextRunPlan
) -> Iterator[tuple[str, list[float]]]:
    cells = split_cells(found, cell, plan)
    for classifier in printed.CLASSIFIERS:
        for place, label in enumerate(printed.LABELS):
            values = [found[one]["f1"][classifier][place] for one in cells]
            yield f1_name(classifier, label), values
    for name in SHARES:
        yield name, [float(found[one][name]) for one in cells]


def _joined(found: TextsFound, cell: TextCell, plan: TextRunPlan, name: str) -> list[float]:
    return [value for one in split_cells(found, cell, plan) for value in found[one][name]]


def privacy_loss(found: TextsFound, cell: TextCell) -> PrintedPrivacyLoss:
    """Return equation (2) of the generators of two corpora of the same kind, as printed.

    The paper does not say what D and D' are. Here they are the texts of the first two splits, of
    which three quarters are common; the inputs are public pieces, under each label. No epsilon
    follows from it.
    """
    these, those = (
        np.array(found[replace(cell, split=split)]["largest"], dtype=np.float64)
        for split in (0, 1)
    )
    return printed_privacy_loss(these, those)


def cell_rows(found: TextsFound) -> list[dict[str, Any]]:  # Any: JSON
    """Return every cell with what it gave; long rows of numbers by their length alone."""
    long = ("row_means", "row_maxima", "largest", "heat", "samples")
    rows = []
    for cell, one in found.items():
        given = {name: value for name, value in one.items() if name not in long}
        rows.append(asdict(cell) | given)
    return rows
