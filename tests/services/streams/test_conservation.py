"""Frames without an outcome, or with two, are told; totals are the sums of the partitions."""

import pytest

from noisefloor_services.streams.epoch_store import Conservation


@pytest.mark.parametrize("missing", [-1, 0, 1])
def test_only_an_exact_account_is_conserved(missing: int) -> None:
    account = Conservation(15 + missing, 1, 2, 3, 4, 5, reports=99)
    assert (account.missing, account.is_conserved) == (missing, missing == 0)


def test_the_total_is_the_sum_of_every_outcome() -> None:
    parts = [Conservation(1, 2, 3, 4, 5, 6, 7), Conservation(10, 20, 30, 40, 50, 60, 70)]
    assert Conservation.total(parts) == Conservation(11, 22, 33, 44, 55, 66, 77)
    assert Conservation.total([]) == Conservation()
