"""A rehearsal: store and anchor that format 1 wrote are carried over, nothing is guessed."""

import hashlib
import json
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from forked_children import FORKS, in_forked_child
from noisefloor.accounting import Amount, Ledger, LedgerTerms, carried
from noisefloor.canonical_json import canonical_json
from noisefloor.errors import (
    BadSnapshot,
    BudgetExceeded,
    LedgerAbsent,
    SpendConflict,
    UnlikeTerms,
)
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.randomness import SecureSource, Source
from noisefloor.roles.model_publisher import ModelPublisher, PublicationMethod, ReleaseRequest
from noisefloor_services import publisher
from noisefloor_services.ledger import (
    AnchoredLedger,
    BadAnchor,
    LedgerAnchor,
    LedgerBehind,
    RedisLedger,
    migrate,
    restore,
)
from noisefloor_services.ledger.terms import LedgerTotals
from noisefloor_services.settings import Settings

RECORD = Neighbours.RECORD_ADD_REMOVE
TERMS = LedgerTerms.of(2.0, 1e-5, neighbours=RECORD, model=TrustModel.CENTRAL)
COST = Guarantee(0.25, RECORD, delta=1e-6, model=TrustModel.CENTRAL)
WRITTEN = Path(__file__).parent / "format_1"
KEY = "noisefloor:{ledger-old}:"


def fill(client: "Redis") -> None:
    """Put back what format 1 left: three spends of visits, one of films, one release."""
    client.flushall()
    for key, (kind, value) in json.loads((WRITTEN / "store.json").read_text()).items():
        if kind == "hash":
            client.hset(key, mapping=value)
        elif kind == "set":
            client.sadd(key, *value)
        else:
            client.set(key, value)


@pytest.fixture
def client(url: str) -> Iterator["Redis"]:
    """The store as format 1 left it."""
    with Redis.from_url(url) as made:
        fill(made)
        yield made


@pytest.fixture
def anchor(tmp_path: Path) -> LedgerAnchor:
    shutil.copy(WRITTEN / "anchor", tmp_path / "anchor")
    return LedgerAnchor(tmp_path / "anchor", "old", TERMS)


def test_an_older_store_is_refused_until_it_is_migrated(
    client: "Redis", anchor: LedgerAnchor
) -> None:
    for make in (RedisLedger.create, RedisLedger.open):
        with pytest.raises(UnlikeTerms, match="format 1: run migrate-ledger"):
            make(client, "old", TERMS)
    with pytest.raises(BadAnchor, match="format 1: run migrate-ledger"):
        anchor.read()
    summary = migrate(client, "old", TERMS, anchor.path)
    assert str(summary) == "Carried over 4 entries of 1 ledgers of format 1."
    ledger = AnchoredLedger.open_at(client, "old", TERMS, anchor)
    assert ledger.spent("visits") == Amount(750_000, 3 * 10**12)
    assert ledger.spent("films") == Amount(500_000)
    assert ledger.published("v-0") == b"noisy counts"
    assert ledger.publish("v-0", b"drawn again") == b"noisy counts"
    assert anchor.read().of("visits").ids == {"v-0", "v-1", "v-2"}
    assert (anchor.path.parent / "anchor.format-1").exists()
    again = migrate(client, "old", TERMS, anchor.path)
    assert str(again) == "No ledger is of format 1: nothing was changed."


def test_the_filter_is_made_of_what_is_left(client: "Redis", anchor: LedgerAnchor) -> None:
    migrate(client, "old", TERMS, anchor.path)
    ledger = AnchoredLedger.open_at(client, "old", TERMS, anchor)
    with pytest.raises(SpendConflict):  # ids of format 1 stay used
        ledger.spend("visits", "v-1", COST, "another")
    pure = Guarantee(1.25, RECORD, model=TrustModel.CENTRAL)
    with pytest.raises(BudgetExceeded):
        ledger.spend("visits", "over", replace(pure, epsilon=1.250001), "laplace")
    ledger.spend("visits", "rest", pure, "laplace")
    assert ledger.left("visits").micro_epsilon == 0
    record = ledger.record("rest")
    assert record is not None
    assert record.position == 4
    rest = Amount(1_250_000, 7 * 10**12)
    assert TERMS.filter(record.total).budget == rest


def test_a_migrated_ledger_that_is_set_back_is_raised(
    client: "Redis", anchor: LedgerAnchor
) -> None:
    migrate(client, "old", TERMS, anchor.path)
    ledger = AnchoredLedger.open_at(client, "old", TERMS, anchor)
    ledger.spend("visits", "new", Guarantee(0.5, RECORD, model=TrustModel.CENTRAL), "laplace")
    before = ledger.spent("visits")
    client.delete(*client.scan_iter(f"{KEY}*"))
    fresh = RedisLedger.create(client, "old", TERMS)
    restore(fresh, anchor)
    again = AnchoredLedger.open_at(client, "old", TERMS, anchor)
    assert again.spent("visits") == before
    assert again.total("visits").carried == Amount(750_000, 3 * 10**12)


