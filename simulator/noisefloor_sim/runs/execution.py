"""From a scenario file to a run folder, and from the folder back to the run."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from noisefloor.errors import BadRunDirectory
from noisefloor_sim.deploy.hosting import MEMORY, open_bus
from noisefloor_sim.pipelines import BLOCKS, experiment_settings
from noisefloor_sim.report import write
from noisefloor_sim.runs.answers import check_findings
from noisefloor_sim.runs.gating import NO_POINT, check_gates
from noisefloor_sim.runs.pages import page_of
from noisefloor_sim.runs.results import RunDirectory
from noisefloor_sim.runs.runner import Done, Run, run_scenario
from noisefloor_sim.scenario import (
    PipelineBlock,
    SweepPoint,
    expand,
    find_scenario,
    load_points,
    loads,
    scenario_hash,
    scenario_text,
)


def execute(
    path: Path,
    *,
    settings: Sequence[str],
    seed: int | None,
    out: Path | None,
    jobs: int,
    force: bool,
    resume: bool,
    bus: str = MEMORY,
    done: Done | None = None,
) -> tuple[RunDirectory, Run]:
    """Run a scenario into a run directory, and return both.

    Args:
        path: Of the scenario, or the name of a shipped one.
        settings: Values that win over the file, ``key=value``.
        seed: Instead of the scenario's.
        out: The run directory; ``runs/NAME-HASH`` if left out.
        jobs: Worker processes.
        force: Replace the run that is there.
        resume: Go on with the run that is there.
        bus: ``memory``, or what ``open_bus`` takes.
        done: Called with the number of finished points and of all.
    """
    if seed is not None:
        settings = [*settings, f"seed={seed}"]
    # A bad sweep is refused before anything is written.
    loaded = load_points(find_scenario(path), BLOCKS, settings)
    scenario = loaded.scenario
    for point in loaded.points:
        for name, block in point.scenario.pipelines.items():
            block.check_extras(name)
    directory = RunDirectory(
        out or Path("runs") / f"{scenario.name}-{scenario_hash(scenario)[:8]}"
    )
    # Before anything is written: the bus may not be there.
    with open_bus(bus, experiment_settings) as opened:
        for point in loaded.points:
            if any(block.is_experiment(point.scenario.variant) for block in _blocks(point)):
                opened.check_experiments(point.id)
                break
        directory.create(scenario_text(scenario), force=force, resume=resume)
        with directory.kept_if_begun():
            skipped = dict.fromkeys(loaded.skipped, NO_POINT)
            found = run_scenario(
                scenario, directory, jobs=jobs, bus=opened, done=done, skipped=skipped
            )
    directory.write("manifest.json", json.dumps(found.card, indent=1, allow_nan=False) + "\n")
    write(page_of(found), directory.path / "report.html")
    return directory, found


def _blocks(point: SweepPoint) -> Iterable[PipelineBlock]:
    """Return the settings of a point's pipelines."""
    return point.scenario.pipelines.values()


def read_run(directory: RunDirectory) -> Run:
    """Read a finished run back."""
    directory.check_format()
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
    skipped = {gate["gate"]: gate["detail"] for gate in card["gates"] if gate.get("skipped")}
    gates = tuple(check_gates(scenario.gates, points, results, skipped))
    findings = tuple(check_findings(scenario.findings, points, results))
    return Run(scenario, points, results, gates, findings, card)
