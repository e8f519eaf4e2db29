"""What ``run``, ``report`` and ``explain`` do, behind the command line."""

import json
from collections.abc import Iterable
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
    PipelineBlock,
    SweepPoint,
    expand,
    load,
    loads,
    scenario_hash,
    scenario_text,
)


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
    scenario = load(path, BLOCKS, settings)
    text = scenario_text(scenario)
    points = expand(scenario, BLOCKS)  # a bad sweep is refused before anything is written
    for block in [one for point in points for one in _blocks(point)]:
        block.check_extras()
    folder = out or Path("runs") / f"{scenario.name}-{scenario_hash(scenario)[:8]}"
    directory = RunDirectory(folder)
    with open_bus(bus) as opened:  # before anything is written: it may not be there
        for point in points:
            if any(block.is_experiment(point.scenario.variant) for block in _blocks(point)):
                opened.check_experiments(point.id)
                break
        directory.create(text, force=force, resume=resume)
        with counting_bar() as bar:
            task = bar.add_task(scenario.name, total=len(points))
            with directory.kept_if_begun():
                found = run_scenario(
                    scenario,
                    directory,
                    jobs=jobs,
                    bus=opened,
                    done=lambda done, _: bar.update(task, completed=done),
                )
    _finish(directory, found)
    _tell(directory, found)
    return 0 if found.passed else 1


def _blocks(point: SweepPoint) -> Iterable[PipelineBlock]:
    """Return the settings of a point's pipelines."""
    return point.scenario.pipelines.values()


def report(path: Path) -> int:
    """Write the report of a run directory again, from what it holds."""
    directory = RunDirectory(path)
    found = read_run(directory)
    write(page_of(found), path / "report.html")
    _tell(directory, found)
    return 0


def explain(path: Path, user: int) -> int:
    """Say what spent a user's budget, at the first point of the run."""
    found = read_run(RunDirectory(path))
    scenario = found.points[0].scenario
    if not 0 <= user < scenario.population.users:
        raise BadParameter("user", user, f"in [0, {scenario.population.users - 1}]")
    print(f"user {user} at {found.points[0].id}")
    with new_run():
        for line in explain_spending(scenario, PIPELINES, user):
            print(f"  {line}")
    return 0


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
    gates = tuple(check_gates(scenario.gates, points, results))
    return Run(scenario, points, results, gates, card)


def _finish(directory: RunDirectory, found: Run) -> None:
    directory.write("manifest.json", json.dumps(found.card, indent=1, allow_nan=False) + "\n")
    write(page_of(found), directory.path / "report.html")


def _tell(directory: RunDirectory, found: Run) -> None:
    """Say what came out and where it lies."""
    print(page_of(found).verdict_sentence)
    for gate in found.gates:
        print(f"gate {'passed' if gate.passed else 'FAILED'}: {gate.gate} ({gate.detail})")
    print(f"report: {directory.path / 'report.html'}")