def test_a_store_that_is_damaged_or_behind_is_not_carried_over(
    client: "Redis", anchor: LedgerAnchor
) -> None:
    with pytest.raises(UnlikeTerms, match="another budget"):
        migrate(client, "old", replace(TERMS, budget=Amount(1)), None)
    with pytest.raises(LedgerAbsent, match="of any format"):
        migrate(client, "none", TERMS, None)
    whole = anchor.path.read_bytes()
    anchor.path.write_bytes(whole.replace(b"500000", b"400000"))
    with pytest.raises(BadAnchor, match="damaged"):
        migrate(client, "old", TERMS, anchor.path)
    anchor.path.write_bytes(whole)
    entry = bytes(client.hget(f"{KEY}entries", "v-2") or b"").decode()  # type: ignore[arg-type]
    client.hdel(f"{KEY}entries", "v-2")
    with pytest.raises(BadSnapshot, match="miss it"):
        migrate(client, "old", TERMS, None)
    client.hincrby(f"{KEY}epsilons", "visits", -250_000)
    client.hincrby(f"{KEY}deltas", "visits", -(10**12))
    with pytest.raises(LedgerBehind, match="newer backup"):
        migrate(client, "old", TERMS, anchor.path)
    client.hset(f"{KEY}entries", "v-2", entry.replace("250000", "250001"))
    with pytest.raises(BadSnapshot, match="damaged"):
        migrate(client, "old", TERMS, None)
    assert not client.exists(f"{KEY}terms-2")


def kill_at(step: int, folder: Path) -> None:
    """Kill this process before a step: a command to the server, or one that changes a file."""
    steps = count()

    def taken() -> None:
        if next(steps) == step:
            os.kill(os.getpid(), signal.SIGKILL)

    def audited(event: str, arguments: tuple[Any, ...]) -> None:  # Any: of any event
        is_ours = event == "open" and str(arguments[0]).startswith(str(folder))
        if is_ours or event in ("os.rename", "os.link", "os.remove", "fcntl.flock"):
            taken()

    def counted(work: Any) -> Any:  # Any: of any signature
        def step_and_work(*arguments: Any, **options: Any) -> Any:  # Any: as the work's
            taken()
            return work(*arguments, **options)

        return step_and_work

    sys.addaudithook(audited)
    for owner, name in ((Redis, "execute_command"), (os, "fsync")):
        setattr(owner, name, counted(getattr(owner, name)))


@FORKS
def test_a_command_that_is_killed_at_any_step_is_repeated(
    client: "Redis", anchor: LedgerAnchor, url: str
) -> None:
    whole, kept = anchor.path.read_bytes(), anchor.path.with_name("anchor.format-1")
    found = set()
    for step in count():
        fill(client)
        anchor.path.write_bytes(whole)
        kept.unlink(missing_ok=True)

        def killed(step: int = step) -> bytes:
            kill_at(step, anchor.path.parent)
            with Redis.from_url(url) as own:
                return str(migrate(own, "old", TERMS, anchor.path)).encode()

        end = in_forked_child(killed)
        is_carried, is_old = (
            bool(client.exists(f"{KEY}terms-2")),
            anchor.path.read_bytes() == whole,
        )
        found.add((is_carried, is_old))
        if is_old:
            with pytest.raises(BadAnchor, match="format 1: run migrate-ledger"):
                anchor.read()
        summary = str(migrate(client, "old", TERMS, anchor.path))
        assert ("anchors of format 1; their" in summary) == (is_carried and is_old)
        ledger = AnchoredLedger.open_at(client, "old", TERMS, anchor)
        said = anchor.read()
        assert (
            ledger.spent("visits") == said.of("visits").total.spent == Amount(750_000, 3 * 10**12)
        )
        assert said.of("visits").ids == {"v-0", "v-1", "v-2"}
        assert said.settled == 1
        assert kept.read_bytes() == whole
        assert not list(anchor.path.parent.glob("*.new"))
        client.flushall()
        RedisLedger.create(client, "old", TERMS)
        with pytest.raises(LedgerBehind):  # an emptied server has no budget to give
            AnchoredLedger.open_at(client, "old", TERMS, anchor)
        if end:
            break
    assert end == b"Carried over 4 entries of 1 ledgers of format 1."
    assert found == {(False, True), (True, True), (True, False)}
    assert step > 20


