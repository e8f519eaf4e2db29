"""The machine that a load ran on, for the run card: a figure without it says little."""

import os
import platform
import statistics
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

_SYNCS = 100
_PAGE = 4096


def machine_card(folder: Path) -> dict[str, str]:
    """Return what the machine is, and how long its disk takes to sync a page in a folder."""
    median_ms, most_ms = sync_ms(folder)
    return {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "noisefloor": version("noisefloor"),
        "fdatasync": f"median {median_ms:.2f} ms, longest of {_SYNCS} {most_ms:.2f} ms",
        "load before": f"{os.getloadavg()[0]:.2f}",
    }


def sync_ms(folder: Path) -> tuple[float, float]:
    """Return how long a sync of one written page takes in a folder: the median, the longest."""
    took = []
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        for _ in range(_SYNCS):
            file.write(bytes(_PAGE))
            begun_s = time.perf_counter()
            os.fdatasync(file.fileno())
            took.append(1000 * (time.perf_counter() - begun_s))
    return statistics.median(took), max(took)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
