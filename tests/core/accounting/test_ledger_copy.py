"""A copy of a chain answers as the ledger does, and books nothing."""

from pathlib import Path

import pytest

from noisefloor.accounting import FileLedger, LedgerCopy, LedgerTerms
from noisefloor.errors import BrokenChain
from noisefloor.privacy import Guarantee, Neighbours, TrustModel

RECORD = Neighbours.RECORD_ADD_REMOVE
TERMS = LedgerTerms.of(1.0, neighbours=RECORD, model=TrustModel.CENTRAL)
COST = Guarantee(0.25, RECORD, model=TrustModel.CENTRAL)


def a_ledger(folder: Path) -> FileLedger:
    ledger = FileLedger.create(folder, TERMS)
    for number in range(3):
        ledger.spend("visits", f"v-{number}", COST, "histogram")
    return ledger


def test_it_answers_as_the_ledger(tmp_path: Path) -> None:
    ledger = a_ledger(tmp_path)
    copy = LedgerCopy(TERMS, "visits", ledger.contents("visits"))
    for question in ("spent", "left", "entries", "why", "verify", "tail"):
        assert getattr(copy, question)("visits") == getattr(ledger, question)("visits")
    assert copy.record("v-1") == ledger.record("v-1") and copy.record("none") is None
    assert copy.would_spend("visits", COST) == ledger.would_spend("visits", COST)
    assert copy.subjects() == ["visits"]
    with pytest.raises(BrokenChain, match="copy of a ledger"):
        copy.spend("visits", "v-3", COST, "histogram")


def test_a_chain_with_a_missing_changed_or_swapped_record_is_refused(tmp_path: Path) -> None:
    first, second, third = a_ledger(tmp_path).contents("visits")
    changed = second.replace(b'"v-1"', b'"v-9"')
    for contents, named in (
        ([second, third], "record 1 says that it is record 2"),
        ([first, third], "record 2 says that it is record 3"),
        ([first, third, second], "record 2 says that it is record 3"),
        ([first, changed, third], "record 3 does not follow"),
    ):
        with pytest.raises(BrokenChain, match=named):
            LedgerCopy(TERMS, "visits", contents)
    with pytest.raises(BrokenChain, match="belongs to another data set"):
        LedgerCopy(TERMS, "films", [first])
