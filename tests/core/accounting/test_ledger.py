"""The ledger refuses before it spends, counts in whole numbers and survives a round trip."""

import hashlib
import json
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisefloor.accounting import (
    Amount,
    Ledger,
    StatementLine,
    sequential_as_written,
    sum_up,
    total_as_written,
)
from noisefloor.errors import (
    BadParameter,
    BadSnapshot,
    BudgetExceeded,
    IncompatibleGuarantees,
    SpendConflict,
)
from noisefloor.privacy import Guarantee, Neighbours, TrustModel

USER = Neighbours.USER
HALF = Guarantee(0.5, USER)
NOTHING = Guarantee.none("noise was never added", USER)

costs = st.builds(
    Guarantee, st.floats(0, 1.5), st.just(USER), delta=st.sampled_from([0, 1e-7, 1e-6])
)
spends = st.tuples(
    st.sampled_from(["ann", "bob"]),
    st.sampled_from(["clicks", "views", "réclame"]),
    costs,
    st.sampled_from([None, NOTHING, HALF]),
    st.integers(1, 3),
)
histories = st.lists(spends, max_size=12)


def a_ledger(epsilon: float = 2.0, delta: float = 2e-6) -> Ledger:
    return Ledger(epsilon, delta, neighbours=USER)


def ledger_of(history: list[Any], prefix: str = "id") -> Ledger:
    ledger = a_ledger()
    for place, (subject, release, cost, proved, count) in enumerate(history):
        try:
            ledger.spend(subject, f"{prefix}{place}", cost, release, proved, count)
        except BudgetExceeded:
            continue
    return ledger


@given(histories)
def test_no_history_passes_the_budget_or_falls_below_zero(history: list[Any]) -> None:
    ledger = ledger_of(history)
    for subject in ledger.subjects():
        assert ledger.spent(subject).fits(ledger.budget)
        assert ledger.spent(subject) + ledger.left(subject) == ledger.budget
        assert min(ledger.left(subject).micro_epsilon, ledger.left(subject).delta_units) >= 0
        assert ledger.spent(subject).micro_epsilon == sum(
            line.micro_epsilon for line in ledger.what_spent(subject)
        )


@given(histories, spends)
def test_a_refused_spend_changes_no_byte_and_the_dry_run_foretells_it(
    history: list[Any], spend: Any
) -> None:
    ledger = ledger_of(history)
    before = ledger.snapshot()
    subject, release, cost, proved, count = spend
    allowed = ledger.can_spend(subject, cost, count)
    assert ledger.snapshot() == before
    try:
        ledger.spend(subject, "new", cost, release, proved, count)
    except BudgetExceeded:
        assert not allowed
        assert ledger.snapshot() == before
    else:
        assert allowed
        assert ledger.snapshot() != before


@given(histories)
def test_a_retry_is_free_and_returns_the_first_entry(history: list[Any]) -> None:
    ledger = a_ledger()
    for place, (subject, release, cost, proved, count) in enumerate(history):
        if not ledger.can_spend(subject, cost, count):
            continue
        first = ledger.spend(subject, str(place), cost, release, proved, count)
        before = ledger.snapshot()
        assert ledger.spend(subject, str(place), cost, release, proved, count) is first
        assert ledger.snapshot() == before


def test_a_retry_is_free_even_when_nothing_is_left() -> None:
    ledger = a_ledger(0.5)
    first = ledger.spend("ann", "a", HALF, "clicks")
    assert ledger.spend("ann", "a", HALF, "clicks") is first
    assert ledger.left("ann").micro_epsilon == 0


@given(histories)
def test_restore_undoes_snapshot(history: list[Any]) -> None:
    ledger = ledger_of(history)
    twin = Ledger.restore(ledger.snapshot())
    assert twin.snapshot() == ledger.snapshot()
    for subject in ledger.subjects():
        assert twin.spent(subject) == ledger.spent(subject)
        assert twin.proved(subject) == ledger.proved(subject)
        assert twin.why(subject) == ledger.why(subject)


