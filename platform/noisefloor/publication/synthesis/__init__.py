"""Synthesis: private tables first, then as many synthetic records as one likes.

Three ways, each a frozen plan with its ``guarantee``, its ``release`` and the exact
``log_likelihood`` of what it released: ``label_histograms`` (columns independent given the label),
``cells`` (all cells of a few columns), ``marginal_tree`` (a private forest of columns). ``noise``
divides one budget among all tables, ``loss`` sums up what Gaussian noise costs, ``consistency``
and ``forest`` turn noisy counts into a model. What is done with a release is post-processing.
"""

from noisefloor.publication.synthesis.cells import Cells
from noisefloor.publication.synthesis.label_histograms import LabelHistograms
from noisefloor.publication.synthesis.marginal_tree import MarginalTree
from noisefloor.publication.synthesis.noise import Budget
from noisefloor.publication.synthesis.synthesiser import Synthesiser

__all__ = ["Budget", "Cells", "LabelHistograms", "MarginalTree", "Synthesiser"]
