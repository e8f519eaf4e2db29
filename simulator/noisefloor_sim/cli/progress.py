"""Bars and spinners on the terminal, the same everywhere; nothing is shown when nobody looks."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text


def counting_bar() -> Progress:
    """Return a bar with what is done, what there is, and the time left."""
    count = TextColumn("{task.completed:.1f} of {task.total:.0f}")
    return _on_terminal(
        TextColumn("{task.description}"), BarColumn(), count, TimeRemainingColumn()
    )


def spinner() -> Progress:
    """Return a spinner with the time taken."""
    return _on_terminal(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())


class TaskDisplay:
    """What is under way, in one line: a spinner, or a bar with the time left where that is known.

    Args:
        bar: As ``task_bar`` makes it.
    """

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._task = bar.add_task("", total=None)
        self._what = ""

    def tell(self, what: str) -> None:
        """Show what is under way, for as long as it takes."""
        self.show(what, 0, None)

    def show(self, what: str, done: int, of: int | None) -> None:
        """Show how much is done; the time left is of this task alone."""
        if what != self._what:
            self._what = what
            self._bar.reset(self._task, description=what, total=of, completed=done)
        self._bar.update(self._task, completed=done, total=of)

    def warn(self, line: str) -> None:
        """Write a line to standard error, where it stays."""
        self._bar.console.print(f"noisefloor: {line}", markup=False, highlight=False)


@contextmanager
def task_display() -> Iterator[TaskDisplay]:
    """Show tasks one after the other on the terminal."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), _Steps())
    with _on_terminal(*columns, TimeElapsedColumn(), TimeRemainingColumn()) as bar:
        yield TaskDisplay(bar)


class _Steps(ProgressColumn):
    """``12 of 60``, once the number is known."""

    def render(self, task: Task) -> Text:
        """Return how many are done."""
        return Text("" if task.total is None else f"{task.completed:.0f} of {task.total:.0f}")


def _on_terminal(*columns: ProgressColumn) -> Progress:
    console = Console(stderr=True)
    return Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty())
