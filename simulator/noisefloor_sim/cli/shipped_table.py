"""What ``noisefloor scenarios`` prints: every shipped scenario, its needs and its time."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from noisefloor_sim.pipelines import BLOCKS
from noisefloor_sim.scenario import (
    Needs,
    Scenario,
    expand,
    load,
    needs_of,
    shipped_scenarios,
    takes_s,
)

_MINUTE_S = 60


@dataclass(frozen=True, slots=True)
class ShippedScenario:
    """A shipped scenario, and whether it runs here.

    Attributes:
        file: Where it is.
        scenario: As it was read.
        points: How many points it has.
        takes_s: Processor time, in seconds.
        needs: Extras and data sets.
        missing: What it needs and does not find here, with the commands that bring it.
    """

    file: Path
    scenario: Scenario
    points: int
    takes_s: int
    needs: Needs
    missing: Mapping[str, str]

    def as_json(self) -> dict[str, object]:
        """Return everything as plain data."""
        return {
            "name": self.scenario.name,
            "question": self.scenario.question,
            "expectation": self.scenario.expectation,
            "pipelines": sorted(self.scenario.pipelines),
            "points": self.points,
            "takes_s": self.takes_s,
            "extras": list(self.needs.libraries),
            "data_sets": list(self.needs.data_sets),
            "missing": dict(self.missing),
            "runs_here": not self.missing,
            "file": str(self.file),
        }


def read_shipped() -> list[ShippedScenario]:
    """Read every shipped scenario, in the order of their names."""
    return [_read(path) for path in shipped_scenarios().values()]


def _read(path: Path) -> ShippedScenario:
    scenario = load(path, BLOCKS)
    points = expand(scenario, BLOCKS)
    needs = needs_of(points)
    return ShippedScenario(path, scenario, len(points), takes_s(path), needs, needs.missing)


def list_shipped(*, as_json: bool) -> int:
    """Print every shipped scenario, and return the exit code."""
    shipped = read_shipped()
    if as_json:
        print(json.dumps([one.as_json() for one in shipped], indent=2))
    else:
        _print_table(shipped)
    return 0


def _print_table(shipped: Sequence[ShippedScenario]) -> None:
    # Off a terminal nothing may be cut: a log has no width.
    console = Console(width=None if sys.stdout.isatty() else 132)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("scenario", "takes", "needs"):
        table.add_column(heading, no_wrap=True)
    table.add_column("question")
    for one in shipped:
        cells = one.scenario.name, _time(one.takes_s), _needs(one), one.scenario.question
        table.add_row(*map(Text, cells))
    console.print(table)
    console.print()
    for line in _reading(shipped):
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def _time(seconds: int) -> str:
    minutes, rest = divmod(seconds, _MINUTE_S)
    return f"{seconds} s" if rest or not minutes else f"{minutes} min"


def _needs(one: ShippedScenario) -> str:
    needed = (*one.needs.libraries, *one.needs.data_sets)
    return ", ".join(f"{name} (missing)" if name in one.missing else name for name in needed)


def _reading(shipped: Sequence[ShippedScenario]) -> list[str]:
    """Say how to read the table, and what to do next."""
    remedies = dict.fromkeys(line for one in shipped for line in one.missing.values())
    return [
        *(f"missing: {line}" for line in remedies),
        "takes: processor time on one core; points run on all cores unless --jobs says otherwise.",
        "run one: noisefloor run NAME     change one: noisefloor new MINE --from NAME",
    ]
