"""Orders of rows: random ones pass, and each way to keep an order is found."""

import numpy as np
import pytest
from numpy.typing import NDArray

from noisefloor.adversary.fit import FitTable, see_order
from noisefloor.randomness import SeededSource

ROWS = 1_024
Order = NDArray[np.int64]


def result_of(orders: list[Order], most: int = 2_048) -> str:
    table = FitTable()
    for order in orders:
        see_order(table, order, most)
    return table.result().misfit


def drawn(frames: int) -> list[Order]:
    return [SeededSource(3, "orders", frame).permutation(ROWS) for frame in range(frames)]


@pytest.mark.statistical
def test_random_orders_pass() -> None:
    """False alarm: 1e-10, the level of the table; 8 frames of 1,024 rows."""
    assert result_of(drawn(8)) == ""


@pytest.mark.statistical
def test_rows_that_keep_an_order_are_found() -> None:
    """The twin: orders of users, in reverse, and of users of one half before the other."""
    halves = [np.concatenate([one[one < ROWS // 2], one[one >= ROWS // 2]]) for one in drawn(8)]
    assert "order of users" in result_of([np.arange(ROWS)] * 8)
    assert "order of users" in result_of([np.arange(ROWS)[::-1]] * 8)
    assert "half a frame apart" in result_of(halves)


def test_only_so_many_rows_are_looked_at() -> None:
    table = FitTable()
    see_order(table, np.arange(ROWS), 100)
    assert {int(cells.trials[0]) for cells in table.cells.values()} == {50}
    see_order(table, np.arange(1), 100)
    assert {int(cells.trials[0]) for cells in table.cells.values()} == {50}
