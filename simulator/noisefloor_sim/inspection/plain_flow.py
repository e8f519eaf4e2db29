"""A flow of values that are sent as they are, because others know them or may know them."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from noisefloor.adversary.fit import FitResult, FitTable, see_equal
from noisefloor.wire import Kind
from noisefloor_sim.inspection.flow import Flow, LedgerPrice, SeenFrame

MOST_COMPARED = 4_096
"""Rows of a frame that are compared one by one: rows are in random order."""


class PlainFlow(Flow):
    """Values without noise: every row has to be what it was made of.

    The truth of a frame is the values of its only column, or a mapping of columns.

    Args:
        name: Of the flow.
        kind: Of the frames.
        epochs: In which frames are sent.
        columns: Every column that a frame may carry, and its type as Arrow writes it.
        price: What a report costs, if it is paid for.
    """

    def __init__(
        self,
        name: str,
        kind: Kind,
        epochs: range,
        columns: dict[str, str],
        price: LedgerPrice | None = None,
    ) -> None:
        self.epochs = epochs
        self._name, self._kind, self._columns, self._price = name, kind, columns, price
        self._table = FitTable()

    @property
    def name(self) -> str:
        """The name of the flow."""
        return self._name

    @property
    def columns(self) -> dict[str, str]:
        """As they are declared."""
        return self._columns

    @property
    def price(self) -> LedgerPrice | None:
        """What a report costs, if it is paid for."""
        return self._price

    @property
    def mechanism_name(self) -> str:
        """The name of the mechanism."""
        return "none"

    def kind_at(self, epoch: int) -> Kind:
        """Return the one kind."""
        return self._kind

    def inspect(self, seen: SeenFrame) -> None:
        """Compare rows with what they were made of."""
        some, truth = slice(0, MOST_COMPARED), seen.truth
        found = seen.frame.kind.decode(seen.frame.batch)
        if not isinstance(truth, Mapping):
            truth = dict.fromkeys(self._columns, truth)
        for name, values in found.items():
            if name not in truth:
                continue  # a column that is not declared is found by the tap
            made_of = np.asarray(truth[name])[seen.order[some]]
            said = f"values of {name} that are not what they were made of"
            see_equal(self._table, said, made_of, values[some])

    def fit(self) -> FitResult:
        """Test that no row differs; noise that is not there cannot be too small."""
        return replace(self._table.result(), finds_planted=True)
