"""SIGTERM under load: under way is answered, accepted is kept, and the exit code is 0."""

import os
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from noisefloor_services.chaos.clients import AWAY, TAKEN, ClickTraffic, Clients
from noisefloor_services.chaos.processes import BROKEN, ServiceProcess
from noisefloor_services.chaos.topology import PARTITIONS, ChaosTopology
from noisefloor_services.store import Durability
from noisefloor_services.streams import Conservation

GRACE_S = 10.0
"""Within which a service has to end after SIGTERM."""

_PAUSE_S = 0.005


@dataclass(frozen=True, slots=True)
class TerminationOutcome:
    """What SIGTERMs under load came to.

    Attributes:
        faults: What should not have been, in words; none in a good run.
        rounds: SIGTERMs of the ad server and of the aggregator, each.
        ad_server_s: The longest that an ad server took to stop.
        aggregator_s: The longest that an aggregator took to stop.
        hanging_s: The longer of both stops with a store that hangs; 0 if that was left out.
        taken: Frames that were answered with 202 by ad servers after SIGTERM.
        lost: Of these, frames that were not in the streams afterwards.
        refused: Requests that were answered with 503.
        unanswered: Requests on connections that were closed; sent again later.
        taken_unanswered: Frames that Redis accepted and no 202 confirmed: there must be none.
        conservation: Frames by what became of them, at the end.
        cells: Integer sums that were compared, one by one.
    """

    faults: tuple[str, ...]
    rounds: int
    ad_server_s: float
    aggregator_s: float
    hanging_s: float
    taken: int
    lost: int
    refused: int
    unanswered: int
    taken_unanswered: int
    conservation: Conservation
    cells: int

    @property
    def is_exact(self) -> bool:
        """Whether everything is as it has to be."""
        return not self.faults


def run_termination(
    rounds: int,
    folder: Path,
    *,
    frames: int = 600,
    seed: int = 1,
    durability: Durability = Durability.DISK,
    with_hang: bool = False,
) -> TerminationOutcome:
    """Ask ad server and aggregator to stop under load, several times, and look what is left."""
    traffic = ClickTraffic(seed)
    with ChaosTopology(folder, durability) as services:
        run = _Run(services, frames, durability)
        services.epochs.prepare()  # as an aggregator does: none runs yet
        services.start(services.ad_server)
        clients = Clients(services.ad_server.port, traffic.outgoing_frames())
        for _ in range(rounds):
            run.stop_ad_server(clients)
            services.ad_server.start()
            run.stop_aggregator(clients)
        clients.finish()
        services.aggregator.start()
        account = services.settle()
        services.aggregator.wait_ready()
        faults, cells = services.compared(traffic)
        if with_hang:
            run.stop_both_without_store()
    faults += services.miscounted(traffic, account) + run.faults
    faults += [f"answered with {status}, {n} times" for status, n in clients.odd.items()]
    untold = account.accepted - clients.answers(TAKEN)
    if untold:
        faults.append(f"{untold} frames were taken and not answered")
    return TerminationOutcome(
        faults=tuple(faults),
        rounds=rounds,
        ad_server_s=run.ad_server_s,
        aggregator_s=run.aggregator_s,
        hanging_s=run.hanging_s,
        taken=run.taken,
        lost=run.lost,
        refused=clients.answers(AWAY),
        unanswered=clients.answers(BROKEN),
        taken_unanswered=untold,
        conservation=account,
        cells=cells,
    )


class _Run:
    """What was seen at every stop."""

    def __init__(self, services: ChaosTopology, frames: int, durability: Durability) -> None:
        self.faults: list[str] = []
        self.ad_server_s = self.aggregator_s = self.hanging_s = 0.0
        self.taken = self.lost = 0
        self._services = services
        self._frames = frames
        self._durability = durability
        self._settled: set[bytes] = set()

    def stop_ad_server(self, clients: Clients) -> None:
        """Stop the ad server under load while nothing counts; everything it took is there."""
        self._load(clients)
        watch = _Watch(self._services.ad_server)
        self.ad_server_s = max(self.ad_server_s, self._stopped(self._services.ad_server))
        self.faults += watch.over()
        if self._durability is Durability.DISK:
            self._services.store.kill()
            self._services.store.start()
        answered = {one.data for one in tuple(clients.delivered)} - self._settled
        kept = self._kept()
        self.taken += len(answered)
        lost = len(answered - kept)
        self.lost += lost
        if lost:
            self.faults.append(f"{lost} frames were answered with 202 and are gone")
        self._settled |= answered

    def stop_aggregator(self, clients: Clients) -> None:
        """Stop the aggregator under load; its batch is counted once or left to the next."""
        self._services.aggregator.start()
        self._load(clients)
        self.aggregator_s = max(self.aggregator_s, self._stopped(self._services.aggregator))
        account = self._services.epochs.conservation()
        if not account.is_conserved:
            self.faults.append(f"{account.missing} frames have no outcome after a stop")
        # What waits now is counted by the next one; it is not looked for in the streams again.
        self._settled |= {one.data for one in tuple(clients.delivered)}

    def stop_both_without_store(self) -> None:
        """Stop both while the store hangs: they do not wait for it for longer than they may."""
        services = self._services
        os.kill(services.store.pid, signal.SIGSTOP)
        self.hanging_s = max(map(self._stopped, (services.ad_server, services.aggregator)))
        os.kill(services.store.pid, signal.SIGCONT)

    def _load(self, clients: Clients) -> None:
        """Let frames go out, and return while they do."""
        before = len(clients.delivered)
        clients.allow(self._frames)
        clients.wait(before + self._frames // 3)

    def _stopped(self, service: ServiceProcess) -> float:
        code, took_s = service.terminate()
        if code:
            self.faults.append(f"the {service.name} ended with {code}")
        if took_s > GRACE_S:
            self.faults.append(f"the {service.name} took {took_s:.1f} s to stop")
        return took_s

    def _kept(self) -> set[bytes]:
        """Return every frame in the streams."""
        layout, server = self._services.epochs.layout, self._services.epochs.server
        names = [layout.keys(place).frames for place in range(PARTITIONS)]
        replies = server.all([("XRANGE", name, "-", "+") for name in names])
        return {fields[1] for entries in replies for _, fields in entries}


class _Watch:
    """Asks a service again and again whether it is ready, until it is gone."""

    def __init__(self, service: ServiceProcess) -> None:
        self._service = service
        self._statuses: list[int] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._body, daemon=True)
        self._thread.start()

    def over(self) -> list[str]:
        """Stop polling; a service that stops is not ready, and does not become so again."""
        self._is_over.set()
        self._thread.join()
        first = next((at for at, one in enumerate(self._statuses) if one != 200), None)
        if first is None:
            return ["readiness was not off after the stop"]
        return ["ready again while it stops"] if 200 in self._statuses[first:] else []

    def _body(self) -> None:
        while True:
            is_last = self._is_over.is_set()
            self._statuses.append(self._service.ask("GET", "/readyz").status)
            if is_last:
                return
            time.sleep(_PAUSE_S)
