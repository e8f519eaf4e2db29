"""Accounting: how losses add up, what they cost together, and who has spent what.

``composition`` adds guarantees, ``accountant`` adds noisy releases tightly, ``bounds`` says what
an attack can reach at most, ``ledger`` keeps budgets. Nothing here draws noise. The heavy
libraries (scipy, dp-accounting) are imported on first use, not with this package.
"""

from noisefloor.accounting.accountant import (
    GaussianNoise,
    LaplaceNoise,
    SampledGaussian,
    epsilon_at,
    noise_multiplier_for,
)
from noisefloor.accounting.bounds import (
    advantage,
    binary_success,
    gaussian_delta,
    gaussian_true_positive_rate,
    success,
    true_positive_rate,
)
from noisefloor.accounting.composition import group, parallel, sequential
from noisefloor.accounting.entry import Amount, Entry, Line
from noisefloor.accounting.ledger import Ledger

__all__ = [
    "Amount",
    "Entry",
    "GaussianNoise",
    "LaplaceNoise",
    "Ledger",
    "Line",
    "SampledGaussian",
    "advantage",
    "binary_success",
    "epsilon_at",
    "gaussian_delta",
    "gaussian_true_positive_rate",
    "group",
    "noise_multiplier_for",
    "parallel",
    "sequential",
    "success",
    "true_positive_rate",
]
