"""Wallets: one budget over several devices, never overspent, whatever the silence."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from noisefloor_sim.world.budgets import BudgetAccount, DeviceBudgets, SpendRecord, in_contact

OWNS = np.array([[True, True, False], [True, False, False], [False, True, True]])


def test_shares_add_up_to_the_budget() -> None:
    wallets = DeviceBudgets.open(OWNS, 1_000_001)
    assert wallets.left.sum(axis=1).tolist() == [1_000_001] * 3
    assert (wallets.left[~OWNS] == 0).all()


def test_devices_in_contact_pool_what_they_hold() -> None:
    wallets = DeviceBudgets.open(OWNS, 100)
    together = np.array([[True, True, False], [True, False, False], [False, True, False]])
    assert wallets.spend(together, 80).tolist() == [1, 1, 0]
    assert wallets.left.sum(axis=1).tolist() == [20, 20, 100]


def test_as_much_is_granted_as_is_requested_and_covered() -> None:
    wallets = DeviceBudgets.open(OWNS, 100)
    requested = np.array([2, 7, 0])
    assert wallets.spend(OWNS, 30, requested).tolist() == [2, 3, 0]
    assert wallets.left.sum(axis=1).tolist() == [40, 10, 100]


def test_an_account_tells_its_flows_apart_and_writes_down_the_watched_user() -> None:
    account = BudgetAccount.open(OWNS, 100, watched=1)
    account.spend(0, "ad request", OWNS, 30, np.array([1, 4, 2]))
    account.spend(0, "click report", OWNS, 20)
    account.spend(1, "click report", np.zeros_like(OWNS), 20)
    assert account.spent == {"ad request": 180, "click report": 40}
    assert account.lines == [
        SpendRecord(0, "ad request", granted=3, refused=1, micro=90),
        SpendRecord(0, "click report", granted=0, refused=1, micro=0),
    ]
    assert account.device_budgets.left.sum() + sum(account.spent.values()) == 300


def test_a_refused_spend_changes_nothing() -> None:
    wallets = DeviceBudgets.open(OWNS, 10)
    before = wallets.left.copy()
    assert not wallets.spend(OWNS, 11).any()
    assert np.array_equal(wallets.left, before)


def test_nobody_in_contact_spends_nothing_even_for_free() -> None:
    wallets = DeviceBudgets.open(OWNS, 10)
    assert not wallets.spend(np.zeros_like(OWNS), 0).any()


@given(
    owns=npst.arrays(np.bool_, (8, 3)),
    contacts=npst.arrays(np.bool_, (12, 8, 3)),
    cost=st.integers(1, 400),
)
def test_no_pattern_of_silence_spends_more_than_the_budget(
    owns: np.ndarray[tuple[int, int], np.dtype[np.bool_]],
    contacts: np.ndarray[tuple[int, int, int], np.dtype[np.bool_]],
    cost: int,
) -> None:
    owns[~owns.any(axis=1), 0] = True
    wallets = DeviceBudgets.open(owns, 1_000)
    paid = np.zeros(8, dtype=np.int64)
    for contact in contacts:
        paid += cost * wallets.spend(contact & owns, cost)
        assert (wallets.left >= 0).all()
    assert (paid <= 1_000).all()
    assert np.array_equal(wallets.left.sum(axis=1), 1_000 - paid)


def test_contact_needs_a_device_that_speaks_and_a_user_who_is_there() -> None:
    silent = np.array([[True, False, False], [False, True, True], [True, True, False]])
    present = np.array([True, False, True])
    expected = [[False, True, False], [False, False, False], [False, False, True]]
    assert in_contact(OWNS, silent, present).tolist() == expected
