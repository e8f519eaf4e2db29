"""The publisher of a single machine: charged before it draws, for several processes, once."""

import json
import multiprocessing
import os
import signal
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from forked_children import FORKS, in_forked_child
from labelled_tables import SCHEMA, columns
from noisefloor.accounting import Amount, LedgerTerms
from noisefloor.cards import check_card
from noisefloor.errors import (
    BadKey,
    BadPublicationStore,
    BadSnapshot,
    BudgetExceeded,
    ClockWentBack,
    LedgerAbsent,
    SpendConflict,
    UnlikeTerms,
    WrongSignature,
)
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.randomness import SecureSource
from noisefloor.roles.artefact_files import FileArtefactStore
from noisefloor.roles.file_publisher import FilePublisher
from noisefloor.roles.model_publisher import ReleaseRequest
from noisefloor.tables import Records

RECORD = Neighbours.RECORD_ADD_REMOVE
TERMS = LedgerTerms.of(1.0, 1e-5, neighbours=RECORD, model=TrustModel.CENTRAL)
RECORDS = Records.of(columns(40), SCHEMA, "visits")


def a_store(folder: Path) -> FilePublisher:
    made = FilePublisher.create(folder / "store", publisher="a clinic")
    made.set_budget("visits", TERMS)
    return made


def request(name: str = "r-1", epsilon: float = 0.25) -> ReleaseRequest:
    cost = Guarantee(epsilon, RECORD, model=TrustModel.CENTRAL)
    return ReleaseRequest(name, "visits", "histogram", cost, {"columns": "country"})


