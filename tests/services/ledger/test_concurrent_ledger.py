"""The ledger on the server under races and kills: never overspent, never released twice."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count as counting

import pytest
from redis import Redis

import valkeys
from noisefloor.accounting import Amount, LedgerTerms
from noisefloor.errors import BudgetExceeded
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor_services.ledger import RedisLedger

USER = Neighbours.USER
HALF = Guarantee(0.5, USER)
TERMS = LedgerTerms.of(2.0, 2e-6, neighbours=USER)
_names = (f"c{number}" for number in counting())


@pytest.fixture(scope="module")
def client(url: str) -> Iterator["Redis"]:
    with Redis.from_url(url) as made:
        yield made


def spends(ledger: RedisLedger, arguments: tuple[str, str, Guarantee, str]) -> bool:
    """Spend, and say whether it was granted; any other refusal is raised."""
    try:
        ledger.spend(*arguments)
    except BudgetExceeded:
        return False
    return True


def test_100_concurrent_spenders_get_exactly_what_the_cap_allows(url: str) -> None:
    """Each asks 3 times, and each time once again as a retry: 300 requested, 250 granted."""
    name, terms = next(_names), LedgerTerms.of(0.00025, neighbours=USER)
    unit = Guarantee(1e-6, USER)
    with Redis.from_url(url) as first:
        ledger = RedisLedger.create(first, name, terms)

        def ask(spender: int) -> int:
            with Redis.from_url(url) as own:
                mine = RedisLedger.open(own, name, terms)
                granted = 0
                for turn in range(3):
                    arguments = ("everybody", f"{spender}-{turn}", unit, f"from-{spender % 7}")
                    is_granted = spends(mine, arguments)
                    assert spends(mine, arguments) == is_granted
                    granted += is_granted
                return granted

        with ThreadPoolExecutor(100) as pool:
            assert sum(pool.map(ask, range(100))) == 250
        assert ledger.spent("everybody") == Amount(250)
        assert sum(line.count for line in ledger.what_spent("everybody")) == 250


PUBLISHER = """
import os, signal, sys
from redis import Redis
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor_services.ledger import RedisLedger
from noisefloor.accounting import LedgerTerms

url, name, spend_id, dies = sys.argv[1:]
terms = LedgerTerms.of(1.0, neighbours=Neighbours.USER)
ledger = RedisLedger.open(Redis.from_url(url), name, terms)
kept = ledger.published(spend_id)
if dies == "before-spend":
    os.kill(os.getpid(), signal.SIGKILL)
ledger.spend("ann", spend_id, Guarantee(0.25, Neighbours.USER), "clicks")
if dies == "after-spend":
    os.kill(os.getpid(), signal.SIGKILL)
kept = ledger.publish(spend_id, os.urandom(16))
if dies == "after-publish":
    os.kill(os.getpid(), signal.SIGKILL)
print(kept.hex())
"""


def publish_in_a_process(url: str, name: str, spend_id: str, dies: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-c", PUBLISHER, url, name, spend_id, dies],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    return done.returncode, done.stdout.strip()


@pytest.mark.slow
def test_a_kill_between_spend_and_publish_releases_nothing_unpaid(
    client: "Redis", url: str
) -> None:
    name = next(_names)
    ledger = RedisLedger.create(client, name, LedgerTerms.of(1.0, neighbours=USER))
    for dies, is_spent, is_kept in (
        ("before-spend", False, False),
        ("after-spend", True, False),
        ("after-publish", True, True),
    ):
        code, printed = publish_in_a_process(url, name, dies, dies)
        assert (code, printed) == (-signal.SIGKILL, "")
        assert any(entry.spend_id == dies for entry in ledger.entries("ann")) is is_spent
        kept = ledger.published(dies)
        assert (kept is not None) is is_kept
        code, retried = publish_in_a_process(url, name, dies, "never")
        assert code == 0
        assert kept is None or retried == kept.hex()
        assert ledger.published(dies) == bytes.fromhex(retried)
        assert ledger.publish(dies, b"drawn again").hex() == retried
    assert ledger.spent("ann") == Amount(750_000)


def test_the_first_of_many_publishers_wins(url: str, client: "Redis") -> None:
    ledger = RedisLedger.create(client, next(_names), TERMS)
    ledger.spend("ann", "s", HALF, "clicks")
    with ThreadPoolExecutor(16) as pool:
        returned = set(pool.map(lambda number: ledger.publish("s", b"%d" % number), range(64)))
    assert returned == {ledger.published("s")}


@pytest.mark.slow
def test_what_was_acknowledged_outlives_a_killed_server() -> None:
    with valkeys.folder() as folder:
        with valkeys.server(folder) as address, Redis.from_url(address) as client:
            ledger = RedisLedger.create(client, "kept", TERMS)
            ledger.spend("ann", "s", HALF, "clicks")
            ledger.publish("s", b"noise")
        with valkeys.server(folder) as address, Redis.from_url(address) as client:
            again = RedisLedger.open(client, "kept", TERMS, seen=1)
            assert again.spent("ann") == Amount(500_000)
            assert again.publish("s", b"other") == b"noise"
