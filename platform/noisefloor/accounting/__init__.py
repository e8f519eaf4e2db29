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
from noisefloor.accounting.chain import ChainedRecord, ChainTail, replay
from noisefloor.accounting.chained_ledger import (
    Appended,
    AppendStatus,
    ChainedLedger,
    SpendPreview,
    explained,
)
from noisefloor.accounting.composition import group, parallel, product_up, sequential, sum_up
from noisefloor.accounting.entries import (
    DELTA_UNITS,
    MICRO,
    Amount,
    LedgerEntry,
    StatementLine,
    sequential_as_written,
    total_as_written,
)
from noisefloor.accounting.file_ledger import FileLedger
from noisefloor.accounting.integer_noise import (
    continuous_multiplier_for,
    continuous_part,
    integer_guarantee,
    integer_sigma,
)
from noisefloor.accounting.ledger import Ledger, conflict
from noisefloor.accounting.ledger_copy import LedgerCopy
from noisefloor.accounting.lower_bound import epsilon_at_least
from noisefloor.accounting.privacy_filter import LossTotal, PrivacyFilter, filter_of
from noisefloor.accounting.release_loss import NANO, ReleaseLoss
from noisefloor.accounting.snapshot import (
    LedgerContents,
    decode_ledger,
    encode_ledger,
    read_entry,
)
from noisefloor.accounting.spending import (
    FORMAT,
    LARGEST_BUDGET,
    LedgerTerms,
    Spend,
    SpendReceipt,
    carried,
    check_text,
    followed,
)
from noisefloor.accounting.trial_selection import TrialCount, TrialSelection

__all__ = [
    "DELTA_UNITS",
    "FORMAT",
    "LARGEST_BUDGET",
    "MICRO",
    "NANO",
    "Amount",
    "AppendStatus",
    "Appended",
    "ChainTail",
    "ChainedLedger",
    "ChainedRecord",
    "FileLedger",
    "GaussianNoise",
    "LaplaceNoise",
    "Ledger",
    "LedgerContents",
    "LedgerCopy",
    "LedgerEntry",
    "LedgerTerms",
    "LossTotal",
    "PrivacyFilter",
    "ReleaseLoss",
    "SampledGaussian",
    "Spend",
    "SpendPreview",
    "SpendReceipt",
    "StatementLine",
    "TrialCount",
    "TrialSelection",
    "advantage",
    "binary_success",
    "carried",
    "check_text",
    "conflict",
    "continuous_multiplier_for",
    "continuous_part",
    "decode_ledger",
    "encode_ledger",
    "epsilon_at",
    "epsilon_at_least",
    "explained",
    "filter_of",
    "followed",
    "gaussian_delta",
    "gaussian_true_positive_rate",
    "group",
    "integer_guarantee",
    "integer_sigma",
    "noise_multiplier_for",
    "parallel",
    "product_up",
    "read_entry",
    "replay",
    "sequential",
    "sequential_as_written",
    "success",
    "sum_up",
    "total_as_written",
    "true_positive_rate",
]
