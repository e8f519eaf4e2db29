"""What else the machine does while something is measured, and how fast its disk syncs."""

import os
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.processes import cpu_s

_TICKS = os.sysconf("SC_CLK_TCK")
_OF_PROCESSES = slice(0, 3)
"""User, nice and system time; interrupts, most of which are our own packets, are nobody's."""

_STEAL = 7
_SYNCS = 300


def processor_ticks() -> list[int]:
    """Return the ticks of all processors together, by what they were spent on."""
    return [int(tick) for tick in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]


def steal_share(before: Sequence[int]) -> float:
    """Return which share of the time since then the host gave to somebody else."""
    spent = [now - then for now, then in zip(processor_ticks(), before, strict=True)]
    return spent[_STEAL] / max(1, sum(spent[:8]))


def sync_ms(folder: Path) -> tuple[float, float]:
    """Return how long a sync of one written page takes here: the median and the 99th percent."""
    took = []
    with open(folder / "sync", "wb", buffering=0) as file:
        for _ in range(_SYNCS):
            file.write(bytes(4096))
            start = time.perf_counter()
            os.fdatasync(file.fileno())
            took.append(1000 * (time.perf_counter() - start))
    return statistics.median(took), statistics.quantiles(took, n=100)[98]


class Watch:
    """Looks at the machine from here on.

    The load average counts ourselves and lags by a minute; the processors that others took while
    we measured do neither.

    Args:
        pids: Of the processes that belong to the measurement.
    """

    def __init__(self, pids: Sequence[int]) -> None:
        self._pids = tuple(pids)
        self._ticks = processor_ticks()
        self._ours_s = self._spent_s()
        self._start_s = time.perf_counter()

    def figures(self) -> dict[str, Any]:  # Any: JSON
        """Return the load, the steal, and how many processors others took."""
        spent = [now - then for now, then in zip(processor_ticks(), self._ticks, strict=True)]
        busy_s = sum(spent[_OF_PROCESSES]) / _TICKS
        others = (busy_s - (self._spent_s() - self._ours_s)) / (
            time.perf_counter() - self._start_s
        )
        steal = spent[_STEAL] / max(1, sum(spent[:8]))
        return {"load": os.getloadavg()[0], "steal": steal, "others": max(0.0, others)}

    def _spent_s(self) -> float:
        return sum(cpu_s(pid) for pid in self._pids)
