"""A server that was set back to an old backup is noticed, and what was spent stays spent."""

import os
import shutil
import stat
import threading
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis import Redis

import valkeys
from noisefloor.accounting import Amount, ChainedRecord, LedgerTerms, LossTotal
from noisefloor.errors import BrokenChain, BudgetExceeded, SpendConflict
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor_services.ledger.anchor import AnchoredLedger, LedgerAnchor, restore
from noisefloor_services.ledger.redis_ledger import RedisLedger
from noisefloor_services.ledger.terms import (
    BadAnchor,
    LedgerBehind,
    LedgerKeys,
    LedgerTotals,
    ReleaseSealed,
    SubjectTotals,
)
from properties import examples

RECORD = Neighbours.RECORD_ADD_REMOVE
TERMS = LedgerTerms.of(2.0, 1e-5, neighbours=RECORD, model=TrustModel.CENTRAL)
HALF = Guarantee(0.5, RECORD, delta=1e-8, model=TrustModel.CENTRAL)
FREE = Guarantee(0.0, RECORD, model=TrustModel.CENTRAL)
_names = (f"l{number}" for number in count())


def anchored(
    client: "Redis", folder: Path, name: str = ""
) -> tuple[AnchoredLedger, LedgerAnchor, str]:
    """Make a ledger with an anchor, or open the one that is there."""
    name = name or next(_names)
    anchor = LedgerAnchor(folder / f"{name}.anchor", name, TERMS)
    RedisLedger.create(client, name, TERMS)
    anchor.create()
    return AnchoredLedger.open_at(client, name, TERMS, anchor), anchor, name


def backup(client: "Redis", name: str) -> dict[bytes, bytes]:
    keys = list(client.scan_iter(f"noisefloor:{{ledger-{name}}}:*", count=10_000))
    return {key: client.dump(key) for key in keys}  # type: ignore[misc]  # the library's


def set_back(client: "Redis", name: str, kept: dict[bytes, bytes]) -> None:
    for key in client.scan_iter(f"noisefloor:{{ledger-{name}}}:*", count=10_000):
        client.delete(key)
    for key, value in kept.items():
        client.restore(key, 0, value)


def forge(client: "Redis", name: str, forged: ChainedRecord) -> None:
    """Append a record with the commands that the publisher's user has."""
    keys, spend_id = LedgerKeys(name), forged.entry.spend_id
    client.rpush(keys.log("films"), forged.digest.encode() + forged.content)
    client.hsetnx(keys.places, spend_id, f"{forged.position} {keys.log('films')}")


@pytest.mark.parametrize("is_emptied", [True, False])
def test_a_forged_total_that_follows_the_chain_gives_no_budget_back(
    client: "Redis", tmp_path: Path, *, is_emptied: bool
) -> None:
    ledger, anchor, name = anchored(client, tmp_path)
    ledger.spend("films", "a", HALF, "histogram")
    record = ledger.record("a")
    assert record is not None
    free = replace(record.entry, spend_id="free", debited=Amount(0), proved=Amount(0), renyi=0)
    total = LossTotal() if is_emptied else record.total
    forge(client, name, replace(ledger.tail("films").next(free, record.at), total=total))
    other = RedisLedger.open(client, name, TERMS)  # without an anchor
    for one in (ledger, other):
        with pytest.raises(BrokenChain, match="record 2 has a total that its entries do not add"):
            one.spend("films", "b", HALF, "histogram")
    with pytest.raises(LedgerBehind if is_emptied else BrokenChain):  # the service is not ready
        ledger.check_anchor()
    assert anchor.read().of("films").position == 1
    assert client.llen(LedgerKeys(name).log("films")) == 2