def test_a_release_is_charged_stored_and_signed_once(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    made = store.publish(request(), RECORDS, SecureSource())
    again = FilePublisher.open(store.folder).publish(request(), RECORDS, SecureSource())
    assert again == made == store.artefact("visits", "r-1")
    assert store.ledger("visits").spent("visits") == Amount(250_000)
    card = check_card(made.card_bytes, store.public_key)
    assert card["publisher"]["name"] == "a clinic"
    assert card["ledger"]["head"] == store.ledger("visits").tail("visits").head
    for path in store.folder.rglob("*"):
        is_public = path.name.endswith(".pub")
        assert is_public or not stat.S_IMODE(path.stat().st_mode) & 0o077, path


def test_a_request_that_is_refused_spends_and_stores_nothing(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    with pytest.raises(BudgetExceeded, match="epsilon ran out: 2 asked for, 1 left"):
        store.publish(request(epsilon=2.0), RECORDS, SecureSource())
    assert store.ledger("visits").subjects() == []
    assert store.releases("visits").ids() == []
    store.publish(request(), RECORDS, SecureSource())
    with pytest.raises(SpendConflict, match="another request"):
        store.publish(request(epsilon=0.5), RECORDS, SecureSource())
    with pytest.raises(SpendConflict):
        store.preview(request(epsilon=0.5), RECORDS)


def test_a_preview_says_what_a_release_would_cost_and_spends_nothing(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    found = store.preview(request(), RECORDS)
    assert not found.is_paid and found.spend.is_allowed
    assert (found.spend.requested, found.spend.after) == (Amount(250_000), Amount(750_000, 10**13))
    assert store.ledger("visits").subjects() == []
    store.publish(request(), RECORDS, SecureSource())
    assert store.preview(request(), RECORDS).is_paid
    assert "epsilon ran out" in store.preview(request("r-2", 0.8), RECORDS).spend.why


@FORKS
def test_a_kill_between_charge_and_store_costs_the_charge_and_a_retry_draws_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = a_store(tmp_path)

    def killed() -> bytes:
        monkeypatch.setattr(
            FileArtefactStore, "publish", lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        )
        store.publish(request(), RECORDS, SecureSource())
        return b"it went on"

    assert in_forked_child(killed) == b""
    assert store.artefact("visits", "r-1") is None
    assert store.ledger("visits").spent("visits") == Amount(250_000)
    made = store.publish(request(), RECORDS, SecureSource())
    assert store.publish(request(), RECORDS, SecureSource()) == made
    assert [one.spend_id for one in store.ledger("visits").entries("visits")] == ["r-1"]
    assert store.releases("visits").ids() == ["r-1"]


def _publisher(folder: str, number: int) -> list[bytes]:
    store = FilePublisher.open(Path(folder))
    made = []
    for turn in ("shared", *range(5)):
        name = turn if isinstance(turn, str) else f"r-{number}-{turn}"
        try:
            made.append(store.publish(request(name, 0.125), RECORDS, SecureSource()).packed())
        except BudgetExceeded:
            pass
    return made


def test_two_processes_publish_exactly_what_the_budget_allows(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        made = pool.starmap(_publisher, [(str(store.folder), number) for number in range(2)])
    assert made[0][0] == made[1][0]  # one draw for the id that both asked for
    assert len({one for some in made for one in some}) == 8
    ledger = store.ledger("visits")
    assert ledger.spent("visits").micro_epsilon == 1_000_000
    assert len(ledger.verify("visits")[0]) == len(store.releases("visits").ids()) == 8


def test_a_budget_is_set_once(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    store.set_budget("visits", TERMS)
    assert store.data_sets() == ["visits"]
    with pytest.raises(UnlikeTerms, match="a budget never changes"):
        store.set_budget("visits", replace(TERMS, budget=Amount(9_000_000)))
    with pytest.raises(LedgerAbsent, match="noisefloor ledger budget films"):
        store.ledger("films")
    with pytest.raises(BadPublicationStore, match="no name of a data set"):
        store.set_budget("../films", TERMS)


def test_a_folder_that_is_no_store_of_this_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadPublicationStore, match="there is no store"):
        FilePublisher.open(tmp_path / "none")
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("mine")
    with pytest.raises(BadPublicationStore, match="no store of noisefloor"):
        FilePublisher.create(other)
    assert [one.name for one in other.iterdir()] == ["thesis.txt"]
    store = a_store(tmp_path)
    (store.folder / "store.json").write_text(json.dumps({"format": 7, "what": "noisefloor store"}))
    with pytest.raises(BadPublicationStore, match="format 7, this version reads format 1"):
        FilePublisher.open(store.folder)


def test_a_process_that_ended_while_it_made_a_store_is_made_good(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    public = store.public_key.read_text()
    for name in ("store.json", "publisher.key.pub"):
        (store.folder / name).unlink()
    (store.folder / "visits").rename(tmp_path / "kept")
    FilePublisher.create(store.folder)
    assert store.public_key.read_text() == public


def test_a_changed_release_is_not_handed_out(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    made = store.publish(request(), RECORDS, SecureSource())
    path = store.folder / "visits" / "releases" / "r-1.release"
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    with pytest.raises(BadSnapshot, match=r"r-1.*damaged"):
        store.artefact("visits", "r-1")
    forged = replace(made, card={**made.card, "data_set": "films"})
    path.write_bytes(forged.packed())  # with a checksum of its own: the signature is of another
    found = store.artefact("visits", "r-1")
    assert found is not None
    with pytest.raises(WrongSignature):
        check_card(found.card_bytes, store.public_key)


def test_a_clock_that_went_back_spends_nothing(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    later = FilePublisher.open(store.folder, lambda: 4e9)
    later.publish(request(), RECORDS, SecureSource())
    with pytest.raises(ClockWentBack, match="Set the clock"):
        store.publish(request("r-2"), RECORDS, SecureSource())
    assert store.releases("visits").ids() == ["r-1"]
    assert store.publish(request(), RECORDS, SecureSource()) == store.artefact("visits", "r-1")


def test_a_key_that_others_can_read_signs_nothing(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    (store.folder / "publisher.key").chmod(0o644)
    with pytest.raises(BadKey, match="chmod 600"):
        store.publish(request(), RECORDS, SecureSource())
    assert store.ledger("visits").subjects() == []
