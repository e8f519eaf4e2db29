"""The publisher is killed between charge and release: none is unpaid, and none drawn twice."""

import hashlib
import json
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from redis import Redis

from noisefloor_services.chaos.noise_publisher import EPSILON
from noisefloor_services.chaos.plan import ProgressCallback
from noisefloor_services.chaos.processes import BROKEN, NOBODY, ChaosTimeout
from noisefloor_services.chaos.topology import DATA_SET, ChaosTopology
from noisefloor_services.ledger import RedisLedger
from noisefloor_services.security import Role

_CLIENTS = 4
_PAUSE_S = 0.02
_STUCK_S = 60.0


@dataclass(frozen=True, slots=True)
class PublishingOutcome:
    """What became of publications whose publisher was killed.

    Attributes:
        faults: What should not have been, in words; none in a good run.
        kills: SIGKILLs of the publisher.
        publications: That were requested until they were answered.
        orphans: Charged and not stored at the moment of a kill, over all kills.
        unpaid: Releases without a charge; looked for after every kill and at the end.
        answers: With 200; every publication is requested once more after its first answer.
        elapsed_s: Of it all.
    """

    faults: tuple[str, ...]
    kills: int
    publications: int
    orphans: int
    unpaid: int
    answers: int
    elapsed_s: float

    @property
    def is_exact(self) -> bool:
        """Whether everything is as it has to be."""
        return not self.faults


def run_publishing(
    kills: int, folder: Path, on_progress: ProgressCallback = lambda _: None
) -> PublishingOutcome:
    """Kill the publisher repeatedly while clients publish; compare ledger and stored releases."""
    start_s = time.monotonic()
    with ChaosTopology(folder) as services, Redis.from_url(services.store.url) as client:
        ledger = services.create_ledger()
        services.start(services.publisher)
        callers = [_Caller(services, name) for name in range(_CLIENTS)]
        orphans, unpaid = 0, 0
        for number in range(kills):
            _wait(callers, number + 1)
            services.publisher.kill()
            orphans += _orphans(ledger)
            unpaid += _unpaid(client, ledger)
            services.publisher.start()
            on_progress(number / kills)
        for caller in callers:
            caller.over()
        unpaid += _unpaid(client, ledger)
        faults = [fault for caller in callers for fault in caller.faults]
        faults += _unlike(services, ledger, callers)
    if unpaid:
        faults.append(f"{unpaid} releases without a charge")
    return PublishingOutcome(
        faults=tuple(faults),
        kills=kills,
        publications=sum(len(caller.seen) for caller in callers),
        orphans=orphans,
        unpaid=unpaid,
        answers=sum(caller.answers for caller in callers),
        elapsed_s=time.monotonic() - start_s,
    )


class _Caller:
    """Publishes one thing after the other, each until it is answered and then once more."""

    def __init__(self, services: ChaosTopology, name: int) -> None:
        self.seen: dict[str, bytes] = {}
        self.faults: list[str] = []
        self.answers = 0
        self._services = services
        self._name = name
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._body, daemon=True)
        self._thread.start()

    def over(self) -> None:
        """Finish what was begun."""
        self._is_over.set()
        self._thread.join(_STUCK_S)
        if self._thread.is_alive():
            raise ChaosTimeout("A publication is never answered.")

    def _body(self) -> None:
        number = 0
        while not self._is_over.is_set():
            number += 1
            publication_id = f"p-{self._name}-{number}"
            first, again = self._published(publication_id), self._published(publication_id)
            self.seen[publication_id] = first
            if first != again:
                self.faults.append(f"{publication_id} was answered in two ways")

    def _published(self, publication_id: str) -> bytes:
        for _ in range(int(_STUCK_S / _PAUSE_S)):
            reply = self._services.publish(publication_id)
            if reply.status == 200:
                self.answers += 1
                return reply.body
            if reply.status not in (BROKEN, NOBODY, 503):
                self.faults.append(f"{publication_id} was answered with {reply.status}")
                return b""
            time.sleep(_PAUSE_S)
        return b""


def _wait(callers: list[_Caller], rounds: int) -> None:
    """Wait until every caller has published some more."""
    deadline = time.monotonic() + _STUCK_S
    while min(len(caller.seen) for caller in callers) < rounds:
        if time.monotonic() > deadline:
            raise ChaosTimeout("Nothing is published.")
        time.sleep(_PAUSE_S)


def _orphans(ledger: RedisLedger) -> int:
    """Return how many were charged and not stored."""
    return sum(ledger.published(one.spend_id) is None for one in ledger.entries(DATA_SET))


def _unpaid(client: "Redis", ledger: RedisLedger) -> int:
    """Return how many releases are stored without a charge."""
    paid = {one.spend_id for one in ledger.entries(DATA_SET)}
    kept = {key.decode().rpartition(":kept:")[2] for key in client.scan_iter("*:kept:*")}
    return len(kept - paid)


def _unlike(services: ChaosTopology, ledger: RedisLedger, callers: list[_Caller]) -> list[str]:
    """Return every mismatch: the total, a charge twice, bytes other than those stored."""
    entries, faults = ledger.entries(DATA_SET), []
    charged = Counter(one.spend_id for one in entries)
    seen = {name: body for caller in callers for name, body in caller.seen.items()}
    if set(charged) != set(seen) or max(charged.values()) > 1:
        faults.append(f"{len(charged)} publications were charged, {len(seen)} were answered")
    spent = ledger.spent(DATA_SET).micro_epsilon
    if spent != round(1e6 * EPSILON) * len(seen):
        faults.append(f"{spent} millionths were spent on {len(seen)} publications")
    reads = services.bearer(Role.READ)
    for name, body in seen.items():
        if services.publish(name).body != body:
            faults.append(f"{name} is another one now")
        kept = services.publisher.ask("GET", f"/publications/{name}", headers=reads).body
        if hashlib.sha256(kept).hexdigest() != json.loads(body)["card"]["content_sha256"]:
            faults.append(f"{name} has other bytes than it was answered with")
    return faults
