"""What ``noisefloor audit`` shows: a progress bar, the table and its reading, or JSON."""

import json
import math
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from noisefloor.adversary.audit import (
    AuditCase,
    AuditRow,
    all_audit_cases,
    any_broken,
    audit,
    select_cases,
)
from noisefloor.privacy import ClaimVerdict, Guarantee, LowerBound

_STYLES = {
    ClaimVerdict.HOLDS: "green",
    ClaimVerdict.OVERCLAIMED: "cyan",
    ClaimVerdict.BROKEN: "bold red",
    ClaimVerdict.BLIND: "yellow",
}


def run_audit(names: Sequence[str], *, trials: int, seed: int, as_json: bool) -> int:
    """Audit the named mechanisms, print what was found, and return the exit code."""
    rows = _audited(select_cases(names), trials=trials, seed=seed)
    if as_json:
        print(json.dumps([row.as_json() for row in rows], indent=2, allow_nan=False))
    else:
        _print_table(rows)
    return 1 if any_broken(rows) else 0


def _audited(cases: Sequence[AuditCase], *, trials: int, seed: int) -> list[AuditRow]:
    """Run the audit under a progress bar; there is none when nobody looks."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns,
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not sys.stderr.isatty(),
    ) as bar:
        task = bar.add_task("auditing", total=len(cases))
        rows = []
        for row in audit(cases, seed=seed, trials=trials, family=len(all_audit_cases())):
            rows.append(row)
            bar.update(task, advance=1, description=row.case.name)
    return rows


def _print_table(rows: Sequence[AuditRow]) -> None:
    # Off a terminal nothing may be cut: a log has no width.
    console = Console(width=None if sys.stdout.isatty() else 132)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("mechanism", no_wrap=True)
    table.add_column("neighbours", no_wrap=True)
    for name in ("claimed", "proved", "exact", "audited", "null", "planted"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for row in rows:
        table.add_row(*_cells(row))
    console.print(table)
    console.print()
    for line in _reading(rows):
        console.print(line, highlight=False, markup=False)


def _cells(row: AuditRow) -> list[Text]:
    planted = f"{row.planted.epsilon:.2f}" + ("" if row.planted_found else " unseen")
    return [
        Text(row.case.name),
        Text(row.case.neighbours.value),
        Text(_epsilon(row.claim.claimed)),
        Text(_epsilon(row.claim.proved)),
        Text("" if row.exact is None else f"{row.exact:.3f}"),
        Text(_reached(row.audited)),
        Text(f"{row.null.epsilon:.2f}"),
        Text(planted),
        Text(row.verdict, style=_STYLES[row.verdict]),
    ]


def _reached(bound: LowerBound) -> str:
    """Write a bound, rounded down; of nothing, that nothing was found."""
    if not bound.epsilon:
        return "nothing found"
    return f">= {math.floor(100 * bound.epsilon) / 100:.2f}"


def _epsilon(guarantee: Guarantee) -> str:
    if math.isinf(guarantee.epsilon):
        return "inf"
    delta = f" @{guarantee.delta:g}" if guarantee.delta else ""
    return f"{guarantee.epsilon:.3f}{delta}"


def _reading(rows: Sequence[AuditRow]) -> list[str]:
    """Say in plain words what the table shows."""
    lines = [f"{row.case.name}: {row.case.note}." for row in rows if row.case.note]
    if not rows:
        return ["Nothing was audited."]
    some = rows[0].audited
    lines += [
        "",
        "exact: the worst ratio over all reports, enumerated from the weights in use; empty where "
        "they cannot be listed.",
        f"audited: a lower bound from {some.trials:,} held-out runs on each of two inputs, each "
        f"wrong with probability {1 - some.confidence:.1e};",
        f"that many runs can show {some.ceiling:.2f} at most, and nothing found confirms nothing. "
        "All verdicts together",
        "wrong a correct mechanism with probability below 1e-4.",
        "null: the same input twice, 0 unless the auditor raises false alarms. planted: the same "
        "mechanism with noise a quarter too small.",
        "@: at that delta.",
        "",
        _summary(rows),
    ]
    return lines


def _summary(rows: Sequence[AuditRow]) -> str:
    counts: dict[ClaimVerdict, int] = {}
    for row in rows:
        counts[row.verdict] = counts.get(row.verdict, 0) + 1
    words = {
        ClaimVerdict.HOLDS: "hold what is proved",
        ClaimVerdict.OVERCLAIMED: "are overclaimed: faulty as printed in their papers",
        ClaimVerdict.BROKEN: "BROKEN: proof or code is wrong",
        ClaimVerdict.BLIND: "blind: nothing found, or not the planted fault; use more --trials",
    }
    return "; ".join(f"{counts[key]} {text}" for key, text in words.items() if key in counts) + "."
