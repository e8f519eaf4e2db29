"""A server is set back to an older copy of its files: it refuses, and a restore only raises."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from redis import Redis

from noisefloor.accounting import Amount, LedgerTerms
from noisefloor.errors import LedgerAbsent
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor_services.ledger.redis_ledger import RedisLedger
from noisefloor_services.ledger.terms import ReleaseSealed
from noisefloor_services.store.durability import Durability
from noisefloor_services.store.embedded import EmbeddedServer

USER = Neighbours.USER
TERMS = LedgerTerms.of(2.0, neighbours=USER)
HALF = Guarantee(0.5, USER)


@contextmanager
def opened(folder: Path, durability: Durability) -> Iterator["Redis"]:
    with EmbeddedServer(folder, durability) as server, Redis.from_url(server.url) as client:
        yield client


def spend(ledger: RedisLedger, *names: str) -> None:
    for name in names:
        ledger.spend("ann", name, HALF, "clicks")


@pytest.mark.parametrize("durability", Durability)  # the log, or a dump
def test_an_older_copy_of_the_files_only_raises_what_was_spent(
    tmp_path: Path, durability: Durability
) -> None:
    old, now = tmp_path / "old", tmp_path / "now"
    with opened(now, durability) as client:
        ledger = RedisLedger.create(client, "films", TERMS)
        spend(ledger, "first")
        ledger.publish("first", b"noise")
        if durability is Durability.MEMORY:
            client.save()
        shutil.copytree(now, old)
        spend(ledger, "second", "third")
        ledger.publish("second", b"more noise")
        backup, seen = ledger.snapshot(), ledger.entries_seen
    with opened(old, durability) as client:
        again = RedisLedger.open(client, "films", TERMS, seen=seen)
        for call in (
            lambda: again.spend("ann", "fourth", HALF, "clicks"),
            lambda: again.publish("third", b"drawn again"),
            lambda: again.left("ann"),
        ):
            with pytest.raises(LedgerAbsent):
                call()
        assert again.restore(backup, {"second": b"more noise"}) == 2
        assert again.spent("ann") == Amount(1_500_000)
        assert again.publish("first", b"drawn again") == b"noise"
        assert again.publish("second", b"drawn again") == b"more noise"
        with pytest.raises(ReleaseSealed):  # what it released may be out
            again.publish("third", b"drawn again")
        spend(again, "fourth")
        assert again.left("ann") == Amount(0)


def test_a_backup_that_is_older_than_the_server_changes_nothing(tmp_path: Path) -> None:
    with opened(tmp_path, Durability.DISK) as client:
        ledger = RedisLedger.create(client, "films", TERMS)
        spend(ledger, "first")
        backup = ledger.snapshot()
        spend(ledger, "second")
        assert ledger.restore(backup) == 0
        assert ledger.spent("ann") == Amount(1_000_000)
