"""What the inspection of a run costs, how strong its bounds are, and how often it is wrong.

    python bench/inspection.py cost      CPU time of runs with inspection, over that without
    python bench/inspection.py bounds    bounds from the wire over the mechanism's own audit
    python bench/inspection.py honest    200 honest runs of small scenarios, and faults found

Each prints one table. ``cost`` takes turns in one process, since a busy machine slows both alike.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from noisefloor.ads.clicks import ClickReport
from noisefloor.adversary.audit import WITNESS_ALPHA, bound_from_reports
from noisefloor.privacy import Neighbours
from noisefloor.randomness import SeededSource, new_run
from noisefloor_sim.pipelines import BLOCKS, PIPELINES
from noisefloor_sim.pipelines.clicks.pipeline import ClickPipeline
from noisefloor_sim.runs.engine import Engine
from noisefloor_sim.runs.gating import faults_of
from noisefloor_sim.runs.results import PointResult
from noisefloor_sim.scenario import Scenario, find_scenario, load_points

TURNS, SEEDS, RUNS = 7, 20, 200
COSTS = (
    ("quickstart", ()),
    ("ads-epsilon", ()),
    ("ads-training", ()),
    ("ads-paper-vs-corrected", ()),
    ("collection-epsilon", ()),
    ("collection-queries", ()),
)
HONEST = (
    ("quickstart", ("population.users=1500", "days=4")),
    ("clicks-longitudinal", ("population.users=800", "days=6")),
    ("ads-epsilon", ("population.users=1500", "days=3")),
    ("ads-training", ("population.users=1500", "days=2")),
    ("ads-paper-vs-corrected", ("population.users=1500",)),
    ("ads-longitudinal", ("population.users=600", "days=6")),
    ("ads-fraud", ("population.users=1500",)),
    ("ads-auction", ("population.users=1500",)),
    ("collection-epsilon", ("population.users=2000",)),
    ("collection-paper", ("population.users=2000",)),
    ("collection-queries", ("population.users=2000",)),
    ("models-weekly", ("population.users=600", "pipelines.models.shadows=16")),
)


def points_of(name: str, settings: tuple[str, ...], seed: int | None = None) -> list[Scenario]:
    """Return the points of a shipped scenario."""
    chosen = [*settings, *([] if seed is None else [f"seed={seed}"])]
    loaded = load_points(find_scenario(Path(name)), BLOCKS, chosen)
    return [point.scenario for point in loaded.points]


def run(scenario: Scenario) -> PointResult:
    """Run a point in this process."""
    with new_run():
        outcome = Engine(scenario, PIPELINES).run()
    seed, variant = scenario.seed, scenario.variant
    return PointResult("point", "", seed, variant, outcome.all_findings, 0.0, 0.0)


def seconds(work: Callable[[], object]) -> float:
    """Return the CPU time of some work."""
    start = time.process_time()
    work()
    return time.process_time() - start


def _expect_nothing(frame: object) -> None:
    """Note nothing of a frame."""


def _read_nothing(data: bytes, outcome: object) -> None:
    """Read nothing of a frame."""


def without(scenario: Scenario) -> None:
    """Run a point without tap, fit and witnesses."""
    witnesses = scenario.witnesses.model_copy(update={"share": 0.0})
    plain = scenario.model_copy(update={"witnesses": witnesses})
    with new_run():
        engine = Engine(plain, PIPELINES)
        setattr(engine.tap, "expect", _expect_nothing)  # noqa: B010 - a method, replaced
        setattr(engine.tap, "read", _read_nothing)  # noqa: B010 - likewise
        engine.run()


def cost() -> None:
    """Print the CPU time of runs with inspection over that without."""
    print(f"{'scenario':26s} {'with, s':>9s} {'without, s':>10s} {'ratio':>7s}")
    for name, settings in COSTS:
        point = points_of(name, settings)[-1]
        turns = [
            (seconds(lambda: run(point)), seconds(lambda: without(point)))  # noqa: B023
            for _ in range(TURNS)
        ]
        ours, plain = (min(turn[side] for turn in turns) for side in (0, 1))
        ratio = statistics.median(turn[0] / turn[1] for turn in turns)
        print(f"{name:26s} {ours:9.3f} {plain:10.3f} {ratio:7.3f}", flush=True)


def bounds() -> None:
    """Print bounds from the wire beside the mechanism's own audit with as many reports."""
    print(f"{'epsilon':>8s} {'n':>6s} {'wire':>7s} {'own audit':>10s} {'ratio':>7s}")
    for epsilon in (1.0, 2.0, 4.0, 8.0):
        wire, own, counts = [], [], []
        for seed in range(SEEDS):
            keys = ("variant=corrected", f"pipelines.clicks.epsilon={epsilon}", "sweep.seeds=1")
            (point,) = points_of("quickstart", (*keys, "attacks=[clicks.audit]"), seed)
            with new_run():
                engine = Engine(point, PIPELINES)
                (named,) = engine.run().findings["clicks"].claims
                pipeline = engine.pipelines["clicks"]
                assert isinstance(pipeline, ClickPipeline)  # noqa: S101  narrows a type
                assert named.claim.audited is not None  # noqa: S101  narrows a type
                counts.append(sum(len(some[0]) for some in pipeline.flow.inspected.witnesses))
                wire.append(named.claim.audited.epsilon)
                own.append(_own_audit(pipeline.mechanism, counts[-1] // 2, seed))
        means = [statistics.mean(some) for some in (wire, own)]
        ratio = means[0] / means[1] if means[1] else float("inf")
        n = statistics.mean(counts)
        print(f"{epsilon:8g} {n:6.0f} {means[0]:7.3f} {means[1]:10.3f} {ratio:7.3f}", flush=True)


def _own_audit(report: object, trials: int, seed: int) -> float:
    """Audit the mechanism by reports drawn for it, on its worst two inputs."""
    assert isinstance(report, ClickReport)  # noqa: S101  narrows a type
    pair = report.worst_pairs(Neighbours.USER)[0]
    source = SeededSource(seed, "own audit")
    reports = [
        report.randomise(np.repeat(value[None], trials, axis=0), source.child(place))
        for place, value in enumerate(pair)
    ]
    return bound_from_reports(report, reports, pair, alpha=WITNESS_ALPHA).epsilon


def honest(runs: int) -> int:
    """Print how many honest runs are found at fault, and return that number."""
    faults = 0
    found: dict[str, list[int]] = {}
    for name, point in _points(runs):
        wrong = faults_of(run(point))
        counts = found.setdefault(name, [0, 0])
        counts[0] += 1
        counts[1] += bool(wrong)
        faults += bool(wrong)
        for one in wrong:
            print(f"{one.verdict} {one.what} in {name}, seed {point.seed}: {one.cause}")
    print(f"{'scenario':26s} {'runs':>5s} {'at fault':>9s}")
    for name, counts in found.items():
        print(f"{name:26s} {counts[0]:5d} {counts[1]:9d}")
    print(f"{'all':26s} {sum(one[0] for one in found.values()):5d} {faults:9d}")
    return faults


def _points(runs: int) -> Iterator[tuple[str, Scenario]]:
    """Yield points of small scenarios, one scenario after the other, with a seed of their own."""
    for number in range(runs):
        name, settings = HONEST[number % len(HONEST)]
        points = points_of(name, settings, 10_000 + number)
        yield name, points[number // len(HONEST) % len(points)]


def main() -> int:
    """Print the table that the command names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", choices=("cost", "bounds", "honest"))
    parser.add_argument("--runs", type=int, default=RUNS, help="honest runs")
    chosen = parser.parse_args()
    if chosen.table == "honest":
        return 1 if honest(chosen.runs) else 0
    (cost if chosen.table == "cost" else bounds)()
    return 0


if __name__ == "__main__":
    sys.exit(main())