def test_a_retry_does_not_move_the_anchor_to_another_history(
    client: "Redis", tmp_path: Path
) -> None:
    ledger, anchor, name = anchored(client, tmp_path)
    ledger.spend("films", "a", HALF, "histogram")
    before = anchor.read()
    record = ledger.record("a")
    assert record is not None
    later = replace(record, at=record.at + 1)
    log = LedgerKeys(name).log("films")
    client.lset(log, 0, later.digest.encode() + later.content)  # type: ignore[arg-type]
    for spend_id, cost in (("a", HALF), ("b", replace(HALF, epsilon=5.0))):
        with pytest.raises((LedgerBehind, BudgetExceeded)):
            ledger.spend("films", spend_id, cost, "histogram")
    late = AnchoredLedger.open(client, name, TERMS, clock=lambda: 0.0)
    late._anchor = anchor
    with pytest.raises(LedgerBehind):  # found by its id, as the clock allows no new spend
        late.spend("films", "a", HALF, "histogram")
    assert anchor.read() == before


def test_every_spend_and_release_is_on_file(client: "Redis", tmp_path: Path) -> None:
    ledger, anchor, _ = anchored(client, tmp_path)
    assert anchor.read() == LedgerTotals()
    ledger.spend("films", "s", HALF, "histogram")
    films = SubjectTotals.of(ledger.tail("films"), "s")
    assert films.total.spent == Amount.cost(HALF)
    assert anchor.read() == LedgerTotals({"films": films})
    ledger.spend("films", "s", HALF, "histogram")
    ledger.publish("s", b"noise")
    ledger.spend("songs", "t", HALF, "histogram")
    songs = SubjectTotals.of(ledger.tail("songs"), "t")
    assert anchor.read() == LedgerTotals({"films": films, "songs": songs}, settled=1)
    with pytest.raises(BudgetExceeded):
        ledger.spend("films", "u", Guarantee(9.0, RECORD, model=TrustModel.CENTRAL), "histogram")
    assert anchor.read().of("films") == films
    path = tmp_path / next(one.name for one in tmp_path.glob("*.anchor"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not list(tmp_path.glob("*.new"))


def test_a_spend_that_was_not_on_file_is_before_its_release(
    client: "Redis", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, anchor, _ = anchored(client, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(
            LedgerAnchor, "_write", lambda *_: (_ for _ in ()).throw(OSError("disk is full"))
        )
        with pytest.raises(BadAnchor):
            ledger.spend("films", "s", HALF, "histogram")
    assert (ledger.spent("films"), anchor.read()) == (Amount.cost(HALF), LedgerTotals())
    ledger.spend("films", "s", HALF, "histogram")  # a retry is free and writes it down
    assert anchor.read().of("films") == SubjectTotals.of(ledger.tail("films"), "s")
    with monkeypatch.context() as patch:
        patch.setattr(
            LedgerAnchor, "_write", lambda *_: (_ for _ in ()).throw(OSError("disk is full"))
        )
        with pytest.raises(BadAnchor):
            ledger.publish("s", b"noise")
        with pytest.raises(BadAnchor):
            ledger.published("s")
    assert ledger.published("s") == b"noise"
    assert anchor.read().settled == 1


def test_a_set_back_server_refuses_and_is_raised(client: "Redis", tmp_path: Path) -> None:
    ledger, anchor, name = anchored(client, tmp_path)
    ledger.spend("films", "s", HALF, "histogram")
    old = backup(client, name)
    ledger.publish("s", b"noise")
    ledger.spend("films", "t", HALF, "histogram")
    ledger.spend("films", "free", FREE, "histogram")
    ledger.spend("songs", "u", HALF, "histogram")
    set_back(client, name, old)
    assert RedisLedger.open(client, name, TERMS).left("songs") == TERMS.budget  # looks unspent
    with pytest.raises(LedgerBehind):
        AnchoredLedger.open_at(client, name, TERMS, anchor)
    fresh = RedisLedger.open(client, name, TERMS)
    done = restore(fresh, anchor)
    assert done.raised == {"films": Amount.cost(HALF), "songs": Amount.cost(HALF)}
    assert (done.entries, done.sealed) == (3, 1)
    assert "films by epsilon 0.500000, delta 1e-08" in str(done)
    again = AnchoredLedger.open_at(client, name, TERMS, anchor)
    assert again.spent("films") == Amount(1_000_000, 2 * 10**10)
    assert [line.release for line in again.what_spent("songs")] == ["restored from the anchor"]
    assert "restored from the anchor" in again.why("songs")
    with pytest.raises(ReleaseSealed):
        again.publish("s", b"drawn again")
    for subject, lost in (("films", "t"), ("films", "free"), ("songs", "u")):
        # Its release may be out: the id is neither drawn anew nor charged a second time.
        with pytest.raises(SpendConflict):
            again.spend(subject, lost, HALF, "histogram")
        with pytest.raises(ReleaseSealed):
            again.publish(lost, b"drawn again")
    again.spend("songs", "v", HALF, "histogram")
    assert again.publish("v", b"more") == b"more"
    second = restore(fresh, anchor)
    assert (second.entries, second.sealed) == (0, 0)
    assert "nothing was raised" in str(second)


def test_a_server_that_is_set_back_under_a_running_publisher_is_noticed(
    client: "Redis", tmp_path: Path
) -> None:
    ledger, anchor, name = anchored(client, tmp_path)
    ledger.spend("films", "s", HALF, "histogram")
    spent = backup(client, name)
    ledger.publish("s", b"noise")
    set_back(client, name, spent)  # the release is lost, and nothing else
    with pytest.raises(LedgerBehind):
        ledger.check_anchor()
    with pytest.raises(LedgerBehind):
        ledger.publish("s", b"drawn again")
    restore(RedisLedger.open(client, name, TERMS), anchor)
    with pytest.raises(ReleaseSealed):
        ledger.publish("s", b"drawn again")


def test_as_many_cheaper_spends_do_not_make_up_for_lost_ones(
    client: "Redis", tmp_path: Path
) -> None:
    ledger, anchor, name = anchored(client, tmp_path)
    empty = backup(client, name)
    ledger.spend("films", "s", HALF, "histogram")
    set_back(client, name, empty)
    RedisLedger.open(client, name, TERMS).spend("films", "x", FREE, "somebody else")
    with pytest.raises(LedgerBehind):
        ledger.spend("films", "t", HALF, "histogram")
    restore(RedisLedger.open(client, name, TERMS), anchor)
    assert ledger.spent("films") == Amount.cost(HALF)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.0), (0.4, 1e-8)])
def test_each_part_of_a_total_is_compared_by_itself(
    client: "Redis", tmp_path: Path, epsilon: float, delta: float
) -> None:
    """As many entries, and as much of the other part: less of one is found all the same."""
    ledger, anchor, name = anchored(client, tmp_path)
    empty = backup(client, name)
    ledger.spend("films", "s", HALF, "histogram")
    set_back(client, name, empty)
    less = Guarantee(epsilon, RECORD, delta=delta, model=TrustModel.CENTRAL)
    RedisLedger.open(client, name, TERMS).spend("films", "x", less, "somebody else")
    with pytest.raises(LedgerBehind):
        ledger.spend("films", "t", HALF, "histogram")
    with pytest.raises(LedgerBehind):
        ledger.check_anchor()
    done = restore(RedisLedger.open(client, name, TERMS), anchor)
    assert done.raised == {"films": Amount.cost(less).left_of(Amount.cost(HALF))}
    assert ledger.spent("films") == Amount.cost(HALF)


def test_many_lost_entries_are_all_restored(
    client: "Redis", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("noisefloor_services.ledger.anchor._AT_ONCE", 2)
    ledger, anchor, name = anchored(client, tmp_path)
    empty = backup(client, name)
    lost = [f"s{number}" for number in range(5)]
    for spend_id in lost:
        ledger.spend("films", spend_id, FREE, "histogram")
    ledger.spend("films", "t", HALF, "histogram")
    set_back(client, name, empty)
    assert restore(RedisLedger.open(client, name, TERMS), anchor).entries == 6
    assert [one.spend_id for one in ledger.entries("films")] == [*lost, "t"]
    assert ledger.spent("films") == Amount.cost(HALF)


def test_an_anchor_that_is_missing_damaged_or_anothers_is_refused(
    client: "Redis", tmp_path: Path
) -> None:
    ledger, anchor, name = anchored(client, tmp_path)
    ledger.spend("films", "s", HALF, "histogram")
    path = tmp_path / f"{name}.anchor"
    whole = path.read_bytes()
    for place in range(0, len(whole) - 1, 7):
        changed = bytearray(whole)
        changed[place] ^= 1
        path.write_bytes(bytes(changed))
        with pytest.raises(BadAnchor):
            anchor.read()
    for broken in (b"", b"{}", b"[]\nx\n", whole[:40]):
        path.write_bytes(broken)
        with pytest.raises(BadAnchor):
            ledger.spend("films", "t", HALF, "histogram")
    path.write_bytes(whole)
    with pytest.raises(BadAnchor, match="another ledger"):
        LedgerAnchor(path, "other", TERMS).read()
    rich = LedgerTerms.of(9.0, 1e-5, neighbours=RECORD, model=TrustModel.CENTRAL)
    with pytest.raises(BadAnchor, match="another ledger"):
        LedgerAnchor(path, name, rich).read()
    path.unlink()
    with pytest.raises(BadAnchor, match="restore-ledger"):
        ledger.spend("films", "t", HALF, "histogram")
    restore(RedisLedger.open(client, name, TERMS), anchor)
    again = SubjectTotals.of(ledger.tail("films"), "s")
    assert anchor.read() == LedgerTotals({"films": again}, settled=1)
    with pytest.raises(BadAnchor, match="cannot be written"):
        LedgerAnchor(tmp_path / "none" / "x", name, TERMS).create()


def test_what_is_on_file_is_on_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bytes are synced, then renamed, then the folder is synced: in this order, each once."""
    anchor = LedgerAnchor(tmp_path / "a", "x", TERMS)
    anchor.create()
    done: list[str] = []
    sync, rename = os.fsync, Path.replace

    def fsync(handle: int) -> None:
        is_folder = stat.S_ISDIR(os.fstat(handle).st_mode)
        body = b"" if is_folder else (tmp_path / "a.new").read_bytes()
        done.append("folder" if is_folder else f"file of {body.count(b'films')}")
        sync(handle)

    def replaced(path: Path, target: Path) -> Path:
        done.append("name")
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "replace", replaced)
    anchor.raise_to(LedgerTotals({"films": SubjectTotals(1, "f" * 64)}))
    assert done == ["file of 2", "name", "folder"]
    anchor.raise_to(LedgerTotals({"films": SubjectTotals(1, "f" * 64)}))  # nothing is raised
    assert len(done) == 3


def test_many_writers_lose_nothing(tmp_path: Path) -> None:
    anchor = LedgerAnchor(tmp_path / "a", "x", TERMS)
    anchor.create()

    def write(subject: str) -> None:
        mine = LedgerAnchor(tmp_path / "a", "x", TERMS)
        for entries in range(1, 11):
            mine.raise_to(LedgerTotals({subject: SubjectTotals(entries, f"{entries}")}, entries))

    threads = [threading.Thread(target=write, args=(f"s{number}",)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = {f"s{number}": SubjectTotals(10, "10") for number in range(6)}
    assert anchor.read() == LedgerTotals(expected, 10)


ids = st.frozensets(st.sampled_from("stu"))
subject_totals = st.builds(
    lambda position, numbers, ids: SubjectTotals(
        position, f"hash {position}" if position else "", LossTotal.of(numbers), ids
    ),
    st.integers(0, 5),
    st.tuples(*[st.integers(0, 5)] * 7),
    ids,
)
totals = st.builds(
    LedgerTotals, st.dictionaries(st.sampled_from("abc"), subject_totals), st.integers(0, 5)
)


@examples(100)
@given(totals, totals)
def test_an_anchor_never_falls(
    tmp_path_factory: pytest.TempPathFactory, first: LedgerTotals, second: LedgerTotals
) -> None:
    anchor = LedgerAnchor(tmp_path_factory.getbasetemp() / "falls", "x", TERMS)
    anchor.create()
    before = anchor.read()
    for raised in (first, second):
        if anchor.read().contradicts(raised):
            with pytest.raises(LedgerBehind):
                anchor.raise_to(raised)
        anchor.raise_to(raised, is_restored=True)
        assert not raised.exceeds(anchor.read())
        assert anchor.read().joined(raised) == anchor.read()
    assert not before.exceeds(anchor.read())
    assert not first.joined(second).exceeds(anchor.read())
    assert first.joined(second).joined(before) == before.joined(second).joined(first)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("spend"), st.sampled_from(["films", "songs"]), st.integers(0, 9)),
        st.tuples(st.just("publish"), st.just(""), st.integers(0, 9)),
        st.tuples(st.just("backup"), st.just(""), st.just(0)),
        st.tuples(st.just("set back"), st.just(""), st.just(0)),
    ),
    max_size=14,
)


@examples(60)
@given(steps)
def test_whatever_happens_what_was_spent_never_falls(
    client: "Redis", tmp_path_factory: pytest.TempPathFactory, history: list[tuple[str, str, int]]
) -> None:
    """After each set-back the command is run; no total is ever lower than any seen before."""
    ledger, anchor, name = anchored(client, tmp_path_factory.mktemp("anchors"))
    old = backup(client, name)
    most, drawn = LedgerTotals(), 0
    for turn, (what, subject, number) in enumerate(history):
        spend_id = f"s{number}"
        if what == "backup":
            old = backup(client, name)
        elif what == "set back":
            set_back(client, name, old)
            restore(RedisLedger.open(client, name, TERMS), anchor)
            ledger = AnchoredLedger.open_at(client, name, TERMS, anchor)
        elif what == "spend" and ledger.entry(spend_id) is None:
            try:
                ledger.spend(subject, spend_id, HALF, "histogram")
            except BudgetExceeded:
                assert not ledger.can_spend(subject, HALF)
        elif what == "publish" and ledger.entry(spend_id) is not None:
            try:
                own = f"draw {turn}".encode()
                drawn += ledger.publish(spend_id, own) == own
            except ReleaseSealed:
                pass
        now = ledger.ledger_totals(most.subjects)
        assert not most.exceeds(now)
        most = most.joined(now)
        ledger.check_anchor()
        # Never two draws for one charge, whatever was lost in between.
        assert drawn <= sum(subject_totals.position for subject_totals in now.subjects.values())
    for subject in most.subjects:
        assert ledger.account(subject).spent(subject) == ledger.spent(subject)


def test_a_copied_file_of_the_server_is_noticed(tmp_path: Path) -> None:
    """A real backup: the server's own append-only files, copied and put back."""
    anchor = LedgerAnchor(tmp_path / "anchor", "real", TERMS)
    with valkeys.folder() as place:
        with valkeys.server(place) as address, Redis.from_url(address) as client:
            RedisLedger.create(client, "real", TERMS)
            anchor.create()
            ledger = AnchoredLedger.open_at(client, "real", TERMS, anchor)
            ledger.spend("films", "s", HALF, "histogram")
            ledger.publish("s", b"noise")
        shutil.copytree(place / "appendonlydir", tmp_path / "copy")
        with valkeys.server(place) as address, Redis.from_url(address) as client:
            ledger = AnchoredLedger.open_at(client, "real", TERMS, anchor)
            ledger.spend("films", "t", HALF, "histogram")
            ledger.publish("t", b"more noise")
        shutil.rmtree(place / "appendonlydir")
        shutil.copytree(tmp_path / "copy", place / "appendonlydir")
        with valkeys.server(place) as address, Redis.from_url(address) as client:
            with pytest.raises(LedgerBehind):
                AnchoredLedger.open_at(client, "real", TERMS, anchor)
            restore(RedisLedger.open(client, "real", TERMS), anchor)
            ledger = AnchoredLedger.open_at(client, "real", TERMS, anchor)
            assert ledger.spent("films") == Amount(1_000_000, 2 * 10**10)
            assert ledger.published("s") == b"noise"
