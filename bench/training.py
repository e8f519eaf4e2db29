"""Training through frames, bus and server: users per CPU-second, growth with n, peak memory.

One round of version 2 (bits of gradients) with a gradient step and with ridge regression on the
devices, and all three rounds of version 3 (spectral). Ratings are made before the clock starts;
then devices, frames, bus, server and update all count. Every run is in a fresh process, one
thread, and trains several times over; rates are the best of all, growth compares the sums of
processes run in turn. The baseline in the same run is the arithmetic alone: devices and tally,
without frames and bus. It reports; it does not fail on a missed target.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

# `python bench/training.py` puts bench/ on the path, not its parent.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.memory import peak_bytes
from bench.table import aligned, figure
from bench.worker import ONE_THREAD, ROOT

from noisefloor.ads.training.bit_training import BitTraining
from noisefloor.ads.training.factorisation import Ratings
from noisefloor.ads.training.rounds import AdTraining
from noisefloor.ads.training.spectral_training import SpectralTraining
from noisefloor.randomness import SeededSource, new_run
from noisefloor.roles import TrainingCoordinator
from noisefloor.tasks import AdTask, read_broadcast
from noisefloor.wire.bus import MemoryBus, drain
from noisefloor.wire.frames import split_frames

COHORT = 65_536
USERS, QUICK_USERS = 1_000_000, 200_000
REPEATS, QUICK_REPEATS = 3, 1
TIMES = 5
"""How often a process trains: one round of a million users is over in a fraction of a second."""

RATE_TARGETS = {"step": 1_500_000.0, "ridge": 500_000.0, "spectral": 200_000.0}
GROWTH_TARGET, MEMORY_TARGET_MB = 2.2, 600.0

NAMES = {
    "step": "version 2, one round, gradient step, m=50, d=10",
    "ridge": "version 2, one round, ridge, m=50, d=10",
    "spectral": "version 3, all rounds, m=20, d=3",
    "spectral-50": "version 3, all rounds, m=50, d=10",
}

Answer = dict[str, Any]  # JSON


def training_of(case: str) -> AdTraining:
    """Return the way of training that a case measures."""
    if case.startswith("spectral"):
        return SpectralTraining(*((50, 10) if case.endswith("50") else (20, 3)), 1.0)
    return BitTraining(50, 10, 8.0, 20, clip=0.03, local=case, offsets=False)


def ratings_of(users: int, ads: int) -> Ratings:
    """Return ratings at random: what they say does not matter to the clock."""
    draw = SeededSource(1, "bench").generator()
    rated = np.empty((users, ads), dtype=np.bool_)
    rating = np.empty((users, ads), dtype=np.float32)
    for start in range(0, users, COHORT):
        some = slice(start, min(start + COHORT, users))
        draw.random(out=rating[some], dtype=np.float32)
        rated[some] = draw.random(rating[some].shape, dtype=np.float32) < 0.3
    return Ratings(rated, rating)


def cohorts_of(users: int) -> Iterator[tuple[int, slice]]:
    """Cut users into cohorts."""
    for number, start in enumerate(range(0, users, COHORT)):
        yield number, slice(start, min(start + COHORT, users))


def through_bus(training: AdTraining, ratings: Ratings, lots: NDArray[np.uint32]) -> None:
    """Train with everything that reports pass on their way."""
    learner, bus = TrainingCoordinator(AdTask(training)), MemoryBus()
    tastes = _tastes(learner, ratings)
    source = SeededSource(2, "bench")
    for number in _rounds(training):
        for cohort, rows in cohorts_of(len(ratings)):
            reports = _reports(
                training,
                learner,
                number,
                ratings,
                tastes,
                lots,
                rows,
                source.child(number, cohort),
            )
            randomness = source.child("frame", number, cohort)
            for frame in split_frames(training.kind(number), number, reports, randomness):
                bus.publish("training", frame)
            drain(bus, "training", learner.apply)
        learner.close(number)


def arithmetic(training: AdTraining, ratings: Ratings, lots: NDArray[np.uint32]) -> None:
    """Do the devices' work and add up, with no frame and no bus."""
    learner = TrainingCoordinator(AdTask(training))
    tastes = _tastes(learner, ratings)
    source = SeededSource(2, "bench")
    for number in _rounds(training):
        for cohort, rows in cohorts_of(len(ratings)):
            _reports(
                training,
                learner,
                number,
                ratings,
                tastes,
                lots,
                rows,
                source.child(number, cohort),
            )


def _tastes(learner: TrainingCoordinator, ratings: Ratings) -> NDArray[np.float32]:
    _, sent = read_broadcast(learner.content)
    return np.zeros((len(ratings), sent.model.dimension), dtype=np.float32)