@given(histories, histories)
def test_merge_never_lowers_and_does_not_depend_on_who_merges(
    ours: list[Any], theirs: list[Any]
) -> None:
    one, other = ledger_of(ours, "a"), ledger_of(theirs, "b")
    first, second = one.snapshot(), other.snapshot()
    before = {subject: one.spent(subject) for subject in ("ann", "bob")}
    one.merge(second)
    other.merge(first)
    assert one.snapshot() == other.snapshot()
    for subject, amount in before.items():
        assert amount.fits(one.spent(subject))
        assert min(one.left(subject).micro_epsilon, one.left(subject).delta_units) >= 0
    again = one.snapshot()
    one.merge(second)
    assert one.snapshot() == again == Ledger.restore(again).snapshot()


def test_two_copies_that_both_spent_are_over_the_budget_and_stay_shut() -> None:
    one, other = a_ledger(0.5), a_ledger(0.5)
    one.spend("ann", "a", HALF, "clicks")
    other.spend("ann", "b", HALF, "clicks")
    one.merge(other.snapshot())
    assert one.spent("ann") == Amount(1_000_000)
    assert one.left("ann").micro_epsilon == 0
    assert not one.can_spend("ann", Guarantee(1e-9, USER))
    with pytest.raises(BudgetExceeded, match="more was spent than it holds"):
        one.spend("ann", "c", Guarantee(0.0, USER), "clicks")


def test_merge_refuses_a_conflict_or_another_ledger_and_changes_nothing() -> None:
    ledger, other = a_ledger(), a_ledger()
    ledger.spend("ann", "z", HALF, "clicks")
    other.spend("ann", "a", HALF, "clicks")
    other.spend("ann", "z", HALF, "views")
    before = ledger.snapshot()
    with pytest.raises(SpendConflict):
        ledger.merge(other.snapshot())
    with pytest.raises(BadSnapshot, match="budget"):
        ledger.merge(a_ledger(3.0).snapshot())
    with pytest.raises(BadSnapshot, match="model"):
        ledger.merge(Ledger(2.0, 2e-6, neighbours=USER, model=TrustModel.CENTRAL).snapshot())
    assert ledger.snapshot() == before


@given(st.floats(0, 1e6), st.floats(0, 1))
def test_costs_are_rounded_up_and_budgets_down(epsilon: float, delta: float) -> None:
    cost, budget = (
        Amount.cost(Guarantee(epsilon, USER, delta=delta)),
        Amount.budget(epsilon, delta),
    )
    exact = Fraction(str(epsilon)) * 10**6
    assert budget.micro_epsilon <= exact <= cost.micro_epsilon <= budget.micro_epsilon + 1
    exact = Fraction(str(delta)) * 10**18
    assert budget.delta_units <= exact <= cost.delta_units <= budget.delta_units + 1


def test_floats_are_taken_as_they_are_written() -> None:
    """0.1 lies above one tenth as a float and 0.3 below three; ten spends of 0.1 are 1.0."""
    assert Amount.cost(Guarantee(0.1, USER)).micro_epsilon == 100_000
    assert Amount.cost(Guarantee(0.1, USER), 3).micro_epsilon == 300_000
    assert Amount.budget(0.3, 0).micro_epsilon == 300_000
    assert Amount.cost(Guarantee(0.1000001, USER)).micro_epsilon == 100_001
    assert Amount.budget(0.2999999, 0).micro_epsilon == 299_999
    assert Amount.cost(Guarantee(1e-300, USER)).micro_epsilon == 1


@pytest.mark.parametrize(
    "change",
    [
        {"subject": "bob"},
        {"cost": Guarantee(0.4, USER)},
        {"release": "views"},
        {"count": 2},
        {"proved": NOTHING},
    ],
)
def test_the_same_id_with_another_content_is_a_conflict(change: dict[str, Any]) -> None:
    ledger = a_ledger()
    spend = {"subject": "ann", "spend_id": "a", "cost": HALF, "release": "clicks"}
    ledger.spend(**spend)  # type: ignore[arg-type]  # a table of keywords
    before = ledger.snapshot()
    with pytest.raises(SpendConflict, match="Spend a "):
        ledger.spend(**{**spend, **change})
    assert ledger.snapshot() == before


