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
from noisefloor.adversary.fit.uniforms import (
    Distribution,
    SeenUniforms,
    UniformFit,
    laplace_fault,
    raised_fault,
    raised_uniforms,
)

__all__ = [
    "LEVEL",
    "BitDistribution",
    "BitVectorFit",
    "Distribution",
    "FitResult",
    "FitTable",
    "SeenRows",
    "SeenUniforms",
    "SymbolFit",
    "UniformFit",
    "laplace_fault",
    "raised_fault",
    "raised_uniforms",
    "row_sums",
    "see_equal",
    "see_order",
    "two_sided",
]