def _rounds(training: AdTraining) -> range:
    return range(3 if isinstance(training, SpectralTraining) else 1)


def _reports(
    training: AdTraining,
    learner: TrainingCoordinator,
    number: int,
    ratings: Ratings,
    tastes: NDArray[np.float32],
    lots: NDArray[np.uint32],
    rows: slice,
    source: SeededSource,
) -> Any:
    """Return what one cohort's devices send."""
    _, sent = read_broadcast(learner.content)
    some, near = ratings[rows], tastes[rows]
    chosen = training.reporters(number, lots[rows])
    if not chosen.all():
        places = np.flatnonzero(chosen)
        some, near = some[places], near[places]
    return training.report(number, sent, near, some, source).reports


def run_case(case: str, users: int, *, with_bus: bool) -> Answer:
    """Measure one case in this process."""
    training = training_of(case)
    ads = training.start().model.ads
    ratings = ratings_of(users, ads)
    lots = SeededSource(3, "lots").generator().integers(0, 1 << 32, users, dtype=np.uint32)
    work = through_bus if with_bus else arithmetic
    with new_run():
        work(training, ratings[: 1 << 12], lots[: 1 << 12])  # warm up
    taken = []
    for _ in range(TIMES):
        start = time.process_time()
        with new_run():
            work(training, ratings, lots)
        taken.append(time.process_time() - start)
    peak_mb = peak_bytes() / 1e6
    return {"cpu_s": min(taken), "all_cpu_s": sum(taken), "peak_mb": peak_mb, "users": users}


def _fresh(case: str, users: int, *, with_bus: bool = True) -> Answer:
    """Measure a case in a fresh process."""
    done = subprocess.run(  # noqa: S603  our own command
        [sys.executable, __file__, "--case", case, "--users", str(users)]
        + ([] if with_bus else ["--arithmetic"]),
        cwd=ROOT,
        env=os.environ | ONE_THREAD,
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    answer: Answer = json.loads(done.stdout)
    return answer


def _least(answers: list[Answer], key: str) -> float:
    return min(float(answer[key]) for answer in answers)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    name: str
    rate: float
    bare_rate: float
    target: float | None
    growth: float | None
    peak_mb: float

    @property
    def verdict(self) -> str:
        """Say whether all targets of the line are met."""
        if self.target is None:
            return ""
        good = self.rate >= self.target
        if self.growth is not None:
            good &= self.growth <= GROWTH_TARGET and self.peak_mb <= MEMORY_TARGET_MB
        return "met" if good else "missed"


def measure(*, quick: bool = False) -> list[Row]:
    """Measure every case."""
    users = QUICK_USERS if quick else USERS
    repeats = QUICK_REPEATS if quick else REPEATS
    rows = []
    for case, name in NAMES.items():
        print(f"measuring {name}", file=sys.stderr)
        ones, twos, bare = [], [], []
        for _ in range(repeats):  # in turns: the machine's pace changes
            ones.append(_fresh(case, users))
            bare.append(_fresh(case, users, with_bus=False))
            if case in ("step", "ridge"):
                twos.append(_fresh(case, 2 * users))
        ratios = [
            two["all_cpu_s"] / one["all_cpu_s"] for one, two in zip(ones, twos, strict=False)
        ]
        rows.append(
            Row(
                name,
                users / _least(ones, "cpu_s"),
                users / _least(bare, "cpu_s"),
                RATE_TARGETS.get(case),
                median(ratios) if ratios else None,
                _least(ones, "peak_mb"),
            )
        )
    return rows


def printed(rows: list[Row]) -> str:
    """Return the table."""
    header = (
        "training",
        "users/CPU-s",
        "target",
        "without frames",
        "2n over n",
        "peak MB",
        "verdict",
    )
    lines = [
        (
            row.name,
            f"{row.rate:,.0f}",
            "" if row.target is None else f">= {row.target:,.0f}",
            f"{row.bare_rate:,.0f}",
            "" if row.growth is None else figure(row.growth),
            f"{row.peak_mb:.0f}",
            row.verdict,
        )
        for row in rows
    ]
    return aligned(header, lines)


def main() -> None:
    """Measure one case for the parent process, or all of them for a person."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", choices=list(NAMES))
    parser.add_argument("--users", type=int, default=USERS)
    parser.add_argument("--arithmetic", action="store_true")
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    if arguments.case:
        print(
            json.dumps(
                run_case(arguments.case, arguments.users, with_bus=not arguments.arithmetic)
            )
        )
        return
    print(printed(measure(quick=arguments.quick)))


if __name__ == "__main__":
    main()
