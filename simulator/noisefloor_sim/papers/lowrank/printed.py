"""What the paper on low rank and sparsity prints, number by number; nothing here is measured.

Accuracies are percents on SST-2 with RoBERTa-base at epsilon 2. Its figure of accuracy over
epsilon has no numbers that could be read off, but for those that the text repeats.
"""

from collections.abc import Mapping
from types import MappingProxyType

SPARSITIES = (0.0, 0.1, 0.3, 0.5, 0.7)
RGP_RANKS, LORA_RANKS = (2, 4, 8, 16), (8, 16, 32, 64)
EPSILONS = (1.0, 2.0, 4.0, 8.0)
DELTA = 1e-5

Grid = Mapping[tuple[int, float], float]
"""Accuracy by rank and sparsity."""


def _grid(ranks: tuple[int, ...], *rows: tuple[float, ...]) -> Grid:
    return MappingProxyType(
        {
            (rank, share): value
            for share, row in zip(SPARSITIES, rows, strict=True)
            for rank, value in zip(ranks, row, strict=True)
        }
    )


TABLE_2 = _grid(
    RGP_RANKS,
    (83.9, 84.4, 86.8, 86.3),
    (84.9, 86.2, 86.7, 86.0),
    (86.0, 87.4, 87.9, 86.8),
    (87.2, 87.7, 88.3, 86.4),
    (86.5, 88.7, 86.3, 85.3),
)
"""RGP: rows are sparsities, columns ranks."""

TABLE_3 = _grid(
    LORA_RANKS,
    (90.7, 91.0, 91.2, 90.2),
    (90.5, 91.1, 91.1, 90.5),
    (90.2, 90.7, 90.9, 90.6),
    (81.8, 90.0, 90.6, 90.8),
    (50.9, 74.2, 89.8, 90.6),
)
"""LoRA: rows are sparsities, columns ranks."""

RGP_BASELINE, LORA_BASELINE = 8, 32
"""Ranks of RGP and LoRA without masks, wherever they are compared."""

RGP_CHOICE, LORA_CHOICE = (8, 0.5), (32, 0.1)
"""Rank and sparsity of the proposal on SST-2 (the paper's Table 1)."""

LISTED_EXAMPLES = 21
LISTED_FACTORS = (0.9727, 0.9805, 0.9678, 0.9023, 0.6670, 0.9531, 0.9473)
LISTED_MASKED = (0.7300,)
"""Clip factors below 1 of 21 examples, of low rank alone and with masks of 0.3 (Listing 1)."""

SST2_EXAMPLES, QNLI_EXAMPLES = 67_349, 104_743
SST2_RATE, SST2_STEPS = 0.0297, 673
"""Batches of 2,000 and 20 epochs."""

SIGMAS: Mapping[float, float] = MappingProxyType({1.0: 3.27, 2.0: 1.87, 4.0: 1.18, 8.0: 0.845})
"""Noise multipliers of Renyi accounting at a sampling rate of 0.0297 over 673 steps. The paper
prints none: these are of an independent script, to three digits."""

PARAMETERS_MILLIONS = 1.25
"""Of RoBERTa-base, as printed."""
