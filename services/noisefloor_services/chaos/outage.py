"""The store is killed or hangs: every answer is 503; it returns: ready again, nothing lost."""

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from noisefloor_services.chaos.clients import AWAY, TAKEN, Attempt, ClickTraffic, Clients
from noisefloor_services.chaos.processes import TIMEOUT_S, ServiceProcess, ServiceReply
from noisefloor_services.chaos.topology import DATA_SET, ChaosTopology
from noisefloor_services.security import Role
from noisefloor_services.streams import Conservation

_BEFORE, _AFTER = 200, 400
_EVERY_S = 0.25


@dataclass(frozen=True, slots=True)
class OutageOutcome:
    """What the services answered while their store was away, and how they recovered.

    Attributes:
        faults: What should not have been, in words; none in a good run.
        way: ``killed`` or ``hangs``.
        away_s: For how long the store was away.
        answers: To frames that were sent and answered in that time, by status.
        slowest_s: The longest that a sender waited for an answer that came in that time.
        probes: Other requests in that time, to all three services, by status.
        ready_again_s: By service: from the start of the store's return until it was ready.
        first_taken_s: From the start of the store's return until a frame was taken.
        conservation: Frames by what became of them, at the end.
        cells: Integer sums that were compared, one by one.
    """

    faults: tuple[str, ...]
    way: str
    away_s: float
    answers: dict[str, int]
    slowest_s: float
    probes: dict[str, int]
    ready_again_s: dict[str, float]
    first_taken_s: float
    conservation: Conservation
    cells: int

    @property
    def is_exact(self) -> bool:
        """Whether everything is as it has to be."""
        return not self.faults

    @property
    def recovery_s(self) -> float:
        """Until everything was as before."""
        return max(self.first_taken_s, *self.ready_again_s.values())


def run_outage(
    away_s: float, folder: Path, *, hangs: bool = False, seed: int = 1
) -> OutageOutcome:
    """Take the store away for a time, by SIGKILL or by SIGSTOP, and say what came of it."""
    traffic = ClickTraffic(seed)
    with ChaosTopology(folder) as services:
        trio = (services.ad_server, services.aggregator, services.publisher)
        services.create_ledger()
        services.start(*trio)
        kept = services.publish("before").body
        clients = Clients(services.ad_server.port, traffic.outgoing_frames())
        clients.allow(_BEFORE + _AFTER)
        clients.wait(_BEFORE)
        gone = _Gone(services, clients, hangs=hangs)
        gone.stay(away_s)
        ready_again_s = gone.come_back()
        clients.wait(_BEFORE + _AFTER)
        clients.finish()
        account = services.settle()
        faults, cells = services.compared(traffic)
        if services.publish("before").body != kept:
            faults.append("the publication of before is another one now")
    faults += services.miscounted(traffic, account) + gone.faults()
    return OutageOutcome(
        faults=tuple(faults),
        way="hangs" if hangs else "killed",
        away_s=gone.back_s - gone.gone_s,
        answers=_by_status(one.status for one in gone.attempts()),
        slowest_s=gone.slowest_s(),
        probes=_by_status(reply.status for _, reply in gone.probes),
        ready_again_s=ready_again_s,
        first_taken_s=gone.first_taken_s(),
        conservation=account,
        cells=cells,
    )


class _Gone:
    """The time without a store: which requests were sent, and how they were answered."""

    def __init__(self, services: ChaosTopology, clients: Clients, *, hangs: bool) -> None:
        self._services = services
        self._clients = clients
        self._hangs = hangs
        self.probes: list[tuple[str, ServiceReply]] = []
        self.back_s = float("inf")
        self._threads: list[threading.Thread] = []
        if hangs:
            os.kill(services.store.pid, signal.SIGSTOP)
        else:
            services.store.kill()
        self.gone_s = time.monotonic()

    def stay(self, away_s: float) -> None:
        """Wait until every service is not ready, then send requests until the time is over."""
        self._threads = self._askers()
        for thread in self._threads:
            thread.start()
        for service in self._trio:
            service.wait_ready(is_ready=False)
        while time.monotonic() < self.gone_s + away_s or not self._is_answered():
            self.probes += [("/readyz", one.ask("GET", "/readyz")) for one in self._trio]
            time.sleep(_EVERY_S)

    def come_back(self) -> dict[str, float]:
        """Bring the store back; return when each service was ready."""
        self.back_s = time.monotonic()
        if self._hangs:
            os.kill(self._services.store.pid, signal.SIGCONT)
        else:
            self._services.store.start()
        ready = {}
        for service in self._trio:
            service.wait_ready()
            ready[service.name] = time.monotonic() - self.back_s
        for thread in self._threads:
            thread.join(2 * TIMEOUT_S)
        return ready

    def attempts(self) -> list[Attempt]:
        """Return the requests that began and ended without a store."""
        return [
            one
            for one in tuple(self._clients.attempts)
            if one.begun_s > self.gone_s and one.ended_s < self.back_s
        ]

    def slowest_s(self) -> float:
        """Return the longest wait for an answer, requests from before the outage included."""
        ended = (one for one in self._clients.attempts if self.gone_s < one.ended_s < self.back_s)
        return max((one.ended_s - one.begun_s for one in ended), default=0.0)

    def first_taken_s(self) -> float:
        """Return how long after the return a frame was taken for the first time."""
        taken = (one for one in self._clients.attempts if one.status == TAKEN)
        return min(one.ended_s for one in taken if one.ended_s > self.back_s) - self.back_s

    def faults(self) -> list[str]:
        """Return what should not have been answered."""
        attempts = self.attempts()
        found = [
            f"frames were answered with {one.status}" for one in attempts if one.status != AWAY
        ]
        silent = (one for one in attempts if one.status == AWAY and not one.says_when)
        found += ["503 without Retry-After" for _ in silent]
        for path, reply in self.probes:
            if reply.status != AWAY:
                found.append(f"{path} was answered with {reply.status}")
            elif path != "/readyz" and "retry-after" not in reply.headers:
                found.append(f"{path}: 503 without Retry-After")
        found += [f"answered with {status}" for status in self._clients.odd]
        return [f"{text}, {n} times" for text, n in Counter(found).items()]

    def _is_answered(self) -> bool:
        """Whether those were answered whom a store that hangs kept waiting, and some others."""
        return self._clients.oldest_s() > self.gone_s and bool(self.attempts())

    def _ask_on(self, path: str, ask: Callable[[], ServiceReply]) -> None:
        """Ask again and again for something that needs the store; the body of a thread."""
        while self.back_s > time.monotonic():
            begun_s, reply = time.monotonic(), ask()
            if time.monotonic() < self.back_s:
                self.probes.append((path, reply))
            time.sleep(max(0.0, begun_s + _EVERY_S - time.monotonic()))

    def _askers(self) -> list[threading.Thread]:
        services, path = self._services, f"/ledger/{DATA_SET}"
        ledger = services.bearer(Role.LEDGER)
        asks: dict[str, Callable[[], ServiceReply]] = {
            "/conservation": lambda: services.read("/conservation"),
            "/publications": lambda: services.publish("meanwhile"),
            path: lambda: services.publisher.ask("GET", path, headers=ledger),
        }
        return [threading.Thread(target=self._ask_on, args=pair) for pair in asks.items()]

    @property
    def _trio(self) -> tuple[ServiceProcess, ServiceProcess, ServiceProcess]:
        return self._services.ad_server, self._services.aggregator, self._services.publisher


def _by_status(statuses: Iterable[int]) -> dict[str, int]:
    return {str(status): n for status, n in sorted(Counter(statuses).items())}
