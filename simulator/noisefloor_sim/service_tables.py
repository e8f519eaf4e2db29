"""The status of a topology as a person reads it."""

import sys

from rich.console import Console
from rich.table import Table
from rich.text import Text

from noisefloor_sim.topology.status import Budget, Conservation, ProcessStatus, Status

_HEADINGS = ("process", "state", "address", "pid", "uptime", "memory", "waiting")


def print_status(status: Status) -> None:
    """Print the processes, what is promised, counted and spent, and the verdict."""
    # Off a terminal nothing may be cut: a log has no width.
    console = Console(width=None if sys.stdout.isatty() else 132)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for place, heading in enumerate(_HEADINGS):
        table.add_column(heading, no_wrap=True, justify="right" if place > 2 else "left")
    for one in status.processes:
        table.add_row(*map(Text, _row(one)))
    console.print(table)
    console.print()
    for line in _lines(status):
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def _row(one: ProcessStatus) -> tuple[str, ...]:
    waiting = "-" if one.waiting is None else f"{one.waiting:,}"
    memory = f"{one.memory_bytes / 2**20:,.0f} MiB"
    return one.name, one.state, one.address, str(one.pid), _span(one.uptime_s), memory, waiting


def _lines(status: Status) -> list[str]:
    lines = [f"{one.name}: {one.why}. Log: {one.log}" for one in status.processes if one.why]
    lines.append(f"redis: {status.redis}")
    promise = status.durability.promise or "Nobody is there to promise anything."
    lines.append(f"durability: {status.durability.setting}. {promise}")
    lines += [f"NOT KEPT by {one.store}: {one.why}" for one in status.durability.unkept]
    if status.conservation is not None:
        lines.append(f"conservation: {_sum(status.conservation)}")
        lines.append(f"refused at the intake: {_refused(status.conservation)}")
        lines += [f"ALARM: {text}" for text in status.conservation.alarms]
    lines += _budgets(status.ledger)
    return [*lines, "", status.verdict]


def _sum(found: Conservation) -> str:
    outcome = "CONSERVED" if found.is_conserved else f"{found.missing:,} MISSING"
    return (
        f"{found.accepted:,} frames accepted = {found.counted:,} counted + "
        f"{found.dead_letters:,} dead letters + {found.late:,} late + "
        f"{found.duplicates:,} duplicates + {found.pending:,} pending: {outcome} "
        f"({found.reports:,} reports counted)"
    )


def _refused(found: Conservation) -> str:
    closed = found.refused_closed + found.refused_again
    return (
        f"{closed:,} for a closed epoch, {found.refused_ahead:,} for one too far ahead, "
        f"{found.refused_full:,} for a full one"
    )


def _budgets(ledger: tuple[Budget, ...] | None) -> list[str]:
    if ledger is None:
        return ["ledger: nobody tells."]
    if not ledger:
        return ["ledger: no data set is published from; name one by up --data-set."]
    return [
        f"ledger: {one.data_set}: epsilon {one.spent_epsilon:g} spent, {one.left_epsilon:g} left; "
        f"delta {one.spent_delta:g} spent, {one.left_delta:g} left"
        for one in ledger
    ]


def _span(seconds: float) -> str:
    """Write a time as people read it: the two largest units."""
    days, rest = divmod(int(seconds), 86_400)
    hours, rest = divmod(rest, 3600)
    minutes, rest = divmod(rest, 60)
    named = ((days, "d"), (hours, "h"), (minutes, "min"), (rest, "s"))
    parts = [f"{number} {unit}" for number, unit in named if number]
    return " ".join(parts[:2]) or "0 s"
