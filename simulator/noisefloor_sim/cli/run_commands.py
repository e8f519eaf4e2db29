"""What ``run``, ``report`` and ``explain`` do, behind the command line."""

from collections.abc import Sequence
from pathlib import Path

from noisefloor.errors import BadParameter
from noisefloor.randomness import new_run
from noisefloor_sim import runs
from noisefloor_sim.cli.progress import counting_bar
from noisefloor_sim.deploy.hosting import MEMORY
from noisefloor_sim.pipelines import PIPELINES
from noisefloor_sim.report import write
from noisefloor_sim.scenario import SweepPoint

MOST_LISTED = 8
"""Ids of points that an error lists, and faults of a run."""


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
    """Run a scenario into a run directory, and return the exit code that its gates decide."""
    with counting_bar() as bar:
        task = bar.add_task(path.stem, total=1.0)
        directory, found = runs.execute(
            path,
            settings=settings,
            seed=seed,
            out=out,
            jobs=jobs,
            force=force,
            resume=resume,
            bus=bus,
            done=lambda done, points: bar.update(task, completed=done, total=points),
        )
    _tell(directory, found)
    return 0 if found.passed else 1


def report(path: Path) -> int:
    """Write the report of a run directory again, from what it holds."""
    directory = runs.RunDirectory(path)
    found = runs.read_run(directory)
    write(runs.page_of(found), path / "report.html")
    _tell(directory, found)
    return 0


def explain(path: Path, user: int, point_id: str | None = None) -> int:
    """Say what spent a user's budget, at a point of the run: the first if none is named."""
    found = runs.read_run(runs.RunDirectory(path))
    point = found.points[0] if point_id is None else _point(found.points, point_id)
    scenario = point.scenario
    if not 0 <= user < scenario.population.users:
        raise BadParameter("user", user, f"in [0, {scenario.population.users - 1}]")
    print(f"user {user} at {point.id}")
    with new_run():
        for line in runs.explain_spending(scenario, PIPELINES, user):
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


def _tell(directory: runs.RunDirectory, found: runs.Run) -> None:
    """Say what came out and where it lies."""
    print(found.scenario.question)
    for finding in found.findings:
        mark = "\N{CHECK MARK}" if finding.is_true else "\N{BALLOT X}"
        print(f"{mark} {finding.text}" + ("" if finding.is_true else f" ({finding.detail})"))
    print(runs.page_of(found).verdict_sentence)
    for fault in found.faults[:MOST_LISTED]:
        print(f"{fault.verdict.upper()} {fault.what} at {fault.point}: {fault.cause}")
    if len(found.faults) > MOST_LISTED:
        print(f"and {len(found.faults) - MOST_LISTED} more, in manifest.json")
    for gate in found.gates:
        state = "skipped" if gate.skipped else "passed" if gate.passed else "FAILED"
        print(f"gate {state}: {gate.gate} ({gate.detail})")
    print(f"report: {directory.path / 'report.html'}")
