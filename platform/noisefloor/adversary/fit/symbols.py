"""Symbols against a declared table of probabilities, given the symbol that was to be sent."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from noisefloor.adversary.fit.table import FitTable
from noisefloor.checks import Floats

Symbols = NDArray[np.integer]


@dataclass(slots=True)
class SymbolFit:
    """Tests of one flow of symbols.

    Attributes:
        declared: P(report | input), one row per input.
        planted: The same with noise a quarter too small, if that is to be found.
        table: The tests.
    """

    declared: Floats
    planted: Floats | None = None
    table: FitTable = field(default_factory=FitTable)
    _declared: Floats = field(init=False)
    _planted: Floats | None = field(init=False)

    def __post_init__(self) -> None:
        self._declared = self.declared.reshape(-1)
        self._planted = None if self.planted is None else self.planted.reshape(-1)

    def see(self, inputs: Symbols, reports: Symbols) -> None:
        """Count the reports by input and by output."""
        rows, columns = self.declared.shape
        codes = inputs.astype(np.int64) * columns + reports
        counts = np.bincount(codes, minlength=rows * columns)
        tried = np.repeat(counts.reshape(rows, columns).sum(axis=1), columns)
        name = "symbols by input and report"
        self.table.add(name, counts, tried, self._declared, self._planted)


def see_equal(table: FitTable, name: str, inputs: NDArray[np.generic], reports: object) -> None:
    """Count reports that differ from an input that is to be sent as it is: none may."""
    differ = np.asarray(inputs != np.asarray(reports))
    table.add(name, np.count_nonzero(differ), differ.size, 0.0)
