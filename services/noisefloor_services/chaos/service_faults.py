"""Frames through the real ad server, over HTTP, while the services themselves are killed.

Clients send in a closed loop, and the same bytes again until they get 202. So a kill of the ad
server leaves frames that Redis has accepted and no 202 confirmed; a kill of the aggregator leaves
frames that are pending at it. In the end every cell is compared, as the aggregator's API shows it.
"""

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from noisefloor.checks import check_count
from noisefloor.randomness import SeededSource
from noisefloor_services.chaos.clients import TAKEN, ClickTraffic, Clients
from noisefloor_services.chaos.plan import ProgressCallback
from noisefloor_services.chaos.processes import BROKEN
from noisefloor_services.chaos.topology import ChaosTopology
from noisefloor_services.store import Durability
from noisefloor_services.streams import ABANDONED_S, Conservation

POISON_EVERY = 40
_ASLEEP_S = 1.3 * ABANDONED_S


@dataclass(frozen=True, slots=True)
class ServicePlan:
    """How much goes through the services, and what is done to them.

    Attributes:
        reports: In all frames that are sent, repeats and poison included.
        reports_a_frame: In each.
        ad_server_kills: SIGKILLs of the ad server, with requests under way.
        aggregator_kills: SIGKILLs of the aggregator, with frames pending at it.
        zombies: Times that the aggregator is paused until another worker took over.
        server_kills: SIGKILLs of the Redis server.
        seed: Of reports, order and faults.
        durability: Of the server.
    """

    reports: int = 200_000
    reports_a_frame: int = 100
    ad_server_kills: int = 10
    aggregator_kills: int = 10
    zombies: int = 2
    server_kills: int = 2
    seed: int = 1
    durability: Durability = Durability.DISK

    def __post_init__(self) -> None:
        check_count(self.reports_a_frame, "reports_a_frame", most=10_000)
        check_count(self.reports, "reports", least=100 * self.reports_a_frame)
        for name in ("ad_server_kills", "aggregator_kills", "zombies", "server_kills"):
            check_count(getattr(self, name), name, least=0, most=1000)


@dataclass(frozen=True, slots=True)
class ServiceOutcome:
    """What came of it.

    Attributes:
        faults: Each difference to the truth, in words; none in a good run.
        conservation: Frames by what became of them.
        frames: That have to count.
        reports: In them.
        ad_server_kills: That were done.
        aggregator_kills: That were done.
        zombies: Times that it was paused and resumed.
        server_kills: That were done.
        requests: Sent, repeats included.
        answered: With 202.
        unanswered: Requests whose connection broke.
        taken_unanswered: Accepted by Redis and confirmed by no 202: the kill came in between.
        pending_frames: Pending at the aggregator when it was killed or stopped, in all.
        poison: Frames that can never count, each answered with 400.
        cells: Integer sums that were compared, one by one.
        elapsed_s: Of it all.
    """

    faults: tuple[str, ...]
    conservation: Conservation
    frames: int
    reports: int
    ad_server_kills: int
    aggregator_kills: int
    zombies: int
    server_kills: int
    requests: int
    answered: int
    unanswered: int
    taken_unanswered: int
    pending_frames: int
    poison: int
    cells: int
    elapsed_s: float

    @property
    def is_exact(self) -> bool:
        """Whether everything is as it has to be."""
        return not self.faults


def run_services(
    plan: ServicePlan, folder: Path, on_progress: ProgressCallback = lambda _: None
) -> ServiceOutcome:
    """Run a plan with its data in a folder, and say what came of it."""
    start_s = time.monotonic()
    traffic = ClickTraffic(
        plan.seed, reports_a_frame=plan.reports_a_frame, poison_every=POISON_EVERY
    )
    with ChaosTopology(folder, plan.durability) as services:
        services.worker.launch()
        services.start(services.ad_server, services.aggregator)
        storm = _Storm(plan, services)
        clients = storm.blow(traffic, on_progress)
        account = services.settle()
        faults, cells = services.compared(traffic)
    answered = clients.answers(TAKEN)
    faults += services.miscounted(traffic, account)
    faults += [f"answered with {status}, {n} times" for status, n in clients.odd.items()]
    if answered > account.accepted:
        faults.append(f"{answered - account.accepted} frames were answered with 202 and are gone")
    return ServiceOutcome(
        faults=tuple(faults),
        conservation=account,
        frames=traffic.frames,
        reports=traffic.reports,
        **storm.done,
        requests=len(clients.attempts),
        answered=answered,
        unanswered=clients.answers(BROKEN),
        taken_unanswered=account.accepted - answered,
        pending_frames=storm.pending_frames,
        poison=traffic.poison,
        cells=cells,
        elapsed_s=time.monotonic() - start_s,
    )


class _Storm:
    """Faults in a random order, each in the midst of requests."""

    def __init__(self, plan: ServicePlan, services: ChaosTopology) -> None:
        self._services = services
        self._strikes: dict[str, Callable[[], None]] = {
            "ad_server_kills": self._kill_ad_server,
            "aggregator_kills": self._kill_aggregator,
            "zombies": self._sleep,
            "server_kills": self._crash,
        }
        faults = [name for name in self._strikes for _ in range(getattr(plan, name))]
        order = SeededSource(plan.seed, "service-faults").generator().permutation(len(faults))
        self._faults = [faults[int(at)] for at in order]
        self._frames = plan.reports // plan.reports_a_frame
        self.done = dict.fromkeys(self._strikes, 0)
        self.pending_frames = 0

    def blow(self, traffic: ClickTraffic, on_progress: ProgressCallback) -> Clients:
        """Let frames go out in portions, and strike in the midst of each."""
        clients = Clients(self._services.ad_server.port, traffic.outgoing_frames())
        portion, sent = max(1, self._frames // (len(self._faults) + 1)), 0
        for number, fault in enumerate(self._faults):
            clients.allow(portion)
            clients.wait(sent + portion // 2)
            self._strikes[fault]()
            self.done[fault] += 1
            sent += portion
            on_progress(number / len(self._faults))
        clients.allow(self._frames - sent)
        clients.wait(self._frames)
        clients.finish()
        return clients

    def _kill_ad_server(self) -> None:
        self._services.ad_server.kill()
        self._services.ad_server.start()

    def _kill_aggregator(self) -> None:
        self._services.aggregator.kill()
        self.pending_frames += self._services.pending_frames(self._services.aggregator)
        self._services.aggregator.start()

    def _sleep(self) -> None:
        """Stop the aggregator until the other worker took over what it holds."""
        self._services.aggregator.send(signal.SIGSTOP)
        self.pending_frames += self._services.pending_frames(self._services.aggregator)
        time.sleep(_ASLEEP_S)
        self._services.aggregator.send(signal.SIGCONT)

    def _crash(self) -> None:
        self._services.store.kill()
        self._services.store.start()
