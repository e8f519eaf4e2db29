"""Many who spend one budget at once: as many grants as the cap allows, and not one more."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from typing import Any

from redis import Redis

from noisefloor.accounting import LedgerTerms
from noisefloor.errors import BudgetExceeded
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor_services.chaos.processes import ChaosTimeout
from noisefloor_services.ledger import RedisLedger

CAP = 1000
"""In millionths of epsilon, of which every spend takes one."""

_NEIGHBOURS = Neighbours.RECORD_ADD_REMOVE
_UNIT = Guarantee(1e-6, _NEIGHBOURS)
_TERMS = LedgerTerms.of(CAP / 1e6, neighbours=_NEIGHBOURS)
_SUBJECT = "everybody"
_NAIVE = "chaos:naive-spent"
_MOST_REQUESTS = 60
_MOST_NAIVELY = 21
"""Naive spenders would go on for long: each undoes what others wrote."""

_END_S = 120.0


@dataclass(frozen=True, slots=True)
class SpendingOutcome:
    """What many spenders were granted.

    Attributes:
        faults: What should not have been, in words; none in a good run.
        processes: How many.
        threads: In each process, with a connection each.
        cap: Spends that the budget allows.
        requested: Spends that were requested, without retries.
        granted: Of these.
        retried: Grants that were requested again under the same id: each is granted, and free.
        ledger_spent: What the ledger says in the end.
        naive_granted: What the same spenders got who read, compared and wrote in turn.
        elapsed_s: Of it all.
    """

    faults: tuple[str, ...]
    processes: int
    threads: int
    cap: int
    requested: int
    granted: int
    retried: int
    ledger_spent: int
    naive_granted: int
    elapsed_s: float

    @property
    def is_exact(self) -> bool:
        """Whether everything is as it has to be."""
        return not self.faults


def run_spending(
    url: str, *, processes: int = 100, threads: int = 1, is_naive: bool = False
) -> SpendingOutcome:
    """Let many spend at once, by the ledger and naively, and say what was granted.

    Args:
        url: Of a durable server.
        processes: How many.
        threads: In each.
        is_naive: Judge by the naive ones: this has to fail.
    """
    start_s = time.monotonic()
    with Redis.from_url(url) as client:
        ledger = RedisLedger.create(client, "spending", _TERMS)
        exact = _together(url, processes, threads, is_naive=False)
        spent = ledger.spent(_SUBJECT).micro_epsilon
        naive = _together(url, processes, threads, is_naive=True)
    granted = sum(one[1] for one in exact)
    naive_granted = sum(one[1] for one in naive)
    return SpendingOutcome(
        faults=_faults(naive_granted if is_naive else granted, spent),
        processes=processes,
        threads=threads,
        cap=CAP,
        requested=sum(one[0] for one in exact),
        granted=granted,
        retried=sum(one[2] for one in exact),
        ledger_spent=spent,
        naive_granted=naive_granted,
        elapsed_s=time.monotonic() - start_s,
    )


def _faults(granted: int, spent: int) -> tuple[str, ...]:
    found = []
    if granted != CAP:
        found.append(f"{granted} spends were granted, not {CAP}")
    if spent != CAP:
        found.append(f"the ledger says {spent}, not {CAP}")
    return tuple(found)


def _together(
    url: str, processes: int, threads: int, *, is_naive: bool
) -> Sequence[tuple[int, int, int]]:
    """Start all spenders at once; return requested, granted and granted again of each."""
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__])
    gate: Any = context.Barrier(processes * threads)
    numbers = context.Array("q", 3 * processes * threads, lock=False)
    spenders = [
        context.Process(
            target=_spender, args=(url, number, threads, gate, numbers, is_naive), daemon=True
        )
        for number in range(processes)
    ]
    for spender in spenders:
        spender.start()
    for spender in spenders:
        spender.join(_END_S)
        if spender.exitcode != 0:
            for one in spenders:
                one.kill()
            raise ChaosTimeout("A spender failed, or did not end.")
    return [(numbers[at], numbers[at + 1], numbers[at + 2]) for at in range(0, len(numbers), 3)]


def _spender(
    url: str, number: int, threads: int, gate: Barrier, numbers: Any, is_naive: bool
) -> None:
    """Be one process of spenders; ``numbers`` is shared memory."""
    spend = _naive if is_naive else _exact

    def one(place: int) -> None:
        with Redis.from_url(url) as client:
            client.ping()
            gate.wait(_END_S)
            numbers[3 * place : 3 * place + 3] = spend(client, place)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(one, range(number * threads, (number + 1) * threads)))


def _exact(client: "Redis", place: int) -> tuple[int, int, int]:
    """Spend by the ledger until refused, each grant once more as a retry."""
    ledger = RedisLedger.open(client, "spending", _TERMS)
    for requested in range(1, _MOST_REQUESTS):
        try:
            spend_id = f"{place}-{requested}"
            ledger.spend(_SUBJECT, spend_id, _UNIT, "chaos")
            ledger.spend(_SUBJECT, spend_id, _UNIT, "chaos")
        except BudgetExceeded:
            return requested, requested - 1, requested - 1
    return _MOST_REQUESTS - 1, _MOST_REQUESTS - 1, _MOST_REQUESTS - 1


def _naive(client: "Redis", _: int) -> tuple[int, int, int]:
    """Read, compare, write: what came between is not seen."""
    for requested in range(1, _MOST_NAIVELY):
        read: Any = client.get(_NAIVE)  # Any: one type for blocking and asynchronous clients
        spent = int(read or 0)
        if spent >= CAP:
            return requested, requested - 1, 0
        client.set(_NAIVE, spent + 1)
    return _MOST_NAIVELY - 1, _MOST_NAIVELY - 1, 0
