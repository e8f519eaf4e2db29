"""The ledger of a single machine: the same answers, in a folder, for several processes."""

import hashlib
import multiprocessing
import os
import re
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from noisefloor.accounting import (
    Amount,
    FileLedger,
    GaussianNoise,
    Ledger,
    LedgerTerms,
    ReleaseLoss,
    explained,
)
from noisefloor.errors import (
    BadParameter,
    BrokenChain,
    BudgetExceeded,
    ClockWentBack,
    LedgerAbsent,
    SpendConflict,
    UnlikeTerms,
)
from noisefloor.privacy import Guarantee, Neighbours, TrustModel

RECORD = Neighbours.RECORD_ADD_REMOVE
TERMS = LedgerTerms.of(2.0, 1e-5, neighbours=RECORD, model=TrustModel.CENTRAL)
COST = Guarantee(0.5, RECORD, delta=1e-6, model=TrustModel.CENTRAL)
LOSS = ReleaseLoss((GaussianNoise(8.0577),))


def a_ledger(folder: Path, clock: float = 1_800_000_000.0) -> FileLedger:
    return FileLedger.create(folder, TERMS, lambda: clock)


def three(folder: Path) -> FileLedger:
    ledger = a_ledger(folder)
    for number in range(3):
        ledger.spend("visits", f"v-{number}", COST, "histogram", loss=LOSS)
    return ledger


def test_it_answers_as_the_ledger_in_memory(tmp_path: Path) -> None:
    ours = a_ledger(tmp_path / "ledger")
    theirs = Ledger(2.0, 1e-5, neighbours=RECORD, model=TrustModel.CENTRAL)
    granted = []
    for number in range(16):
        for ledger in (ours, theirs):
            try:
                ledger.spend("visits", f"v-{number}", COST, "histogram", loss=LOSS)
                granted.append((number, True))
            except BudgetExceeded as refused:
                granted.append((number, str(refused)))  # type: ignore[arg-type]  # text or True
    assert granted[::2] == granted[1::2]
    assert [is_granted for _, is_granted in granted[::2]].count(True) == 14
    assert ours.snapshot() == theirs.snapshot()
    for question in ("spent", "left", "debited", "entries", "proved", "what_spent", "why"):
        assert getattr(ours, question)("visits") == getattr(theirs, question)("visits")
    receipt = ours.receipt("visits", "v-3")
    assert receipt.total == theirs.receipt("visits", "v-3").total
    assert (receipt.position, receipt.at) == (4, "2027-01-15T08:00:00Z")
    assert receipt.head == ours.verify("visits")[0][3].digest
    with pytest.raises(KeyError):
        ours.receipt("visits", "none")


def test_a_retry_is_free_and_another_spend_of_the_id_is_refused(tmp_path: Path) -> None:
    ledger = three(tmp_path)
    before = (tmp_path / "visits.log").read_bytes()
    again = FileLedger.open(tmp_path, TERMS, lambda: 0.0)  # the clock went back: a retry is free
    assert again.spend("visits", "v-1", COST, "histogram", loss=LOSS).spend_id == "v-1"
    with pytest.raises(SpendConflict):
        ledger.spend("visits", "v-1", replace(COST, epsilon=0.4), "histogram", loss=LOSS)
    with pytest.raises(SpendConflict):  # with less noise, a retry is another spend
        ledger.spend("visits", "v-1", COST, "histogram")
    with pytest.raises(ClockWentBack, match="nothing was spent"):
        again.spend("visits", "v-9", COST, "histogram", loss=LOSS)
    assert (tmp_path / "visits.log").read_bytes() == before
    assert stat.S_IMODE((tmp_path / "visits.log").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("changed", "was changed"),
        ("missing", "record 2 says that it is record 3: one is missing, or two are swapped"),
        ("swapped", "record 1 says that it is record 2"),
        ("another", "belongs to another data set"),
        ("terms", "record 1 does not follow: the record before it was changed, or the terms"),
    ],
)
def test_a_tampered_log_is_refused_in_its_own_words(tmp_path: Path, place: str, says: str) -> None:
    ledger = three(tmp_path)
    path = tmp_path / "visits.log"
    first, second, third = path.read_bytes().splitlines(keepends=True)
    subject, other = "visits", ledger
    if place == "changed":
        path.write_bytes(first + second.replace(b"500000", b"400000") + third)
    elif place == "missing":
        path.write_bytes(first + third)
    elif place == "swapped":
        path.write_bytes(second + first + third)
    elif place == "another":
        path.rename(tmp_path / "films.log")
        subject = "films"
    else:
        rich = replace(TERMS, budget=Amount.budget(9.0, 1e-5))
        other = FileLedger(tmp_path, rich)
    with pytest.raises(BrokenChain, match=says):
        other.verify(subject)
    forged = {one.name: one.read_bytes() for one in tmp_path.iterdir()}
    anew = FileLedger(tmp_path, other.terms)
    with pytest.raises(BrokenChain, match=says):  # nothing is spent on such a chain
        anew.spend(subject, "v-new", COST, "histogram", loss=LOSS)
    assert {one.name: one.read_bytes() for one in tmp_path.iterdir()} == forged


