"""Running a scenario: its points over a pool of processes, into a run directory.

Points are independent: each is one world with named random numbers, so results do not depend on
the number of workers. Workers are spawned, never forked, and get a point as text. Finished points
are kept at once: after an interruption ``--resume`` goes on where it stopped.
"""

import platform
import resource
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

from noisefloor.checks import check_count
from noisefloor.randomness import new_run
from noisefloor_sim.deploy import ServiceAddresses
from noisefloor_sim.deploy.hosting import MEMORY, BusConnection, RemoteHost
from noisefloor_sim.pipelines import BLOCKS, PIPELINES
from noisefloor_sim.runs.answers import FindingResult, check_findings
from noisefloor_sim.runs.engine import Engine, Progress
from noisefloor_sim.runs.gating import (
    NONE_SKIPPED,
    GateResult,
    RunFault,
    check_gates,
    faults_of,
    unseen_metrics,
)
from noisefloor_sim.runs.pool import run_in_pool
from noisefloor_sim.runs.results import PointResult, RunDirectory
from noisefloor_sim.runs.tables import write_tables
from noisefloor_sim.scenario import (
    RUN_FORMAT,
    Scenario,
    SweepPoint,
    expand,
    loads,
    scenario_hash,
    scenario_text,
)

Job = tuple[str, str, str, ServiceAddresses | None]
"""The input of a worker: point, settings, scenario as text, and where the roles run."""

Done = Callable[[float, int], None]
"""Called with the number of finished points, parts of one included, and of all."""


@dataclass(frozen=True, slots=True)
class Run:
    """A finished run: its points, their results, the gates and the findings."""

    scenario: Scenario
    points: tuple[SweepPoint, ...]
    results: dict[str, PointResult]
    gates: tuple[GateResult, ...]
    findings: tuple[FindingResult, ...]
    card: dict[str, object]

    @property
    def passed(self) -> bool:
        """Whether every gate held that was checked, and nothing was found at fault."""
        return all(gate.passed or gate.skipped for gate in self.gates) and not self.faults

    @property
    def faults(self) -> tuple[RunFault, ...]:
        """What is broken, misfit or unaccounted, at any point: it fails a run without a gate."""
        return tuple(fault for result in self.in_order() for fault in faults_of(result))

    def in_order(self) -> list[PointResult]:
        """Return the results in the order of the points."""
        return [self.results[point.id] for point in self.points]


def simulate(
    point_id: str,
    settings: str,
    text: str,
    services: ServiceAddresses | None = None,
    progress: Progress | None = None,
) -> PointResult:
    """Run one point in this process; a worker's whole job.

    Args:
        point_id: Of the point.
        settings: Its swept keys, as text.
        text: Its scenario.
        services: Where the server's roles run, if not here.
        progress: Called with the number of cohorts that have woken.
    """
    start = time.process_time()
    scenario = loads(text, BLOCKS)
    hosting = None if services is None else RemoteHost(services)
    with new_run():
        outcome = Engine(scenario, PIPELINES, hosting=hosting).run(progress)
    return PointResult(
        point_id,
        settings,
        scenario.seed,
        scenario.variant,
        outcome.all_findings,
        time.process_time() - start,
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )


def run_scenario(
    scenario: Scenario,
    directory: RunDirectory,
    *,
    jobs: int,
    bus: BusConnection | None = None,
    done: Done | None = None,
    skipped: Mapping[str, str] = NONE_SKIPPED,
) -> Run:
    """Run all points that the directory does not hold yet, then write the tables.

    Args:
        scenario: With its sweep.
        directory: That results are written to.
        jobs: Worker processes.
        bus: Where the server's roles run; in this process if left out.
        done: Called with the progress.
        skipped: Gates that are not checked, and why.
    """
    start = time.monotonic()
    points = expand(scenario, BLOCKS)
    results: dict[str, PointResult] = {}
    for point in points:
        kept = directory.read_point(point.id)
        if kept is not None:
            results[point.id] = kept
    missing = [point for point in points if point.id not in results]

    def part(woken: int, of: int) -> None:
        if done:
            done(len(results) + woken / of, len(points))

    check_count(jobs, "jobs", most=1024)
    services = None if bus is None else bus.services
    for result in _results([_job(point, services) for point in missing], jobs, part):
        directory.write_point(result)
        results[result.id] = result
        if done:
            done(len(results), len(points))
    named = {"bus": MEMORY} if bus is None else bus.card
    unseen = unseen_metrics(scenario.pipelines, named["bus"])
    gates = tuple(check_gates(scenario.gates, points, results, skipped, unseen))
    findings = tuple(check_findings(scenario.findings, points, results))
    card = _card(scenario, points, results, gates) | {"wall_s": time.monotonic() - start}
    card |= {"findings": [asdict(one) for one in findings], **named}
    run = Run(scenario, points, results, gates, findings, card)
    write_tables(directory, run.in_order(), points)
    return run


def _job(point: SweepPoint, services: ServiceAddresses | None) -> Job:
    settings = ", ".join(f"{key}={value}" for key, value in point.settings)
    return point.id, settings, scenario_text(point.scenario), services


def _results(points: Sequence[Job], jobs: int, part: Progress) -> Iterator[PointResult]:
    """Yield results as they come: here for one job, from a pool for more."""
    if jobs == 1 or len(points) < 2:
        for point in points:
            yield simulate(*point, part)
        return
    yield from (result for _, result in run_in_pool(simulate, points, jobs))


def _card(
    scenario: Scenario,
    points: Sequence[SweepPoint],
    results: dict[str, PointResult],
    gates: Sequence[GateResult],
) -> dict[str, object]:
    """Return the run card: what was run, with what, and what it took."""
    return {
        "format": RUN_FORMAT,
        "name": scenario.name,
        "scenario_hash": scenario_hash(scenario),
        "seeds": sorted({point.scenario.seed for point in points}),
        "points": len(points),
        "noisefloor": version("noisefloor"),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in ("numpy", "scipy", "simpy", "pyarrow")},
        "commit": _commit(),
        "cpu_s": sum(result.cpu_s for result in results.values()),
        "peak_mb": max((result.peak_mb for result in results.values()), default=0.0),
        "gates": [asdict(gate) for gate in gates],
        "faults": [asdict(one) for result in results.values() for one in faults_of(result)],
    }


def _commit() -> str:
    """Return the commit of the source tree, if this is one."""
    try:
        done = subprocess.run(
            ["git", "rev-parse", "--short=12", "HEAD"],  # noqa: S607  any git will do
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return done.stdout.strip()
