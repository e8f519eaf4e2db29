"""What a topology is doing: who is ready, what waits, what is promised, and what was spent.

Numbers of a service, read from the text form of Prometheus.
"""

import re
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from noisefloor.wire.messages import ConservationReport
from noisefloor_sim.deploy import status
from noisefloor_sim.deploy.deployment import Deployment
from noisefloor_sim.deploy.environment import store_url
from noisefloor_sim.deploy.errors import BadState
from noisefloor_sim.deploy.probe import ProbeResponse, probe
from noisefloor_sim.deploy.process import (
    AD_SERVER,
    AGGREGATOR,
    PUBLISHER,
    SERVICES,
    STORES,
    Process,
)
from noisefloor_sim.deploy.redis_address import RedisAddress
from noisefloor_sim.deploy.state import EMBEDDED

_LINE = re.compile(r"noisefloor_([a-z_]+)(?:\{[^}]*\})? ([0-9.eE+-]+)")


def read(text: str) -> dict[str, float]:
    """Return every number by its name without the prefix, summed over its labels."""
    found: dict[str, float] = {}
    for name, value in _LINE.findall(text):
        found[name] = found.get(name, 0.0) + float(value)
    return found


READY, NOT_READY, GONE = "ready", "not ready", "gone"


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    """One process.

    Attributes:
        name: Of the process.
        state: ``ready``, ``not ready`` or ``gone``.
        why: Why it is not ready; empty if it is.
        address: Where it listens.
        pid: Its number.
        uptime_s: Seconds since its start; 0 if it is gone.
        memory_bytes: Resident memory, a store's server included.
        waiting: Frames that wait here; None where none do, or nobody can tell.
        log: Where its log is.
    """

    name: str
    state: str
    why: str
    address: str
    pid: int
    uptime_s: float
    memory_bytes: int
    waiting: int | None
    log: str


@dataclass(frozen=True, slots=True)
class UnkeptDurability:
    """A promise that a store does not keep, and why."""

    store: str
    why: str


@dataclass(frozen=True, slots=True)
class DurabilityStatus:
    """What an acknowledgement promises.

    Attributes:
        setting: ``disk`` or ``memory``.
        promise: The promise in one sentence; empty if nobody is there to make it.
        unkept: What the stores do not keep.
    """

    setting: str
    promise: str
    unkept: tuple[UnkeptDurability, ...]


@dataclass(frozen=True, slots=True)
class LedgerBudget:
    """A data set's budget."""

    data_set: str
    spent_epsilon: float
    left_epsilon: float
    spent_delta: float
    left_delta: float


@dataclass(frozen=True, slots=True)
class DeploymentStatus:
    """The whole topology.

    Attributes:
        folder: Where it runs.
        redis: ``embedded``, or the address of the server that is used.
        processes: Each of them.
        durability: What is promised.
        conservation: What became of the frames; None if nobody can tell.
        ledger: The budgets; None if nobody can tell.
    """

    folder: str
    redis: str
    processes: tuple[ProcessStatus, ...]
    durability: DurabilityStatus
    conservation: ConservationReport | None
    ledger: tuple[LedgerBudget, ...] | None

    @property
    def is_ready(self) -> bool:
        """Whether every process is ready."""
        return all(one.state == READY for one in self.processes)

    @property
    def is_conserved(self) -> bool:
        """Whether every frame that was accepted is accounted for; not if nobody can tell."""
        return self.conservation is not None and self.conservation.is_conserved

    @property
    def verdict(self) -> str:
        """Say in one line how it is."""
        unwell = [f"{one.name} is {one.state}" for one in self.processes if one.state != READY]
        ready = f"NOT READY ({'; '.join(unwell)})" if unwell else "READY"
        if self.conservation is None:
            return f"{ready}, conservation UNKNOWN: the aggregator does not tell."
        if not self.is_conserved:
            return f"{ready}, NOT CONSERVED: {self.conservation.missing} frames are missing."
        if self.conservation.alarms:
            return f"{ready}, CONSERVED, ALARM: {' '.join(self.conservation.alarms)}"
        return f"{ready}, CONSERVED."

    def as_json(self) -> dict[str, Any]:  # Any: JSON
        """Return everything as one object."""
        judged = {"is_ready": self.is_ready, "is_conserved": self.is_conserved}
        account = self.conservation and self.conservation.model_dump()
        return {"verdict": self.verdict, **judged, **asdict(self), "conservation": account}


def empty_status(folder: Path, why: str) -> dict[str, Any]:  # Any: JSON
    """Return the same keys for a folder in which nothing runs."""
    judged = {"verdict": why, "is_ready": False, "is_conserved": False}
    nobody = dict.fromkeys(("redis", "durability", "conservation", "ledger"))
    return {**judged, "folder": str(folder.resolve()), "processes": [], **nobody}