def test_a_total_that_is_forged_with_all_its_hashes_is_found(tmp_path: Path) -> None:
    """Somebody who writes the log anew cannot lower a total: its entries have to add up."""
    ledger = three(tmp_path)
    records, _ = ledger.verify("visits")
    cheap = replace(records[2], total=records[0].total)
    lines = [*records[:2], cheap]
    data = b"".join(one.digest.encode() + b" " + one.content + b"\n" for one in lines)
    (tmp_path / "visits.log").write_bytes(data)
    with pytest.raises(BrokenChain, match="record 3 has a total that its entries"):
        ledger.verify("visits")
    free = replace(records[0].entry, order=3)
    forged = replace(records[0], entry=free)
    data = forged.digest.encode() + b" " + forged.content + b"\n"
    (tmp_path / "visits.log").write_bytes(data)
    with pytest.raises(BrokenChain, match="is not of Renyi order 10"):
        ledger.verify("visits")


@pytest.mark.parametrize(
    ("field", "value"),
    [("at", '"x"'), ("at", "true"), ("at", str(10**30)), ("total", "[Infinity]"), ("at", "-1")],
)
def test_a_record_with_a_value_of_another_kind_is_damaged(
    tmp_path: Path, field: str, value: str
) -> None:
    ledger = three(tmp_path)
    path = tmp_path / "visits.log"
    first, *rest = path.read_bytes().splitlines(keepends=True)
    old, new = rf'"{field}":(\[[^]]*\]|\d+)', f'"{field}":{value}'
    content = re.sub(old.encode(), new.encode(), first.partition(b" ")[2].rstrip(b"\n"))
    digest = hashlib.sha256(content).hexdigest().encode()
    path.write_bytes(digest + b" " + content + b"\n" + b"".join(rest))
    with pytest.raises(BrokenChain, match="record 1"):
        ledger.verify("visits")


def test_a_line_without_its_end_was_never_acknowledged(tmp_path: Path) -> None:
    ledger = three(tmp_path)
    path = tmp_path / "visits.log"
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    again = FileLedger.open(tmp_path, clock=lambda: 1_900_000_000.0)
    assert len(again.verify("visits")[0]) == 2
    again.spend("visits", "v-2", COST, "histogram", loss=LOSS)
    assert len(ledger.verify("visits")[0]) == 3


def _spender(folder: str, number: int) -> int:
    ledger = FileLedger.open(Path(folder))
    granted = 0
    for turn in range(20):
        try:
            cost = Guarantee(1e-6, RECORD, model=TrustModel.CENTRAL)
            ledger.spend("visits", f"{number}-{turn}", cost, "micro")
            granted += 1
        except BudgetExceeded:
            pass
    return granted


def test_processes_spend_exactly_what_the_budget_allows(tmp_path: Path) -> None:
    terms = LedgerTerms.of(3e-5, neighbours=RECORD, model=TrustModel.CENTRAL)
    FileLedger.create(tmp_path, terms)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        granted = pool.starmap(_spender, [(os.fspath(tmp_path), number) for number in range(2)])
    assert sum(granted) == 30
    assert FileLedger.open(tmp_path).spent("visits") == Amount(30)


def test_terms_and_names_are_checked(tmp_path: Path) -> None:
    with pytest.raises(LedgerAbsent, match="there is no ledger"):
        FileLedger.open(tmp_path)
    ledger = a_ledger(tmp_path)
    with pytest.raises(UnlikeTerms, match="another budget"):
        FileLedger.create(tmp_path, replace(TERMS, budget=Amount(1)))
    with pytest.raises(BadParameter, match="subject"):
        ledger.spend("../visits", "s", COST, "histogram", loss=LOSS)
    (tmp_path / "terms.json").write_bytes(TERMS.of_format(1))
    with pytest.raises(UnlikeTerms, match="another format"):
        FileLedger.open(tmp_path)


def test_an_entry_is_explained(tmp_path: Path) -> None:
    ledger = three(tmp_path)
    record = ledger.record("v-1")
    assert record is not None
    text = explained(ledger.terms, record)
    assert "v-1 is entry 2 of visits, of 2027-01-15T08:00:00Z: histogram." in text
    assert "It was charged epsilon 0.500000, delta 1e-06." in text
    assert "Renyi divergence of order 10 of 0.07701" in text
    assert "With it, epsilon 1.07" in text