def test_unlike_or_infinite_costs_are_refused_and_change_nothing() -> None:
    ledger = a_ledger()
    before = ledger.snapshot()
    with pytest.raises(IncompatibleGuarantees, match="group"):
        ledger.spend("ann", "a", Guarantee(0.1, Neighbours.ITEM), "clicks")
    with pytest.raises(IncompatibleGuarantees, match="central"):
        ledger.spend("ann", "a", Guarantee(0.1, USER, model=TrustModel.CENTRAL), "clicks")
    with pytest.raises(IncompatibleGuarantees):
        ledger.spend("ann", "a", HALF, "clicks", proved=Guarantee(1, Neighbours.BIT))
    for cost in (Guarantee(0.1, Neighbours.ITEM), Guarantee(0.1, USER, model=TrustModel.CENTRAL)):
        with pytest.raises(
            IncompatibleGuarantees
        ):  # a proof of the right relation does not cover it
            ledger.spend("ann", "a", cost, "clicks", proved=HALF)
        with pytest.raises(IncompatibleGuarantees):
            ledger.can_spend("ann", cost)
    with pytest.raises(BudgetExceeded, match="never added"):
        ledger.spend("ann", "a", NOTHING, "clicks")
    with pytest.raises(BadParameter, match="count"):
        ledger.spend("ann", "a", HALF, "clicks", count=0)
    with pytest.raises(BadParameter, match="subject"):
        ledger.spend("", "a", HALF, "clicks")
    assert not ledger.can_spend("ann", NOTHING)
    assert ledger.snapshot() == before


@pytest.mark.parametrize(
    ("epsilon", "delta", "named"),
    [
        (0.25, 1.5e-6, "delta ran out: 1.5e-06 asked for, 1e-06 left"),
        (1.75, 1e-6, "epsilon ran out: 1.75 asked for, 1.5 left"),
        (1.500001, 0.0, "epsilon ran out: 1.500001 asked for, 1.5 left"),
        (0.0, 1.000000001e-6, "delta ran out: 1.000000001e-06 asked for, 1e-06 left"),
        (
            2.0,
            2e-6,
            "epsilon ran out: 2 asked for, 1.5 left; delta ran out: 2e-06 asked for, 1e-06 left",
        ),
    ],
)
def test_a_refusal_names_what_ran_out(epsilon: float, delta: float, named: str) -> None:
    ledger = a_ledger()
    ledger.spend("ann", "a", Guarantee(0.5, USER, delta=1e-6), "clicks")
    with pytest.raises(BudgetExceeded) as refusal:
        ledger.spend("ann", "b", Guarantee(epsilon, USER, delta=delta), "clicks")
    assert str(refusal.value).startswith(f"Budget of ann exceeded: {named}; ")
    assert "; nothing was spent. Ask" in str(refusal.value)
    # What is left of epsilon, with a delta within the hundredth of the plain sum.
    assert ledger.can_spend("ann", Guarantee(1.5, USER)) is False


def test_what_was_proved_stands_beside_what_was_debited() -> None:
    ledger = a_ledger()
    ledger.spend("ann", "a", HALF, "clicks", proved=Guarantee(5.0, USER), count=2)
    assert ledger.spent("ann") == Amount(1_000_000)
    assert ledger.proved("ann").epsilon == 10
    ledger.spend("ann", "b", HALF, "views", proved=NOTHING)
    assert not ledger.proved("ann").is_finite
    assert ledger.proved("ann").reason == "noise was never added"
    ledger.spend("bob", "c", HALF, "views", proved=Guarantee(1e300, USER))
    assert not ledger.proved("bob").is_finite
    assert ledger.proved("nobody") == Guarantee(0, USER)


def test_the_ledger_says_what_a_budget_went_into() -> None:
    ledger = a_ledger()
    ledger.spend("ann", "a", HALF, "views", proved=NOTHING)
    ledger.spend("ann", "b", HALF, "clicks", count=2)
    ledger.spend("ann", "c", HALF, "clicks")
    assert ledger.what_spent("ann") == [
        StatementLine("clicks", 3, 1_500_000, 0, 0.75),
        StatementLine("views", 1, 500_000, 0, 0.25),
    ]
    assert ledger.why("ann") == (
        "ann has spent epsilon 2.000000 of epsilon 2.000000, delta 2e-06; epsilon 0.000000, "
        "delta 2e-06 is left. By release: clicks took epsilon 1.500000 in 3 (75%), views took "
        "epsilon 0.500000 in 1 (25%). Proved of each, added up: nothing (noise was never added)."
    )
    assert "nothing" in ledger.why("bob")
    assert [entry.spend_id for entry in ledger.entries("ann")] == ["a", "b", "c"]


