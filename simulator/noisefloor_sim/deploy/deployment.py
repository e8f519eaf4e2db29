"""A running topology: where its services are, whose tokens they take, and how to stop it.

An orderly end: no more reports in, what waits is counted, then everybody stops.
"""

import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from noisefloor.errors import BadParameter
from noisefloor_sim.deploy import pids
from noisefloor_sim.deploy import state as states
from noisefloor_sim.deploy.errors import BadState, NotRunning, StaleState
from noisefloor_sim.deploy.paths import DeploymentPaths, read_token
from noisefloor_sim.deploy.probe import probe
from noisefloor_sim.deploy.process import (
    AD_SERVER,
    AGGREGATOR,
    STOPPING_ORDER,
    STORES,
    Process,
    describe_exit,
    exit_code,
)
from noisefloor_sim.deploy.state import DeploymentState

DRAIN_S = 20.0
SERVICE_S = 15.0
STORE_S = 30.0
_PAUSE_S = 0.05

Waiting = Callable[[], int | None]
"""Returns how many frames wait to be counted; None if nobody can tell."""


@dataclass(frozen=True, slots=True)
class ProcessExit:
    """How a process ended.

    Attributes:
        name: Of the process.
        how: ``stopped``, ``killed`` (it did not stop in time) or ``was gone``.
        code: Its exit code, None if it is not known.
    """

    name: str
    how: str
    code: int | None

    @property
    def is_clean(self) -> bool:
        """Whether it stopped when it was asked to, and had nothing to complain about."""
        return self.how == "stopped" and self.code == 0

    def __str__(self) -> str:
        if self.is_clean:
            return f"{self.name}: stopped"
        if self.how == "killed":
            return f"{self.name}: did not stop in time and was killed"
        before = "was gone before" if self.how == "was gone" else "stopped"
        return f"{self.name}: {before} ({describe_exit(self.code)})"


@dataclass(frozen=True, slots=True)
class StopReport:
    """What happened when everything was stopped.

    Attributes:
        endings: Of each process, in order.
        waiting: Frames that were not counted yet when counting stopped; None if nobody could
            tell. What is on disk is counted after the next start.
    """

    endings: tuple[ProcessExit, ...]
    waiting: int | None

    @property
    def is_clean(self) -> bool:
        """Whether everything was counted and everybody stopped as they should."""
        return self.waiting == 0 and all(one.is_clean for one in self.endings)


def stop_all(
    processes: Mapping[str, Process], paths: DeploymentPaths, waiting: Waiting
) -> StopReport:
    """Stop every process, the ad server first and the stores last."""
    endings = []
    left = None
    for name in STOPPING_ORDER:
        if name in processes:
            endings.append(stop_process(processes[name], paths))
        if name == AD_SERVER:
            left = wait_drained(waiting)
    return StopReport(tuple(endings), left)


def wait_drained(waiting: Waiting, within_s: float = DRAIN_S) -> int | None:
    """Wait until nothing waits to be counted, and return what still does."""
    deadline = time.monotonic() + within_s
    while True:
        left = waiting()
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(_PAUSE_S)


def stop_process(process: Process, paths: DeploymentPaths) -> ProcessExit:
    """Stop one process, and its database server if it left one behind."""
    limit_s = STORE_S if process.name in STORES else SERVICE_S
    how, seen_s = "was gone", 0.2
    if process.is_running:
        seen_s = 2.0
        how = _ended(process.pid, process.born, limit_s)
    if process.is_server_running:
        _ended(process.server_pid, process.server_born, STORE_S)
    return ProcessExit(process.name, how, exit_code(process.name, paths, seen_s))


def _ended(pid: int, born: str, limit_s: float) -> str:
    """Ask a process to stop; kill it if it does not. Return which of the two it was."""
    pids.send(pid, born, signal.SIGTERM)
    if _is_gone(pid, born, limit_s):
        return "stopped"
    pids.send(pid, born, signal.SIGKILL)
    _is_gone(pid, born, limit_s)
    return "killed"


def _is_gone(pid: int, born: str, limit_s: float) -> bool:
    deadline = time.monotonic() + limit_s
    while pids.is_running(pid, born):
        if time.monotonic() > deadline:
            return False
        time.sleep(_PAUSE_S / 2)
    return True


class Deployment:
    """The processes that were started in a folder; some of them may be gone by now.

    Args:
        paths: Where its files lie.
        state: What was started.
    """

    __slots__ = ("paths", "processes", "state")

    def __init__(self, paths: DeploymentPaths, state: DeploymentState) -> None:
        self.paths = paths
        self.state = state
        self.processes: Mapping[str, Process] = MappingProxyType(
            {one.name: one for one in state.processes}
        )

    @property
    def gone(self) -> tuple[str, ...]:
        """The processes that have ended."""
        return tuple(name for name, one in self.processes.items() if not one.is_running)

    def url(self, name: str) -> str:
        """Return the address of a process: ``ad-server``, ``aggregator``, ``model-publisher``.

        A store's has no password in it.
        """
        scheme = "redis" if name in STORES else "http"
        return f"{scheme}://127.0.0.1:{self._port(name)}"

    def token(self, role: str) -> str:
        """Return the bearer token of a role: ``admin``, ``ledger``, ``publish`` or ``read``."""
        return read_token(self.paths.tokens, role)

    def waiting(self) -> int | None:
        """Return how many frames wait to be counted; None if nobody can tell."""
        if AGGREGATOR not in self.processes:
            return None
        try:
            answer = probe(self._port(AGGREGATOR), "/state", self.token("read"))
        except BadState:
            return None
        return int(answer.json()["waiting"]) if answer and answer.status == 200 else None

    def how_ended(self, name: str) -> str:
        """Say how a process that is gone has ended."""
        return describe_exit(exit_code(name, self.paths, wait_s=0.5))

    def stop(self) -> StopReport:
        """Let what waits be counted, stop everything in order, and say how each ended."""
        with self.paths.locked():
            stopped = stop_all(self.processes, self.paths, self.waiting)
            self.paths.state.unlink(missing_ok=True)
        return stopped

    def _port(self, name: str) -> int:
        if name not in self.processes:
            raise BadParameter("name", name, f"one of {', '.join(self.processes)}")
        return self.processes[name].port


def found(folder: Path) -> Deployment:
    """Return what was started in a folder and not stopped since, or raise NotRunning."""
    paths = DeploymentPaths.of(folder)
    state = states.read(paths)
    if state is None:
        raise NotRunning(f"Nothing runs in {folder}: start it by noisefloor up --folder {folder}.")
    return Deployment(paths, state)


def running(folder: Path) -> Deployment:
    """Return what runs in a folder.

    Raises:
        NotRunning: Nothing was started there, or it was stopped.
        StaleState: Every process that was started there is gone.
    """
    topology = found(folder)
    if is_any_running(topology):
        return topology
    ends = ", ".join(f"{name} {topology.how_ended(name)}" for name in topology.gone)
    raise StaleState(
        f"Nothing runs in {folder} any more ({ends or 'the start was broken off'}). "
        f"Start it again by noisefloor up --folder {folder}."
    )


def is_any_running(topology: Deployment) -> bool:
    """Whether any process still runs, a database server included."""
    return any(one.is_running or one.is_server_running for one in topology.processes.values())
