"""Synthesis: private tables first, then as many synthetic records as one likes.

Three ways, each a frozen plan with its ``guarantee``, its ``release`` and the exact
``log_likelihood`` of what it released: ``label_histograms`` (columns independent given the label),
``cells`` (all cells of a few columns), ``marginal_tree`` (a private forest of columns).
``noise_budget`` divides one budget among all tables, ``privacy_loss`` sums up what Gaussian noise
costs, and ``record_model`` turns noisy counts into a model. What is done with a release is
post-processing.
"""

from noisefloor.publication.synthesis.cells import CELLS, CellHistogram
from noisefloor.publication.synthesis.label_histograms import LABEL_HISTOGRAMS, LabelHistograms
from noisefloor.publication.synthesis.marginal_tree import MARGINAL_TREE, MarginalTree
from noisefloor.publication.synthesis.noise_budget import (
    EntryNoise,
    GaussianEntries,
    LaplaceEntries,
    NoiseBudget,
    table_change,
)
from noisefloor.publication.synthesis.privacy_loss import RecordChange
from noisefloor.publication.synthesis.record_model import Synthesiser

__all__ = [
    "CELLS",
    "LABEL_HISTOGRAMS",
    "MARGINAL_TREE",
    "CellHistogram",
    "EntryNoise",
    "GaussianEntries",
    "LabelHistograms",
    "LaplaceEntries",
    "MarginalTree",
    "NoiseBudget",
    "RecordChange",
    "Synthesiser",
    "table_change",
]
