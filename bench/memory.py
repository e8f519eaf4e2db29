"""Peak memory of each mechanism over the bytes it is given and gives back.

Each runs in a fresh process. The peak is that of the process's own address space (VmHWM):
``ru_maxrss`` would also count the parent's, which Linux hands down through exec.
"""

import argparse
import contextlib
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import noisefloor.mechanisms as nf
from noisefloor.randomness import SeededSource

# `python bench/memory.py` puts bench/ on the path, not its parent.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.table import aligned, figure

TARGET = 1.5
USERS = 10_000_000
QUICK_USERS = 1_000_000
CHUNK = 1 << 16  # whole rows of BITS and of SCORES
WARM_UP = 1000
BITS, SCORES = 16, 8

Fill = Callable[[int], NDArray[Any]]


def _filled(shape: tuple[int, ...], dtype: str, draw: Callable[[int], Any]) -> NDArray[Any]:
    """Make the input in chunks, so that no temporary of its own size ever lives."""
    array = np.empty(shape, dtype=dtype)
    flat = array.reshape(-1)
    for start in range(0, flat.size, CHUNK):
        stop = min(start + CHUNK, flat.size)
        flat[start:stop] = draw(stop - start)
    return array


def _integers(bound: int, dtype: str, *width: int) -> Fill:
    generator = np.random.default_rng(1)
    return lambda rows: _filled((rows, *width), dtype, lambda n: generator.integers(0, bound, n))


def _reals(low: float, *width: int) -> Fill:
    generator = np.random.default_rng(1)
    return lambda rows: _filled((rows, *width), "f8", lambda n: generator.uniform(low, 1.0, n))


def _one_hot(rows: int) -> NDArray[Any]:
    generator, table = np.random.default_rng(1), np.eye(BITS, dtype=np.bool_)
    return _filled(
        (rows, BITS), "?", lambda n: table[generator.integers(0, BITS, n // BITS)].reshape(-1)
    )


BIT, VECTOR = _integers(2, "?"), _integers(2, "?", BITS)
LETTER, COUNT = _integers(16, "u1"), _integers(1001, "i8")
SIGNED, UNSIGNED = _reals(-1.0), _reals(0.0)
ROW = _reals(0.0, SCORES)

CASES: dict[str, tuple[Callable[[], Any], Fill]] = {
    "BinaryResponse": (lambda: nf.BinaryResponse(1.0), BIT),
    "KaryResponse": (lambda: nf.KaryResponse(16, 1.0), LETTER),
    "UnaryEncoding, optimised": (lambda: nf.UnaryEncoding.optimised(BITS, 1.0), _one_hot),
    "UnaryEncoding, symmetric": (lambda: nf.UnaryEncoding.symmetric(BITS, 1.0), VECTOR),
    "LocalHashing": (lambda: nf.LocalHashing(16, 1.0), LETTER),
    "SubsetSelection": (lambda: nf.SubsetSelection(16, 1.0), LETTER),
    "MemoisedResponse, one bit": (lambda: nf.MemoisedResponse(2.0, 1.0), BIT),
    "MemoisedResponse, 16 periods": (lambda: nf.MemoisedResponse(2.0, 1.0, 16), BIT),
    "DiscreteLaplace": (lambda: nf.DiscreteLaplace(1.0, 0, 1000), COUNT),
    "DiscreteGaussian": (lambda: nf.DiscreteGaussian(1.0, 1e-6, 0, 1000), COUNT),
    "Piecewise": (lambda: nf.Piecewise(1.0), SIGNED),
    "Hybrid": (lambda: nf.Hybrid(1.0), SIGNED),
    "OneBitMean": (lambda: nf.OneBitMean(1.0), SIGNED),
    "SquareWave": (lambda: nf.SquareWave(1.0), UNSIGNED),
    "SampledBit": (lambda: nf.SampledBit(SCORES, 1.0), _reals(-1.0, SCORES)),
    "ArgmaxResponse": (lambda: nf.ArgmaxResponse(SCORES, 1.0), ROW),
    "NoisyMax, Laplace": (lambda: nf.NoisyMax.laplace(SCORES, 1.0), ROW),
    "NoisyMax, exponential": (lambda: nf.NoisyMax.exponential(SCORES, 1.0), ROW),
    "PermuteAndFlip": (lambda: nf.PermuteAndFlip(SCORES, 1.0), ROW),
    "ExponentialMechanism": (lambda: nf.ExponentialMechanism(SCORES, 1.0), ROW),
}


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def peak_bytes() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def forget_peak() -> None:
    """Let the peak start from what is resident now, where the kernel allows it."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _measure_here(name: str, users: int) -> dict[str, Any]:
    """Run one mechanism in this process; constants are paid in a small call beforehand."""
    build, fill = CASES[name]
    mechanism = build()
    mechanism.randomise(fill(WARM_UP), SeededSource(1, name, "warm-up"))
    forget_peak()
    before = resident_bytes()
    values = fill(users)
    reports = mechanism.randomise(values, SeededSource(1, name))
    used, size = peak_bytes() - before, values.nbytes + reports.nbytes
    figures = {"values_bytes": values.nbytes, "reports_bytes": reports.nbytes}
    return figures | {"dtype": str(reports.dtype), "peak_bytes": used, "ratio": used / size}


def _measure_apart(name: str, users: int) -> dict[str, Any]:
    command = [sys.executable, str(Path(__file__).resolve()), "--one", name, "--users", str(users)]
    done = subprocess.run(command, capture_output=True, text=True)  # noqa: S603  our own command
    if done.returncode:
        error = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return {"mechanism": name, "error": error, "verdict": "did not run"}
    result: dict[str, Any] = {"mechanism": name, "target": TARGET} | json.loads(done.stdout)
    return result | {"verdict": "met" if result["ratio"] < TARGET else "missed"}


def measure(users: int) -> list[dict[str, Any]]:
    """Measure every mechanism, each in a fresh process, one after another."""
    return [_measure_apart(name, users) for name in CASES]


def printed(results: list[dict[str, Any]], users: int) -> str:
    """Return the table, with a warning where it tells little."""
    header = ("mechanism", "values MB", "reports MB", "peak MB", "ratio", "target", "verdict")
    rows = []
    for result in results:
        sizes = [result.get(key) for key in ("values_bytes", "reports_bytes", "peak_bytes")]
        figures = [figure(size / 1e6 if size is not None else None) for size in sizes]
        verdict = f"{result['verdict']} {result.get('error', '')}".strip()
        ratio = figure(result.get("ratio"))
        rows.append((result["mechanism"], *figures, ratio, f"< {TARGET:g}", verdict))
    warning = f"Warning: at {users} users constants dominate; judge by {USERS}.\n"
    return (warning if users < USERS else "") + aligned(header, rows)


def main() -> None:
    """Measure all, or one in this process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", help="measure this mechanism in this process, print JSON")
    parser.add_argument("--users", type=int, default=USERS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(_measure_here(arguments.one, arguments.users)))
    else:
        print(printed(measure(arguments.users), arguments.users))


if __name__ == "__main__":
    main()
