"""The privacy-loss curve of the paper, as printed. It is no audit.

Equation (2) is the logarithm of the ratio of two output probabilities. The paper takes, for each
input word, the largest output probability, and has no pair of neighbouring corpora: so what is
plotted measures how concentrated a generator is. One that always writes the same scores 0 whatever
it has learned by heart, and no epsilon follows from any value.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from noisefloor.checks import Floats
from noisefloor.errors import BadParameter
from noisefloor.publication.text.documents import Documents
from noisefloor.publication.text.evaluation.features import check_texts

LABEL = "privacy loss as printed in the paper: no audit, no bound on epsilon"


@dataclass(frozen=True, slots=True, eq=False)
class PrintedPrivacyLoss:
    """The paper's figure for one pair of generators.

    Attributes:
        losses: For each input piece that both have, signed.
    """

    losses: Floats = field(repr=False)

    @property
    def mean(self) -> float:
        """The mean over input pieces, as it stands: gains and losses cancel."""
        return float(self.losses.mean()) if len(self.losses) else 0.0

    @property
    def mean_size(self) -> float:
        """The mean size over input pieces, the bars standing outside of the logarithm."""
        return float(np.abs(self.losses).mean()) if len(self.losses) else 0.0

    @property
    def largest(self) -> float:
        """The largest size."""
        return float(np.abs(self.losses).max(initial=0.0))

    def as_json(self) -> dict[str, Any]:  # Any: JSON
        """Return the figures as one JSON object, with what they are not."""
        sizes = {"mean_size": self.mean_size, "largest": self.largest}
        return {"label": LABEL, "mean": self.mean, **sizes, "inputs": len(self.losses)}


def printed_privacy_loss(these: Floats, those: Floats) -> PrintedPrivacyLoss:
    """Return ln of the ratio of the largest output probabilities, for each input piece.

    Formula: ``l = ln(P[M(D) = o] / P[M(D') = o])``, o the likeliest output of each (paper, eq. 2).

    Args:
        these: The largest output probability for each input piece, by one generator; NaN where
            it has none.
        those: The same by the other one.
    """
    if these.shape != those.shape:
        raise BadParameter("those", those.shape, f"of the shape of these, {these.shape}")
    both = ~(np.isnan(these) | np.isnan(those))
    for name, some in (("these", these[both]), ("those", those[both])):
        if len(some) and not 0 < some.min() <= some.max() <= 1:
            raise BadParameter(name, "<array>", "probabilities above 0, or NaN")
    return PrintedPrivacyLoss(np.log(these[both]) - np.log(those[both]))


def largest_next(texts: Documents, size: int) -> Floats:
    """Return the share of the most frequent next piece after each piece; NaN where none follows.

    It stands for a generator's largest output probability where only its texts are to be had.
    """
    check_texts("texts", texts, size, least=0)
    inside = np.diff(texts.owners) == 0
    pieces = texts.pieces.astype(np.int64)
    keys, counts = np.unique(pieces[:-1][inside] * size + pieces[1:][inside], return_counts=True)
    largest, totals = np.zeros(size), np.zeros(size)
    np.maximum.at(largest, keys // size, counts)
    np.add.at(totals, keys // size, counts)
    return np.where(totals > 0, largest / np.maximum(totals, 1.0), np.nan)
