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

    def see(self, inputs: Symbols, reports: Symbols) -> None:
        """Count the reports by input and by output."""
        rows, columns = self.declared.shape
        codes = inputs.astype(np.int64) * columns + reports
        counts = np.bincount(codes, minlength=rows * columns).reshape(rows, columns)
        tried = np.broadcast_to(counts.sum(axis=1, keepdims=True), counts.shape)
        self.table.add("symbols by input and report", counts, tried, self.declared, self.planted)


def see_equal(table: FitTable, name: str, inputs: NDArray[np.generic], reports: object) -> None:
    """Count reports that differ from an input that is to be sent as it is: none may."""
    differ = np.asarray(inputs != np.asarray(reports))
    table.add(name, np.count_nonzero(differ), differ.size, 0.0)
