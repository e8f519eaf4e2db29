"""Bars and spinners on the terminal, the same everywhere; nothing is shown when nobody looks."""

import sys

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


def counting_bar() -> Progress:
    """Return a bar with what is done, what there is, and the time left."""
    count = TextColumn("{task.completed:.1f} of {task.total:.0f}")
    return _on_terminal(
        TextColumn("{task.description}"), BarColumn(), count, TimeRemainingColumn()
    )


def spinner() -> Progress:
    """Return a spinner with the time taken."""
    return _on_terminal(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())


def _on_terminal(*columns: ProgressColumn) -> Progress:
    console = Console(stderr=True)
    return Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty())