def a_body() -> dict[str, Any]:
    ledger = a_ledger()
    ledger.spend("ann", "a", HALF, "clicks", proved=NOTHING)
    body: dict[str, Any] = json.loads(ledger.snapshot())["body"]
    return body


def sealed(body: object) -> bytes:
    """Write a body with a checksum that fits it."""

    def dump(value: object) -> bytes:
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()

    return dump({"body": body, "checksum": hashlib.sha256(dump(body)).hexdigest()})


def test_infinity_is_written_as_a_word_and_the_seal_of_the_tests_is_right() -> None:
    body = a_body()
    assert body["entries"][0]["proved"] == "inf"
    assert Ledger.restore(sealed(body)).spent("ann") == Amount(500_000)


BREAKS: list[tuple[str, Callable[[dict[str, Any]], object]]] = [
    ("version", lambda body: body.update(version=3)),
    ("version", lambda body: body.update(version=True)),
    ("neighbours", lambda body: body.update(neighbours="cousins")),
    ("neighbours", lambda body: body.update(neighbours=[])),
    ("model", lambda body: body.pop("model")),
    ("budget", lambda body: body.update(budget=[1.5, 0])),
    ("budget", lambda body: body.update(budget=[True, 0])),
    ("body", lambda body: body.update(more=1)),
    ("entries", lambda body: body.update(entries={})),
    ("entries[0].spend_id", lambda body: body["entries"][0].update(spend_id="")),
    ("entries[0].count", lambda body: body["entries"][0].update(count=0)),
    ("entries[0].debited", lambda body: body["entries"][0].update(debited=[-1, 0])),
    ("entries[0].proved", lambda body: body["entries"][0].update(proved="infinite")),
    ("entries[0].reason", lambda body: body["entries"][0].update(reason="")),
    ("entries[1].spend_id", lambda body: body["entries"].append(body["entries"][0])),
    ("subject", lambda body: body["entries"][0].pop("subject")),
]


@pytest.mark.parametrize(("field", "damage"), BREAKS)
def test_a_malformed_field_is_named(
    field: str, damage: Callable[[dict[str, Any]], object]
) -> None:
    body = a_body()
    damage(body)
    with pytest.raises(BadSnapshot) as refusal:
        Ledger.restore(sealed(body))
    assert str(refusal.value).startswith(f"Ledger snapshot: {field} ")


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"\xff", b"[" * 100_000, b'{"body":1}'])
def test_bytes_that_are_no_snapshot_are_refused(data: bytes) -> None:
    with pytest.raises(BadSnapshot):
        Ledger.restore(data)


@given(st.data())
def test_any_changed_byte_is_found(data: st.DataObject) -> None:
    sound = sealed(a_body())
    place = data.draw(st.integers(0, len(sound) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda value: value != sound[place]))
    with pytest.raises(BadSnapshot):
        Ledger.restore(sound[:place] + bytes([byte]) + sound[place + 1 :])


def test_a_budget_that_is_no_budget_is_refused() -> None:
    for epsilon, delta in [(-1.0, 0.0), (math.inf, 0.0), (math.nan, 0.0), (1.0, 1.5), (1e10, 0)]:
        with pytest.raises(BadParameter):
            Ledger(epsilon, delta, neighbours=USER)


@given(st.lists(st.tuples(st.floats(0, 1e6), st.integers(0, 1000)), max_size=6))
def test_numbers_add_up_as_they_are_written(amounts: list[tuple[float, int]]) -> None:
    exact = sum((Fraction(repr(value)) * count for value, count in amounts), Fraction(0))
    found = total_as_written(amounts)
    assert Fraction(repr(found)) >= exact
    assert found <= math.nextafter(float(exact), math.inf)


def test_a_budget_of_three_tenths_covers_three_releases_of_one_tenth() -> None:
    assert total_as_written([(0.1, 3)]) == 0.3
    assert sum_up([0.1] * 3) > 0.3
    tenth = Guarantee(0.1, Neighbours.USER, delta=0.1)
    whole = sequential_as_written([tenth] * 3)
    assert (whole.epsilon, whole.delta) == (0.3, 0.3)
    assert not sequential_as_written([tenth, Guarantee.none("open", Neighbours.USER)]).is_finite
    assert math.isinf(total_as_written([(1e308, 10)]))
