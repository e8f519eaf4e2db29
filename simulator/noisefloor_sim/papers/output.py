"""The run directory of a reproduction: what it writes, and when it refuses to.

``reproduction.json`` and ``reproduction.csv`` are the same bytes for the same seeds; what depends
on the machine is in ``manifest.json``.

The tables that every reproduction has: its figures, and their readings.
"""

import csv
import io
import json
import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TypeAlias

from noisefloor.errors import BadRunDirectory
from noisefloor_sim.papers import verdicts
from noisefloor_sim.report import Page, Table, write
from noisefloor_sim.runs import RunDirectory


def figures_table(
    judged: Sequence[verdicts.JudgedFigure],
    titles: Mapping[str, str],
    larger: str,
    digits: int = 2,
) -> Table:
    """Return every printed figure with its verdict, the worst first.

    Args:
        judged: The figures.
        titles: Of the data sets.
        larger: What always telling the larger class gets, in words.
        digits: Of numbers.
    """
    order = (verdicts.NOT, verdicts.DEPENDS, verdicts.UNDECIDED, verdicts.REPRODUCED)
    ranked = sorted(judged, key=lambda one: order.index(one.verdict))
    rows = [
        (
            titles[one.item.data],
            one.item.what,
            one.item.printed,
            _span(one.found, digits),
            one.verdict,
            one.reading
            or ("none for certain" if one.verdict == verdicts.UNDECIDED else "none of those run"),
        )
        for one in ranked
    ]
    return Table(
        "Every printed figure",
        f"Ours is the mean, over all readings; always telling the larger class gets: {larger}.",
        ("data", "figure", "printed", "ours", "verdict", "comes out under"),
        rows,
    )


def _span(found: Sequence[verdicts.ReadingResult], digits: int) -> str:
    low, high = min(one.value for one in found), max(one.value for one in found)
    return verdicts.number(low, digits) if low == high else _range(low, high, digits)


def _range(low: float, high: float, digits: int) -> str:
    return f"{verdicts.number(low, digits)} to {verdicts.number(high, digits)}"


def readings_table(
    judged: Sequence[verdicts.JudgedFigure],
    titles: Mapping[str, str],
    reading: str,
    digits: int = 2,
) -> Table:
    """Return every reading of every figure.

    Args:
        judged: The figures.
        titles: Of the data sets.
        reading: How the table is read.
        digits: Of numbers.
    """
    rows = [
        (
            titles[one.item.data],
            one.item.what,
            one.item.printed,
            found.reading,
            verdicts.number(found.value, digits),
            _range(found.low, found.high, digits),
            "" if math.isnan(found.one_low) else _range(found.one_low, found.one_high, digits),
            found.fits.value,
        )
        for one in judged
        for found in one.found
    ]
    return Table(
        "Every reading",
        reading,
        (
            "data",
            "figure",
            "printed",
            "reading",
            "ours",
            "95 % of the mean",
            "one more run",
            "fits",
        ),
        rows,
    )


Rows: TypeAlias = Sequence[Mapping[str, object]]

COLUMNS = (
    *("figure", "data", "what", "printed", "reading", "ours", "low", "high"),
    *("one_run_low", "one_run_high", "fits", "verdict", "majority", "seeds"),
)
_FILES = ("reproduction.json", "reproduction.csv", "report.html", "manifest.json")


def check_folder(folder: Path, *, force: bool) -> None:
    """Refuse a folder that is in the way; replace one that is a reproduction, if requested."""
    if not folder.exists():
        return
    if not force:
        raise BadRunDirectory(f"{folder}: exists already. Use --force to replace it, or --out.")
    if not folder.is_dir() or any(path.name not in _FILES for path in folder.iterdir()):
        raise BadRunDirectory(f"{folder}: is not a reproduction; --force replaces no other.")


def write_all(
    folder: Path,
    document: Mapping[str, object],
    rows: Rows,
    *,
    page: Page,
    manifest: dict[str, object],
) -> None:
    """Write the run directory.

    Args:
        folder: Where; replaced if it is there.
        document: All that was found, for the JSON file.
        rows: A line for each reading, for both files.
        page: The report.
        manifest: What depends on the machine.
    """
    if folder.exists():
        shutil.rmtree(folder)
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise BadRunDirectory(f"{folder}: cannot be written: {error.strerror}.") from None
    directory = RunDirectory(folder)
    directory.write("reproduction.csv", _csv(rows))
    directory.write("reproduction.json", json.dumps(document, indent=1, allow_nan=False) + "\n")
    directory.write("manifest.json", json.dumps(manifest, indent=1) + "\n")
    write(page, folder / "report.html")


def rows_of(judged: Sequence[verdicts.JudgedFigure], majority: Mapping[str, float]) -> Rows:
    """Return a line for each reading of each figure.

    Args:
        judged: The figures.
        majority: What always telling the larger class reaches, for each data set.
    """
    rows: list[dict[str, object]] = []
    for one in judged:
        item = one.item
        for found in one.found:
            numbers = (found.value, found.low, found.high, found.one_low, found.one_high)
            cells = (
                *(item.key, item.data, item.what, item.printed, found.reading),
                *map(_plain, numbers),
                *(found.fits.value, one.verdict, _plain(majority[item.data]), found.seeds),
            )
            rows.append(dict(zip(COLUMNS, cells, strict=True)))
    return rows


def reproduction_document(
    paper: str,
    readings: Sequence[str],
    judged: Sequence[verdicts.JudgedFigure],
    rows: Rows,
    runs: verdicts.Runs,
    *,
    seed: int,
) -> dict[str, object]:
    """Return all that was found, as JSON.

    Args:
        paper: Its name.
        readings: What all figures have in common.
        judged: The figures.
        rows: A line for each reading.
        runs: What was reached, run by run; settings are data classes.
        seed: The base seed of the runs.
    """
    return {
        "paper": paper,
        "seed": seed,
        "common_readings": list(readings),
        "verdicts": {one.item.key: one.verdict for one in judged},
        "readings": rows,
        "runs": [
            asdict(one) | {"accuracy": [round(value, 6) for value in values]}
            for one, values in runs.items()
        ],
    }


def _plain(value: float) -> float | str | None:
    if math.isnan(value):
        return None
    return round(value, 6) if math.isfinite(value) else "inf"


def _csv(rows: Rows) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()
