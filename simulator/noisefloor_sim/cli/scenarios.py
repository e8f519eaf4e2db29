"""What ``noisefloor validate`` and ``noisefloor schema`` print; the command line only calls."""

import os
from collections.abc import Iterable

from noisefloor_sim.scenario import (
    Blocks,
    count,
    expand,
    find_scenario,
    load,
    scenario_hash,
    show_name,
)


def validate(path: str | os.PathLike[str], blocks: Blocks, settings: Iterable[str] = ()) -> str:
    """Check a scenario file and say in one line what it would run.

    Args:
        path: Of the file, or the name of a shipped scenario.
        blocks: From a pipeline's name to the model of its block.
        settings: Values from the command line, ``key=value``, as ``run`` takes them.

    Raises:
        BadScenario: It breaks rules; each is named with file, line and key.
    """
    scenario = load(find_scenario(path), blocks, settings)
    parts = (
        count(len(expand(scenario, blocks)), "point"),
        count(scenario.population.users, "user"),
        count(scenario.days, "day"),
        ", ".join(sorted(scenario.pipelines)),
        f"hash {scenario_hash(scenario)[:12]}",
    )
    return f"{show_name(os.fspath(path))}: valid ({'; '.join(parts)})."
