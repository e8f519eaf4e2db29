"""A rehearsal: store and anchor that format 1 wrote are carried over, nothing is guessed."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from redis import Redis

from noisefloor.accounting import Amount, LedgerTerms
from noisefloor.errors import (
    BadSnapshot,
    BudgetExceeded,
    LedgerAbsent,
    SpendConflict,
    UnlikeTerms,
)
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
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
from noisefloor_services.settings import Settings

RECORD = Neighbours.RECORD_ADD_REMOVE
TERMS = LedgerTerms.of(2.0, 1e-5, neighbours=RECORD, model=TrustModel.CENTRAL)
COST = Guarantee(0.25, RECORD, delta=1e-6, model=TrustModel.CENTRAL)
WRITTEN = Path(__file__).parent / "format_1"
KEY = "noisefloor:{ledger-old}:"


@pytest.fixture
def client(url: str) -> Iterator["Redis"]:
    """The store as format 1 left it: three spends of visits, one of films, one release."""
    with Redis.from_url(url) as made:
        made.flushall()
        for key, (kind, value) in json.loads((WRITTEN / "store.json").read_text()).items():
            if kind == "hash":
                made.hset(key, mapping=value)
            elif kind == "set":
                made.sadd(key, *value)
            else:
                made.set(key, value)
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
