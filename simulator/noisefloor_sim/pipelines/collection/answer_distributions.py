"""The declared distribution of one answer, from epsilon and the number of symbols alone."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.adversary.audit import PLANTED_FACTOR as PLANTED
from noisefloor.checks import Floats
from noisefloor_sim.pipelines.collection.reference_inputs import STEPS, Inputs

_BINS = 8
"""Parts of the window, and of the rest of the line, that are counted apart."""

_INPUTS = 4
"""Parts of the range of inputs that are counted apart."""

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class SymbolAnswer:
    """An answer that is one of a few symbols.

    Attributes:
        table: P(symbol | input); the last column is for what is no symbol, with probability 0.
        planted: The same with noise a quarter too small.
        truth: The probability that the input itself is sent.
        planted_truth: The same with noise a quarter too small.
    """

    table: Floats
    planted: Floats
    truth: float
    planted_truth: float

    @property
    def symbols(self) -> int:
        """How many there are."""
        return int(self.table.shape[1] - 1)

    def cells(self, inputs: Inputs, reports: Inputs) -> tuple[Inputs, Inputs, Flags]:
        """Return row and column of the table for each answer, and whether it is the input."""
        return inputs, np.minimum(reports, self.symbols), reports == inputs

    def log_likelihood(self, inputs: Inputs, reports: Inputs) -> Floats:
        """Return ln P(report | input) of each answer."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.table)
        return np.asarray(logs[inputs, np.minimum(reports, self.symbols)])


def truth_of(symbols: int, epsilon: float) -> float:
    """Return the chance of the truth among n symbols: e^epsilon / (e^epsilon + n - 1)."""
    return 1 / (1 + (symbols - 1) * math.exp(-epsilon))


def response(symbols: int, epsilon: float) -> SymbolAnswer:
    """Return randomised response: the truth, or any other symbol with equal chances."""
    return SymbolAnswer(
        _response_table(symbols, epsilon),
        _response_table(symbols, PLANTED * epsilon),
        truth_of(symbols, epsilon),
        truth_of(symbols, PLANTED * epsilon),
    )


def _response_table(symbols: int, epsilon: float) -> Floats:
    truth = truth_of(symbols, epsilon)
    table = np.full((symbols, symbols + 1), (1 - truth) / (symbols - 1))
    np.fill_diagonal(table, truth)
    table[:, -1] = 0.0
    return table


def printed(size: int, epsilon: float) -> SymbolAnswer:
    """Return the paper's response: lies are among the classes 1 to n, and never 0."""
    return SymbolAnswer(
        _printed_table(size, epsilon),
        _printed_table(size, PLANTED * epsilon),
        truth_of(size, epsilon),
        truth_of(size, PLANTED * epsilon),
    )


def _printed_table(size: int, epsilon: float) -> Floats:
    truth = truth_of(size, epsilon)
    table = np.full((size + 1, size + 2), (1 - truth) / (size - 1))
    table[0] = (1 - truth) / size
    table[:, 0] = 0.0
    np.fill_diagonal(table, truth)
    table[:, -1] = 0.0
    return table


def as_it_is(symbols: int) -> SymbolAnswer:
    """Return an answer without noise."""
    table = np.eye(symbols, symbols + 1)
    return SymbolAnswer(table, table, 1.0, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class WindowAnswer:
    """An answer of the piecewise mechanism: a cell of a line, mostly from a window.

    Cells of the window are equally likely, and so are all others: where the cell lies in the
    window, or among the others, has one distribution whatever the input is.

    Attributes:
        width: Of the window.
        truth: The probability that the cell lies in it.
        table: P(part | part of the input's range): parts of the window, then of the rest, then
            what is no cell.
        planted: The same with noise a quarter too small.
    """

    width: int
    truth: float
    table: Floats
    planted: Floats

    @property
    def planted_truth(self) -> float:
        """The probability that the cell lies in it with noise a quarter too small."""
        return float(self.planted[0, :_BINS].sum())

    @property
    def symbols(self) -> int:
        """How many cells the line has."""
        return STEPS + self.width

    def cells(self, inputs: Inputs, reports: Inputs) -> tuple[Inputs, Inputs, Flags]:
        """Return row and column of the table for each answer, and whether it is in the window."""
        offset = reports - inputs
        near = (offset >= 0) & (offset < self.width)
        other = np.where(offset < 0, reports, reports - self.width)
        part = np.where(near, offset * _BINS // self.width, _BINS + other * _BINS // STEPS)
        return inputs * _INPUTS // (STEPS + 1), np.minimum(part, 2 * _BINS), near

    def log_likelihood(self, inputs: Inputs, reports: Inputs) -> Floats:
        """Return ln P(cell | position) of each answer."""
        offset = reports - inputs
        near = (offset >= 0) & (offset < self.width)
        return np.where(
            near, math.log(self.truth / self.width), math.log((1 - self.truth) / STEPS)
        )


def window(epsilon: float) -> WindowAnswer:
    """Return the piecewise mechanism: a window of e^(-epsilon / 2) of the line of positions."""
    width, truth = _window(epsilon)
    parts = np.bincount(np.arange(width) * _BINS // width, minlength=_BINS) / width
    rest = np.full(_BINS, (1 - truth) / _BINS)
    row = np.concatenate([truth * parts, rest, [0.0]])
    narrow, inside = _window(PLANTED * epsilon)
    # Behind a narrower window, cells of the declared one are as likely as all others.
    near = np.where(np.arange(width) < narrow, inside / narrow, (1 - inside) / STEPS)
    window_parts = np.bincount(np.arange(width) * _BINS // width, near, minlength=_BINS)
    others = np.full(_BINS, (1 - window_parts.sum()) / _BINS)
    fault = np.concatenate([window_parts, others, [0.0]])
    return WindowAnswer(width, truth, np.tile(row, (_INPUTS, 1)), np.tile(fault, (_INPUTS, 1)))


def _window(epsilon: float) -> tuple[int, float]:
    width = max(1, round(math.exp(-epsilon / 2) * STEPS))
    return width, 1 / (1 + STEPS / width * math.exp(-epsilon))


Answer = SymbolAnswer | WindowAnswer
