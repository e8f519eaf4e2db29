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
from noisefloor.accounting.composition import group, parallel, product_up, sequential, sum_up
from noisefloor.accounting.entries import (
    MICRO,
    Amount,
    LedgerEntry,
    StatementLine,
    debit_of,
    entry_of,
    sequential_as_written,
    total_as_written,
)
from noisefloor.accounting.ledger import LARGEST_BUDGET, Ledger
from noisefloor.accounting.lower_bound import epsilon_at_least
from noisefloor.accounting.snapshot import LedgerContents, decode_ledger, encode_ledger

__all__ = [
    "LARGEST_BUDGET",
    "MICRO",
    "Amount",
    "GaussianNoise",
    "LaplaceNoise",
    "Ledger",
    "LedgerContents",
    "LedgerEntry",
    "SampledGaussian",
    "StatementLine",
    "advantage",
    "binary_success",
    "debit_of",
    "decode_ledger",
    "encode_ledger",
    "entry_of",
    "epsilon_at",
    "epsilon_at_least",
    "gaussian_delta",
    "gaussian_true_positive_rate",
    "group",
    "noise_multiplier_for",
    "parallel",
    "product_up",
    "sequential",
    "sequential_as_written",
    "success",
    "sum_up",
    "total_as_written",
    "true_positive_rate",
]
