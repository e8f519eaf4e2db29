"""An orderly end: no more reports in, what waits is counted, then everybody stops."""

import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from noisefloor_sim.topology import pids
from noisefloor_sim.topology.names import AD_SERVER, STOPPING_ORDER, STORES
from noisefloor_sim.topology.places import Places
from noisefloor_sim.topology.process import Process, exit_code, outcome

DRAIN_S = 20.0
SERVICE_S = 15.0
STORE_S = 30.0
_PAUSE_S = 0.05

Waiting = Callable[[], int | None]
"""Returns how many frames wait to be counted; None if nobody can tell."""


@dataclass(frozen=True, slots=True)
class Ending:
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
        return f"{self.name}: {before} ({outcome(self.code)})"


@dataclass(frozen=True, slots=True)
class Stopped:
    """What happened when everything was stopped.

    Attributes:
        endings: Of each process, in order.
        waiting: Frames that were not counted yet when counting stopped; None if nobody could
            tell. What is on disk is counted after the next start.
    """

    endings: tuple[Ending, ...]
    waiting: int | None

    @property
    def is_clean(self) -> bool:
        """Whether everything was counted and everybody stopped as they should."""
        return self.waiting == 0 and all(one.is_clean for one in self.endings)


def stop_all(processes: Mapping[str, Process], places: Places, waiting: Waiting) -> Stopped:
    """Stop every process, the ad server first and the stores last."""
    endings = []
    left = None
    for name in STOPPING_ORDER:
        if name in processes:
            endings.append(end(processes[name], places))
        if name == AD_SERVER:
            left = drained(waiting)
    return Stopped(tuple(endings), left)


def drained(waiting: Waiting, within_s: float = DRAIN_S) -> int | None:
    """Wait until nothing waits to be counted, and return what still does."""
    deadline = time.monotonic() + within_s
    while True:
        left = waiting()
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(_PAUSE_S)


def end(process: Process, places: Places) -> Ending:
    """Stop one process, and its database server if it left one behind."""
    limit_s = STORE_S if process.name in STORES else SERVICE_S
    how, seen_s = "was gone", 0.2
    if process.is_running:
        seen_s = 2.0
        how = _ended(process.pid, process.born, limit_s)
    if process.is_server_running:
        _ended(process.server_pid, process.server_born, STORE_S)
    return Ending(process.name, how, exit_code(process.name, places, seen_s))


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
