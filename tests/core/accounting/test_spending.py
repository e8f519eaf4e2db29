"""What may follow what in a ledger, and which request repeats a spend that is booked."""

from dataclasses import replace
from pathlib import Path

import pytest

from noisefloor.accounting import (
    Amount,
    ChainedRecord,
    FileLedger,
    GaussianNoise,
    Ledger,
    LedgerEntry,
    LedgerTerms,
    ReleaseLoss,
    carried,
)
from noisefloor.accounting.spending import Spend, followed, is_retry, misplaced
from noisefloor.errors import BadSnapshot, BrokenChain, SpendConflict
from noisefloor.privacy import Guarantee, Neighbours, TrustModel

RECORD = Neighbours.RECORD_ADD_REMOVE
TERMS = LedgerTerms.of(2.0, 1e-5, neighbours=RECORD, model=TrustModel.CENTRAL)
COST = Guarantee(0.5, RECORD, delta=1e-8, model=TrustModel.CENTRAL)
LOSS = ReleaseLoss((GaussianNoise(8.0577),))
NOTHING = Ledger.under(TERMS).total("visits")


def an_entry(spend_id: str, loss: ReleaseLoss | None = None) -> LedgerEntry:
    return Spend("visits", spend_id, COST, "histogram", loss=loss).entry(TERMS, NOTHING)


def written(record: ChainedRecord) -> bytes:
    return record.digest.encode() + b" " + record.content + b"\n"


def test_what_is_carried_over_comes_before_all_else_in_a_chain(tmp_path: Path) -> None:
    ledger = FileLedger.create(tmp_path, TERMS, lambda: 1_800_000_000.0)
    ledger.append_unchecked(carried(an_entry("old-1")))
    ledger.append_unchecked(carried(an_entry("old-2")))
    ledger.spend("visits", "new", COST, "histogram", loss=LOSS)
    path = tmp_path / "visits.log"
    before, (records, tail) = path.read_bytes(), ledger.verify("visits")
    for entry, rule in (
        (carried(an_entry("late")), "visits is carried over from format 1 and comes after others"),
        (replace(an_entry("other"), order=3), f"is not of Renyi order {records[2].entry.order}"),
    ):
        with pytest.raises(BadSnapshot, match=rule):
            ledger.append_unchecked(entry)
        assert path.read_bytes() == before
        path.write_bytes(before + written(tail.next(entry, tail.at)))
        with pytest.raises(BrokenChain, match=f"record 4 {rule.removeprefix('visits ')}"):
            ledger.verify("visits")
        path.write_bytes(before)
    assert not ledger.append_unchecked(carried(an_entry("old-2")))  # known: nothing to do
    with pytest.raises(SpendConflict):  # booked here as carried over, there as spent
        ledger.append_unchecked(an_entry("old-2"))


def test_what_is_carried_over_comes_first_in_memory_whatever_its_id() -> None:
    ledger = Ledger.under(TERMS)
    ledger.write_all([carried(an_entry("z-old"))])
    ledger.spend("visits", "a-new", COST, "histogram", loss=LOSS)
    snapshot = ledger.snapshot()
    again = Ledger.restore(snapshot)
    assert again.snapshot() == snapshot
    assert again.receipt("visits", "a-new") == ledger.receipt("visits", "a-new")
    late = Ledger.under(TERMS)
    late.write_all([replace(an_entry("free"), subject="films"), carried(an_entry("late"))])
    with pytest.raises(BadSnapshot, match="entry late of visits is carried over from format 1"):
        ledger.merge(late.snapshot())
    assert (ledger.snapshot(), ledger.subjects()) == (snapshot, ["visits"])
    # Both were granted under a filter of what their own ledger had left.
    other = Ledger.under(TERMS)
    other.write_all([carried(replace(an_entry("most"), debited=Amount(1_900_000)))])
    other.spend("visits", "rest", replace(COST, epsilon=0.01), "histogram")
    with pytest.raises(BadSnapshot, match=f"is not of Renyi order {an_entry('a').order}"):
        empty = Ledger.under(TERMS)
        empty.spend("visits", "first", COST, "histogram", loss=LOSS)
        empty.write_all(other.entries("visits")[1:])


def test_a_retry_of_what_was_carried_over_repeats_what_format_1_wrote(tmp_path: Path) -> None:
    booked = carried(an_entry("old", LOSS))
    memory = Ledger.under(TERMS)
    memory.write_all([booked])
    chained = FileLedger.create(tmp_path, TERMS)
    chained.append_unchecked(booked)
    for ledger in (memory, chained):
        for loss in (None, LOSS):
            assert ledger.spend("visits", "old", COST, "histogram", loss=loss) == booked
        assert ledger.spent("visits") == Amount.cost(COST)
        for change in (
            {"subject": "films"},
            {"release": "logistic"},
            {"cost": replace(COST, epsilon=0.4)},
            {"proved": replace(COST, epsilon=0.4)},
            {"count": 2},
        ):
            asked = {"subject": "visits", "cost": COST, "release": "histogram", **change}
            with pytest.raises(SpendConflict):
                ledger.spend(spend_id="old", **asked)  # type: ignore[arg-type]  # by keywords
        assert [one.spend_id for one in ledger.entries("visits")] == ["old"]


def test_only_a_spend_that_was_carried_over_is_compared_without_its_loss() -> None:
    entry = an_entry("s", LOSS)
    assert is_retry(entry, entry)
    assert is_retry(entry, carried(entry))
    assert not is_retry(carried(entry), entry)
    assert not is_retry(an_entry("s"), entry)
    assert not is_retry(entry, carried(replace(entry, reason="nothing")))
    assert misplaced(TERMS, NOTHING, entry) == misplaced(TERMS, NOTHING, carried(entry)) == ""
    assert followed(TERMS, NOTHING, carried(entry)).entries == 0
    assert followed(TERMS, NOTHING, entry).entries == 1