def read_status(topology: Deployment) -> DeploymentStatus:
    """Ask every process how it is; each answer is waited for within bounds."""
    answers = {
        name: probe(topology.processes[name].port, "/readyz")
        for name in SERVICES
        if name in topology.processes and topology.processes[name].is_running
    }
    return DeploymentStatus(
        folder=str(topology.paths.folder),
        redis=topology.state.redis,
        processes=tuple(
            _process(topology, one, answers.get(one.name)) for one in topology.state.processes
        ),
        durability=_durability(topology, answers),
        conservation=_conservation(topology),
        ledger=_ledger(topology),
    )


def _process(
    topology: Deployment, process: Process, answer: ProbeResponse | None
) -> ProcessStatus:
    state, why = _health(topology, process, answer)
    return ProcessStatus(
        name=process.name,
        state=state,
        why=why,
        address=topology.url(process.name),
        pid=process.pid,
        uptime_s=0.0 if state == GONE else round(max(0.0, time.time() - process.since), 1),
        memory_bytes=process.memory_bytes,
        waiting=_waiting(topology, process.name),
        log=str(topology.paths.log(process.name)),
    )


def _health(
    topology: Deployment, process: Process, answer: ProbeResponse | None
) -> tuple[str, str]:
    """Return a process's state, and why it is not ready."""
    if not process.is_running:
        orphan = "; its server still runs" if process.is_server_running else ""
        return GONE, topology.how_ended(process.name) + orphan
    if process.name in STORES:
        trouble = _store_trouble(topology, process)
        return (NOT_READY, trouble) if trouble else (READY, "")
    if answer is None:
        return NOT_READY, "it does not answer"
    if answer.status != 200:
        return NOT_READY, " ".join((answer.json() or {}).get("lacks", ()))
    return READY, ""


def _store_trouble(topology: Deployment, process: Process) -> str:
    try:
        url = store_url(topology.paths.data(process.name), "monitor", process.port)
    except BadState as error:
        return str(error)
    return RedisAddress.read(url).trouble()


def _waiting(topology: Deployment, name: str) -> int | None:
    """Return the frames that wait: for the store in the ad server, to be counted after it."""
    if name == AGGREGATOR:
        return topology.waiting()
    if name == AD_SERVER:
        answer = _reply_of(topology, AD_SERVER, "/metrics", "read")
        found = status.read(answer.body.decode()).get("ingest_waiting") if answer else None
        return None if found is None else int(found)
    return None


def _durability(
    topology: Deployment, answers: dict[str, ProbeResponse | None]
) -> DurabilityStatus:
    """Return what is promised; what an embedded store does not keep, it found out itself."""
    bodies = {name: (one.json() if one else None) or {} for name, one in answers.items()}
    if topology.state.redis == EMBEDDED:
        stores = [one for one in topology.state.processes if one.name in STORES]
        unkept = [UnkeptDurability(one.name, why) for one in stores for why in one.unkept]
    else:
        reply = (one["why"] for body in bodies.values() for one in body.get("unkept", ()))
        unkept = [UnkeptDurability(topology.state.redis, why) for why in dict.fromkeys(reply)]
    promises = [bodies.get(name, {}).get("promise", "") for name in (AGGREGATOR, AD_SERVER)]
    promise = next(filter(None, promises), "")  # the publisher's is about the ledger
    return DurabilityStatus(topology.state.durability, promise, tuple(unkept))


def _conservation(topology: Deployment) -> ConservationReport | None:
    answer = _reply_of(topology, AGGREGATOR, "/conservation", "read")
    if answer is None:
        return None
    return ConservationReport.model_validate(answer.json())


def _ledger(topology: Deployment) -> tuple[LedgerBudget, ...] | None:
    answer = _reply_of(topology, PUBLISHER, "/ledger", "ledger")
    return tuple(map(_budget, answer.json())) if answer else None


def _budget(reply: dict[str, Any]) -> LedgerBudget:  # Any: JSON
    return LedgerBudget(
        data_set=reply["subject"],
        spent_epsilon=reply["spent_micro_epsilon"] / 1e6,
        left_epsilon=reply["left_micro_epsilon"] / 1e6,
        spent_delta=reply["spent_delta"],
        left_delta=reply["left_delta"],
    )


def _reply_of(topology: Deployment, name: str, path: str, role: str) -> ProbeResponse | None:
    """Return a good answer of a process, None if there is none."""
    process = topology.processes.get(name)
    if process is None or not process.is_running:
        return None
    answer = probe(process.port, path, topology.token(role))
    return answer if answer is not None and answer.status == 200 else None
