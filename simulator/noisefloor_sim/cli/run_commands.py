"""What ``run``, ``report`` and ``explain`` do, behind the command line."""

import json
from collections.abc import Sequence
from pathlib import Path

from noisefloor.errors import BadParameter, BadRunDirectory
from noisefloor.randomness import new_run
from noisefloor_sim.cli.progress import counting_bar
from noisefloor_sim.deploy.hosting import MEMORY, open_bus
from noisefloor_sim.pipelines import BLOCKS, PIPELINES
from noisefloor_sim.report import write
from noisefloor_sim.runs import (
    Run,
    RunDirectory,
    check_gates,
    explain_spending,
    page_of,
    run_scenario,
)
from noisefloor_sim.scenario import (
    SweepPoint,
    expand,
    load_points,
    loads,
    scenario_hash,
    scenario_text,
)

MOST_LISTED = 8
"""Ids of points that an error lists."""


def run(
    path: Path,
    *,
    settings: list[str],
    seed: int | None,
    out: Path | None,
    jobs: int,
    force: bool,
    resume: bool,
    bus: str = MEMORY,
) -> int:
    """Run a scenario file into a run directory, and return the exit code that its gates decide."""
    if seed is not None:
        settings = [*settings, f"seed={seed}"]
    # A bad sweep is refused before anything is written.
    loaded = load_points(path, BLOCKS, settings)
    scenario, points = loaded.scenario, loaded.points
    for block in [one for point in points for one in point.scenario.pipelines.values()]:
        block.check_extras()
    folder = out or Path("runs") / f"{scenario.name}-{scenario_hash(scenario)[:8]}"
    directory = RunDirectory(folder)
    with open_bus(bus) as opened:  # before anything is written: it may not be there
        directory.create(scenario_text(scenario), force=force, resume=resume)
        with counting_bar() as bar:
            task = bar.add_task(scenario.name, total=len(points))
            with directory.kept_if_begun():
                found = run_scenario(
                    scenario,
                    directory,
                    jobs=jobs,
                    bus=opened,
                    done=lambda done, _: bar.update(task, completed=done),
                    skipped=loaded.skipped,
                )
    _finish(directory, found)
    _tell(directory, found)
    return 0 if found.passed else 1


def report(path: Path) -> int:
    """Write the report of a run directory again, from what it holds."""
    directory = RunDirectory(path)
    found = read_run(directory)
    write(page_of(found), path / "report.html")
    _tell(directory, found)
    return 0


def explain(path: Path, user: int, point_id: str | None = None) -> int:
    """Say what spent a user's budget, at a point of the run: the first if none is named."""
    found = read_run(RunDirectory(path))
    point = found.points[0] if point_id is None else _point(found.points, point_id)
    scenario = point.scenario
    if not 0 <= user < scenario.population.users:
        raise BadParameter("user", user, f"in [0, {scenario.population.users - 1}]")
    print(f"user {user} at {point.id}")
    with new_run():
        for line in explain_spending(scenario, PIPELINES, user):
            print(f"  {line}")
    return 0


def _point(points: Sequence[SweepPoint], given: str) -> SweepPoint:
    """Return the one point whose id is given, or begins so."""
    meant = [point for point in points if given and point.id.startswith(given)]
    if len(meant) != 1:
        ids = [point.id for point in meant or points]
        more = f" and {len(ids) - MOST_LISTED} more" if len(ids) > MOST_LISTED else ""
        rule = f"to be the id of one point, or how it begins: {', '.join(ids[:MOST_LISTED])}{more}"
        raise BadParameter("point", given, rule)
    return meant[0]


def read_run(directory: RunDirectory) -> Run:
    """Read a finished run back."""
    scenario = loads(
        directory.read("scenario.yaml"), BLOCKS, str(directory.path / "scenario.yaml")
    )
    points = expand(scenario, BLOCKS)
    results = {}
    for point in points:
        result = directory.read_point(point.id)
        if result is None:
            raise BadRunDirectory(
                f"{directory.path}: points/{point.id}.json is missing; the run is not finished. "
                "Go on with it by run --resume."
            )
        results[point.id] = result
    try:
        card = json.loads(directory.read("manifest.json"))
    except ValueError:
        raise BadRunDirectory(f"{directory.path}: manifest.json is damaged.") from None
    skipped = [gate["gate"] for gate in card["gates"] if gate.get("skipped")]
    gates = tuple(check_gates(scenario.gates, points, results, skipped))
    return Run(scenario, points, results, gates, card)


def _finish(directory: RunDirectory, found: Run) -> None:
    directory.write("manifest.json", json.dumps(found.card, indent=1, allow_nan=False) + "\n")
    write(page_of(found), directory.path / "report.html")


def _tell(directory: RunDirectory, found: Run) -> None:
    """Say what came out and where it lies."""
    print(page_of(found).verdict_sentence)
    for gate in found.gates:
        state = "skipped" if gate.skipped else "passed" if gate.passed else "FAILED"
        print(f"gate {state}: {gate.gate} ({gate.detail})")
    print(f"report: {directory.path / 'report.html'}")
