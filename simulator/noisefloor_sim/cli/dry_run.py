"""What ``noisefloor run --dry-run`` prints: what would run, and what it would cost in epsilon."""

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from noisefloor.privacy import Guarantee, number_or_inf
from noisefloor_sim.cli import scenarios
from noisefloor_sim.pipelines import BLOCKS, PlannedClaim
from noisefloor_sim.runs import PlannedPoint, plan_point
from noisefloor_sim.scenario import find_scenario, load_points

_HEADINGS = ("point", "pipeline", "mechanism", "per", "claimed", "proved", "verdict", "debited")

Plans = Sequence[PlannedPoint]


def dry_run(path: Path, settings: Sequence[str], *, as_json: bool) -> int:
    """Print what a run would do; nothing is run, written, fetched or debited.

    Args:
        path: Of the scenario file.
        settings: Values from the command line, ``key=value``.
        as_json: Print one object instead of a table.

    Raises:
        BadScenario: As a run would.
        BadParameter: Settings do not go together; names the key.
    """
    loaded = load_points(find_scenario(path), BLOCKS, settings)
    loaded.check_files()
    plans = [plan_point(point) for point in loaded.points]
    if as_json:
        points = [_point_json(planned) for planned in plans]
        print(json.dumps({**scenarios.summary(loaded), "plan": points}, indent=2, allow_nan=False))
        return 0
    print(f"{scenarios.summary_line(loaded, loaded.scenario.name)} Nothing was run.")
    _print_table(plans)
    for line in (*_budget_lines(plans), *_frame_lines(plans), *_unknown_lines(plans)):
        print(line)
    for line in (
        *scenarios.needs_lines(loaded),
        *scenarios.skipped_lines(loaded),
        *scenarios.missing_lines(loaded),
    ):
        print(line)
    return 0


def _point_json(planned: PlannedPoint) -> dict[str, Any]:
    point = planned.point
    return {
        "point": point.id,
        "settings": point.values,
        "users": point.scenario.population.users,
        "days": point.scenario.days,
        "budget": planned.budget,
        "debited": planned.debited,
        "is_debit_known": planned.is_debit_known,
        "pipelines": {
            one.name: {
                "frames": list(one.frames),
                "claims": [_claim_json(claim, planned.budget) for claim in one.claims],
                "unknown": one.unknown,
            }
            for one in planned.pipelines
        },
    }


def _claim_json(planned: PlannedClaim, budget: float) -> dict[str, object]:
    claim = planned.claim
    return {
        "mechanism": planned.mechanism,
        "per": planned.per,
        "neighbours": claim.proved.neighbours.value,
        "claimed": number_or_inf(claim.claimed.epsilon),
        "claimed_delta": claim.claimed.delta,
        "proved": number_or_inf(claim.proved.epsilon),
        "proved_delta": claim.proved.delta,
        "verdict": claim.verdict,
        "debited": planned.debited,
        "budget": budget if planned.budget is None else planned.budget,
    }


def _print_table(plans: Plans) -> None:
    """Print a row for each claim; points that differ in the seed alone share their rows."""
    # Off a terminal nothing may be cut: a log has no width.
    console = Console(width=None if sys.stdout.isatty() else 200)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in _HEADINGS:
        table.add_column(heading, no_wrap=heading != "point")
    for row in dict.fromkeys(_rows(plans)):
        table.add_row(*map(Text, row))
    if table.row_count:
        console.print(table)


def _rows(plans: Plans) -> Iterator[tuple[str, ...]]:
    for planned in plans:
        for one in planned.pipelines:
            for claim in one.claims:
                yield (_settings(planned), one.name, *_cells(claim, planned.budget))


def _settings(planned: PlannedPoint) -> str:
    """Write the swept keys of a point by their last words; epsilons do not depend on the seed."""
    values = planned.point.values.items()
    shown = [f"{key.rpartition('.')[2]} {value}" for key, value in values if key != "seed"]
    return ", ".join(shown) or "all"


def _cells(planned: PlannedClaim, budget: float) -> tuple[str, ...]:
    claim, whole = planned.claim, budget if planned.budget is None else planned.budget
    debited = "" if planned.debited is None else f"{planned.debited:.6g} of {whole:.6g}"
    return (
        *(planned.mechanism, planned.per, _epsilon(claim.claimed), _epsilon(claim.proved)),
        *(claim.verdict, debited),
    )


def _epsilon(guarantee: Guarantee) -> str:
    delta = f" @{guarantee.delta:g}" if guarantee.delta else ""
    return f"{guarantee.epsilon:.6g}{delta}"


def _budget_lines(plans: Plans) -> list[str]:
    """Return a line for each point on what all its pipelines take from the budget of a user."""
    lines = []
    for planned in plans:
        if planned.debited:
            least = "" if planned.is_debit_known else "at least "
            short = planned.debited > planned.budget
            more = ", so that later releases are refused" if short else ""
            taken = f"{least}{planned.debited:.6g} of {planned.budget:.6g}{more}"
            lines.append(f"budget of a user at {_settings(planned)}: {taken}")
    return list(dict.fromkeys(lines))


def _frame_lines(plans: Plans) -> list[str]:
    """Return a line for each pipeline whose devices send frames, with their kinds."""
    kinds: dict[str, dict[str, None]] = {}
    for planned in plans:
        for one in planned.pipelines:
            kinds.setdefault(one.name, {}).update(dict.fromkeys(one.frames))
    return [f"frames of {name}: {', '.join(found)}" for name, found in kinds.items() if found]


def _unknown_lines(plans: Plans) -> list[str]:
    """Return a line for each pipeline whose claims need what is not here."""
    found = [one for planned in plans for one in planned.pipelines if one.unknown]
    return list(dict.fromkeys(f"claims of {one.name} are unknown: {one.unknown}" for one in found))
