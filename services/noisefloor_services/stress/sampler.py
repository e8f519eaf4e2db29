"""What the system says each second, of every process and of the machine, while a load runs.

Read from ``/proc``. A process is known by its number and the time of its start, so that another
one that gets the number later is not taken for it. What has ended gives no sample.
"""

import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_STEAL = 7
_SPENT = 8
"""Columns of the machine's ticks that add up to all of its time; guests are in the first two."""

_IDLE = (3, 4)
EVERY_S = 1.0


@dataclass(frozen=True, slots=True)
class ProcessSample:
    """One process at one moment.

    Attributes:
        cpu_s: User and system time since its start, of all of its threads.
        memory_bytes: Resident.
        descriptors: Open ones; -1 if the process is somebody else's.
        switches: Context switches of its main thread since its start, of both sorts.
    """

    cpu_s: float
    memory_bytes: int
    descriptors: int
    switches: int


@dataclass(frozen=True, slots=True)
class MachineSample:
    """The machine at one moment.

    Attributes:
        busy_s: Time of all processors that was not idle, since the boot.
        steal_s: Time that the host gave to others.
        load: Of the last minute.
    """

    busy_s: float
    steal_s: float
    load: float


@dataclass(frozen=True, slots=True)
class LagSample:
    """What waits to be counted at one moment.

    Attributes:
        accepted: Frames that the collection took so far.
        pending: Frames that wait, or are at a worker.
    """

    accepted: int
    pending: int


@dataclass(frozen=True, slots=True)
class Sample:
    """Everything at one moment, in seconds of ``time.monotonic``."""

    at_s: float
    processes: Mapping[str, ProcessSample]
    machine: MachineSample
    lag: LagSample | None


def birth(pid: int) -> str:
    """Return what tells a process from others of its number; empty if it is gone."""
    try:
        return _fields(pid)[19]
    except (OSError, IndexError):
        return ""


def process_sample(pid: int) -> ProcessSample | None:
    """Read one process; None if it is gone."""
    try:
        fields = _fields(pid)
        pages = int((_PROC / str(pid) / "statm").read_text(encoding="ascii").split()[1])
        status = (_PROC / str(pid) / "status").read_text(encoding="utf-8", errors="replace")
    except (OSError, IndexError):
        return None
    lines = [line.split() for line in status.splitlines() if "ctxt_switches" in line]
    descriptors = -1
    with suppress(OSError):
        descriptors = len(os.listdir(_PROC / str(pid) / "fd"))
    cpu_s = (int(fields[11]) + int(fields[12])) / _TICKS
    return ProcessSample(cpu_s, pages * _PAGE, descriptors, sum(int(line[1]) for line in lines))


def machine_sample() -> MachineSample:
    """Read the machine."""
    line = (_PROC / "stat").read_text(encoding="ascii").split("\n", 1)[0]
    ticks = [int(word) for word in line.split()[1:]][:_SPENT]
    idle = sum(ticks[at] for at in _IDLE)
    busy = sum(ticks) - idle - ticks[_STEAL]
    return MachineSample(busy / _TICKS, ticks[_STEAL] / _TICKS, os.getloadavg()[0])


def _fields(pid: int) -> list[str]:
    text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    return text.rpartition(")")[2].split()  # a name may hold blanks and brackets


class Sampler:
    """Takes a sample each second in a thread of its own; a context manager that ends it.

    Args:
        pids: Of the processes by name.
        lag: Returns what waits, None if nobody can tell.
    """

    def __init__(self, pids: Mapping[str, int], lag: Callable[[], LagSample | None]) -> None:
        self._known = {name: (pid, birth(pid)) for name, pid in pids.items()}
        self._lag = lag
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._body, daemon=True)
        self.samples: list[Sample] = []

    def __enter__(self) -> "Sampler":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def take(self) -> Sample:
        """Take one sample now, and keep it."""
        found = {
            name: one
            for name, (pid, born) in self._known.items()
            if born and birth(pid) == born and (one := process_sample(pid)) is not None
        }
        sample = Sample(time.monotonic(), found, machine_sample(), self._lag())
        self.samples.append(sample)
        return sample

    def _body(self) -> None:
        while not self._over.wait(EVERY_S):
            self.take()
