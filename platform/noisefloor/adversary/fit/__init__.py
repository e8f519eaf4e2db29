"""The fit of received reports to the distribution that is declared of them, by exact tests."""

from noisefloor.adversary.fit.bit_vectors import (
    BitDistribution,
    BitVectorFit,
    SeenRows,
    row_sums,
)
from noisefloor.adversary.fit.orders import see_order
from noisefloor.adversary.fit.symbols import SymbolFit, see_equal
from noisefloor.adversary.fit.table import LEVEL, FitResult, FitTable, two_sided

__all__ = [
    "LEVEL",
    "BitDistribution",
    "BitVectorFit",
    "FitResult",
    "FitTable",
    "SeenRows",
    "SymbolFit",
    "row_sums",
    "see_equal",
    "see_order",
    "two_sided",
]