def test_a_store_that_lost_a_release_or_a_spend_is_not_carried_over(
    client: "Redis", anchor: LedgerAnchor
) -> None:
    """A second draw under an id whose release is out would not be paid for."""
    whole = anchor.path.read_bytes()
    client.delete(f"{KEY}kept:v-0")
    for path in (None, anchor.path):
        with pytest.raises(BadSnapshot, match="what was released for v-0 is gone"):
            migrate(client, "old", TERMS, path)
    client.delete(f"{KEY}settled")
    with pytest.raises(LedgerBehind, match="holds less of what was released"):
        migrate(client, "old", TERMS, anchor.path)
    fill(client)
    other = str(client.hget(f"{KEY}entries", "v-2"), "ascii")  # type: ignore[arg-type]  # bytes
    body = json.loads(other)["body"]
    body["entries"][0]["spend_id"] = "v-9"
    checksum = hashlib.sha256(canonical_json(body)).hexdigest()
    client.hdel(f"{KEY}entries", "v-2")
    client.hset(f"{KEY}entries", "v-9", canonical_json({"body": body, "checksum": checksum}))
    with pytest.raises(LedgerBehind, match="less of visits"):  # as much, under another id
        migrate(client, "old", TERMS, anchor.path)
    assert not client.exists(f"{KEY}terms-2")
    assert anchor.path.read_bytes() == whole
    fill(client)
    client.rename(f"{KEY}terms", "noisefloor:{ledger-new}:terms")
    with pytest.raises(BadAnchor, match="anchor of another ledger"):
        migrate(client, "new", TERMS, anchor.path)


def test_an_anchor_that_comes_later_is_compared_with_what_was_carried_over(
    client: "Redis", anchor: LedgerAnchor
) -> None:
    whole = anchor.path.read_bytes()
    client.delete(f"{KEY}kept:v-0", f"{KEY}settled")
    migrate(client, "old", TERMS, None)
    with pytest.raises(LedgerBehind, match="what was released"):
        migrate(client, "old", TERMS, anchor.path)
    assert anchor.path.read_bytes() == whole
    client.flushall()
    RedisLedger.create(client, "old", TERMS)
    with pytest.raises(LedgerBehind, match="less of films, visits, what was released"):
        migrate(client, "old", TERMS, anchor.path)
    fill(client)
    migrate(client, "old", TERMS, None)
    RedisLedger.open(client, "old", TERMS).spend("visits", "new", COST, "laplace")
    with pytest.raises(BadAnchor, match="changed meanwhile"):
        anchor.renew(b"what another process has replaced", LedgerTotals())
    assert anchor.path.read_bytes() == whole
    summary = migrate(client, "old", TERMS, anchor.path)
    assert str(summary) == "Carried over 1 anchors of format 1; their ledgers were before."
    assert anchor.read().of("visits").ids == {"v-0", "v-1", "v-2", "new"}
    AnchoredLedger.open_at(client, "old", TERMS, anchor)


def test_what_format_1_charged_and_did_not_store_is_made_by_the_same_request(
    client: "Redis", anchor: LedgerAnchor
) -> None:
    migrate(client, "old", TERMS, anchor.path)
    ledger = AnchoredLedger.open_at(client, "old", TERMS, anchor)
    entry = ledger.entry("v-1")
    assert entry is not None and entry == carried(entry)
    drawn: list[str] = []

    def release(request: ReleaseRequest, source: Source) -> bytes:
        drawn.append(request.publication_id)
        return source.words(1).tobytes()

    method = PublicationMethod(entry.release, "text/plain", lambda one: one.cost, release)
    publisher = ModelPublisher(ledger, ledger, [method], data_sets=["visits"])
    ledger.spend("visits", "rest", Guarantee(1.25, RECORD, model=TrustModel.CENTRAL), "laplace")
    request = ReleaseRequest("v-1", "visits", entry.release, COST)
    made = publisher.publish(request, SecureSource())
    assert publisher.publish(request, SecureSource()) == made
    assert drawn == ["v-1"]
    with pytest.raises(SpendConflict):
        publisher.charge(replace(request, publication_id="v-2", cost=replace(COST, epsilon=0.2)))
    assert ledger.spent("visits") == Amount(2_000_000, 3 * 10**12)
    assert len(ledger.entries("visits")) == 4


def test_a_backup_with_spends_of_format_1_is_taken_over_before_other_spends_only(
    client: "Redis", anchor: LedgerAnchor
) -> None:
    migrate(client, "old", TERMS, anchor.path)
    backup = RedisLedger.open(client, "old", TERMS).snapshot()
    client.flushall()
    ledger = RedisLedger.create(client, "old", TERMS)
    ledger.spend("visits", "new", COST, "laplace")
    before = ledger.verify("visits")
    with pytest.raises(BadSnapshot, match="visits is carried over from format 1 and comes"):
        ledger.restore(backup)
    assert ledger.verify("visits") == before
    assert ledger.subjects() == ["visits"]
    with pytest.raises(BadSnapshot, match="comes after others"):
        ledger.append_unchecked(Ledger.restore(backup).entries("visits")[0])
    assert ledger.verify("visits") == before


def test_the_operators_command_carries_over_what_the_settings_name(
    client: "Redis", anchor: LedgerAnchor, url: str
) -> None:
    settings = replace(
        Settings(),
        redis_url=url,
        ledger="old",
        ledger_epsilon=2.0,
        ledger_delta=1e-5,
        ledger_neighbours=RECORD,
        ledger_anchor=anchor.path,
    )
    assert publisher.migrate_ledger(settings).entries == 4
    assert RedisLedger.open(client, "old", TERMS).left("films") == Amount(1_500_000, 10**13)
