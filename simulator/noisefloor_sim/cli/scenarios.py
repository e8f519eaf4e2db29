"""What ``noisefloor validate`` prints: whether a scenario is valid, and what it would run."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

from noisefloor.errors import BadScenario
from noisefloor_sim.pipelines import BLOCKS
from noisefloor_sim.scenario import (
    Blocks,
    LoadedScenario,
    count,
    find_scenario,
    load_points,
    needs_of,
    scenario_hash,
    show_name,
)

VALID, INVALID = 0, 2
SUMMARY = ("points", "users", "days", "pipelines", "hash", "needs", "skipped_gates")


def validate(
    path: Path, settings: Sequence[str] = (), *, as_json: bool = False, blocks: Blocks = BLOCKS
) -> int:
    """Check a scenario file and the files it names, and say what it would run.

    Args:
        path: Of the file, or the name of a shipped scenario.
        settings: Values from the command line, ``key=value``, as ``run`` takes them.
        as_json: Print one object instead of lines; what is wrong is listed in it.
        blocks: From a pipeline's name to the model of its block.

    Raises:
        BadScenario: It breaks rules; each is named with file, line and key. Not with JSON.
    """
    try:
        loaded = load_points(find_scenario(path), blocks, settings)
        loaded.check_files()
    except BadScenario as error:
        if not as_json:
            raise
        _print_json({"valid": False, "errors": _faults(error), **dict.fromkeys(SUMMARY)})
        return INVALID
    if as_json:
        _print_json({"valid": True, "errors": [], **summary(loaded)})
    else:
        print(summary_line(loaded, f"{show_name(os.fspath(path))}: valid"))
        for line in (*skipped_lines(loaded), *missing_lines(loaded)):
            print(line)
    return VALID


def summary(loaded: LoadedScenario) -> dict[str, object]:
    """Return what a scenario would run, and what it needs, as JSON."""
    scenario, needs = loaded.scenario, needs_of(loaded.points)
    needed = {
        "extras": list(needs.libraries),
        "data_sets": list(needs.data_sets),
        "missing": needs.missing,
    }
    values = (
        *(len(loaded.points), scenario.population.users, scenario.days),
        *(sorted(scenario.pipelines), scenario_hash(scenario), needed, list(loaded.skipped)),
    )
    return dict(zip(SUMMARY, values, strict=True))


def skipped_lines(loaded: LoadedScenario) -> list[str]:
    """Return a line for each gate that a run would not check."""
    return [f"gate skipped: {gate} (no point matches)" for gate in loaded.skipped]


def needs_lines(loaded: LoadedScenario) -> list[str]:
    """Return a line for the extras, and one for the data sets, that a scenario needs."""
    needs = needs_of(loaded.points)
    named = {"extras": tuple(needs.libraries), "data sets": needs.data_sets}
    return [f"{kind} needed: {', '.join(names)}" for kind, names in named.items() if names]


def missing_lines(loaded: LoadedScenario) -> list[str]:
    """Return a line for each extra and data set that is not here, with the command for it."""
    missing = needs_of(loaded.points).missing
    return [f"needs {name}, which is not here: {command}" for name, command in missing.items()]


def summary_line(loaded: LoadedScenario, subject: str) -> str:
    """Return one line on what a scenario would run, after the words that it is about."""
    scenario = loaded.scenario
    parts = (
        count(len(loaded.points), "point"),
        count(scenario.population.users, "user"),
        count(scenario.days, "day"),
        ", ".join(sorted(scenario.pipelines)),
        f"hash {scenario_hash(scenario)[:12]}",
    )
    return f"{subject} ({'; '.join(parts)})."


def _faults(error: BadScenario) -> list[dict[str, object]]:
    return [{"file": error.file, **fault._asdict()} for fault in error.faults]


def _print_json(document: dict[str, object]) -> None:
    print(json.dumps(document, indent=2))
