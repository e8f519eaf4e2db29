"""What the person who started a reproduction sees: progress, and the table at the end."""

import platform
import sys
from collections.abc import Mapping
from importlib.metadata import version

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from noisefloor_sim.papers import verdicts

_STYLES = {
    verdicts.REPRODUCED: "green",
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


def print_verdicts(judged: verdicts.Judged, titles: Mapping[str, str], digits: int = 2) -> None:
    """Print every claim with the test that decides it, and how many are reproduced."""
    # Off a terminal nothing may be cut: a log has no width.
    console = Console(width=None if sys.stdout.isatty() else 160)
    for variant, claims in judged.items():
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), title=variant)
        for name in ("data", "claim", "printed", "measured", "interval", "holds if", "verdict"):
            table.add_column(name, no_wrap=name != "claim")
        for one in claims:
            found = one.deciding
            table.add_row(
                titles[one.claim.data],
                f"{one.claim.what} ({found.name})",
                one.claim.printed,
                verdicts.measured(found, digits),
                verdicts.ends(found.low, found.high, digits),
                verdicts.requirement(found, digits),
                Text(one.verdict, style=_STYLES[one.verdict]),
            )
        console.print(table)
        console.print()
    console.print(verdicts.sentence(judged), highlight=False, soft_wrap=True)
