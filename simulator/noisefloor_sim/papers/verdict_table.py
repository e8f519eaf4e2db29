"""What the person who started a reproduction sees: progress, and the table at the end."""

import platform
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from noisefloor_sim.papers import verdicts

_STYLES = {
    verdicts.REPRODUCED: "green",
    verdicts.DEPENDS: "yellow",
    verdicts.NOT: "red",
    verdicts.UNDECIDED: "magenta",
}


def versions(*packages: str) -> dict[str, object]:
    """Return the versions of Python, of this package and of others, for a manifest."""
    found: dict[str, object] = {"python": platform.python_version()}
    return found | {name: version(name) for name in ("noisefloor", *packages)}


def progress() -> Progress:
    """Return a bar with the time left; nothing is shown when nobody looks."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )


def print_verdicts(
    judged: Sequence[verdicts.JudgedFigure], titles: Mapping[str, str], digits: int = 2
) -> None:
    """Print every figure with its readings, and how many came out."""
    # Off a terminal nothing may be cut: a log has no width.
    console = Console(width=None if sys.stdout.isatty() else 160)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("data", "figure", "printed", "ours", "95 % of the mean", "fits", "verdict"):
        table.add_column(name, no_wrap=name not in ("figure",))
    for one in judged:
        table.add_row(
            titles[one.item.data], one.item.what, one.item.printed, "", "", "",
            Text(one.verdict, style=_STYLES[one.verdict]),
        )  # fmt: skip
        for found in one.found:
            ends = f"{verdicts.number(found.low, digits)} to {verdicts.number(found.high, digits)}"
            value = verdicts.number(found.value, digits)
            table.add_row("", f"  {found.reading}", "", value, ends, found.fits.value, "")
    console.print(table)
    console.print()
    console.print(verdicts.sentence(judged), highlight=False, soft_wrap=True)
