"""What the paper on generated texts prints, and figures of independent scripts; none is measured.

Its figures of cosines and of privacy loss have no numbers that could be read off. Epsilon, delta,
noise, clipping bound, batch, k and sizes of the network are not printed.
"""

from collections.abc import Mapping
from types import MappingProxyType

CLASSIFIERS: Mapping[str, str] = MappingProxyType(
    {"logistic": "MLR", "svm-rbf": "SVM-RBF", "naive-bayes": "MNB", "tree": "DT-C4.5"}
)
"""As this project names them, and as the paper does."""

LABELS = ("NEG", "POS")
SYSTEMS = ("original", "dp-ed", "dpvg-ed")

Scores = Mapping[tuple[str, str, str], float]
"""F1 by system, classifier and label."""


def _table(**rows: tuple[float, float, float, float, float, float]) -> Scores:
    return MappingProxyType(
        {
            (system, name.replace("_", "-"), label): row[2 * place + (label == "NEG")]
            for name, row in rows.items()
            for place, system in enumerate(SYSTEMS)
            for label in LABELS
        }
    )


F1 = _table(
    logistic=(0.582, 0.681, 0.426, 0.622, 0.510, 0.648),
    svm_rbf=(0.642, 0.723, 0.577, 0.653, 0.609, 0.680),
    naive_bayes=(0.640, 0.755, 0.595, 0.661, 0.614, 0.691),
    tree=(0.609, 0.739, 0.536, 0.639, 0.570, 0.673),
)
"""Columns as printed: original, DP E-D, DPvG E-D, each POS before NEG."""

LOSS_BORDER = 0.8
"""Epsilon below which the paper finds the privacy loss of both systems equal."""

LARGEST_GAIN, SMALLEST_GAIN = ("logistic", "POS"), ("naive-bayes", "POS")
"""Of DPvG E-D over DP E-D: 0.084 and 0.019."""

EPOCHS, RATE, DROPOUT = 500, 0.001, 0.2
"""Of DP-Adam."""

DELTA = 1e-5

SCRIPT_DOCUMENTS, SCRIPT_BATCH, SCRIPT_SIGMA = 12_500, 256, 1.1
SCRIPT_EPSILONS = 22.92, 0.036
"""By Renyi accounting at 500 epochs: noise inside of 1/L, and outside of it."""

SCRIPT_SIGMAS: Mapping[int, Mapping[float, float]] = MappingProxyType(
    {500: {0.8: 15.9, 2.0: 6.9, 8.0: 2.2}, 20: {0.8: 3.3, 2.0: 1.6, 8.0: 0.77}}
)
"""Noise that an epsilon needs, by epochs."""

SCRIPT_PIECES, SCRIPT_TEXTS = 6_000_000, 25_000
SCRIPT_SEED_DELTAS: Mapping[int, float] = MappingProxyType({1: 0.0042, 5: 0.021})
"""By how often a word stands in one document alone: the chance that it comes up as a seed."""

SCRIPT_GROUP, SCRIPT_CLIMB = 81, (5, 5, 3)
"""Documents that one changes; of mentions in a document, k, and levels of parents."""
