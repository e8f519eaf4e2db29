"""The run directory of a reproduction: what it writes, and when it refuses to.

``reproduction.json`` and ``reproduction.csv`` are the same bytes for the same seeds; what depends
on the machine is in ``manifest.json``.

The tables that every reproduction has: its claims, and their tests.
"""

import csv
import io
import json
import math
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TypeAlias

from noisefloor.errors import BadRunDirectory
from noisefloor_sim.papers import verdicts
from noisefloor_sim.papers.intervals import Runs
from noisefloor_sim.report import Page, Table, write
from noisefloor_sim.runs import RunDirectory


def claims_table(
    judged: Sequence[verdicts.JudgedClaim], titles: Mapping[str, str], title: str, digits: int = 2
) -> Table:
    """Return every claim with its verdict and the test that decides it, the worst first.

    Args:
        judged: The claims.
        titles: Of the data sets.
        title: Of the table.
        digits: Of numbers.
    """
    order = list(verdicts.ReproductionVerdict)
    ranked = sorted(judged, key=lambda one: order.index(one.verdict))
    rows = [
        (
            one.verdict.value,
            titles[one.claim.data],
            one.claim.what,
            one.claim.printed,
            *_cells(one.deciding, digits),
            _tally(one),
        )
        for one in ranked
    ]
    return Table(
        title,
        "With the test that decides: the one that fails, or the one that is closest to failing.",
        ("verdict", "data", "claim", "printed", *_CELLS, "tests"),
        rows,
    )


def tests_table(
    judged: Sequence[verdicts.JudgedClaim],
    titles: Mapping[str, str],
    title: str,
    describes: str,
    digits: int = 2,
) -> Table:
    """Return every test of every claim.

    Args:
        judged: The claims.
        titles: Of the data sets.
        title: Of the table.
        describes: What is listed.
        digits: Of numbers.
    """
    rows = [
        (
            found.verdict.value,
            titles[one.claim.data],
            one.claim.what,
            one.claim.printed,
            *_cells(found, digits),
            found.runs,
        )
        for one in judged
        for found in one.results
    ]
    header = ("test says", "data", "claim", "printed", *_CELLS, "runs")
    return Table(title, describes, header, rows)


_CELLS = ("test", "measured", "interval", "holds if")


def _cells(found: verdicts.TestResult, digits: int) -> tuple[str, ...]:
    interval = verdicts.ends(found.low, found.high, digits)
    return (
        *(found.name, verdicts.measured(found, digits), interval),
        verdicts.requirement(found, digits),
    )


def _tally(one: verdicts.JudgedClaim) -> str:
    """Count a claim's tests by what they say, if it has several."""
    if len(one.results) == 1:
        return ""
    counts = Counter(found.verdict for found in one.results)
    words = {verdicts.NOT: "fail", verdicts.UNDECIDED: "undecided", verdicts.REPRODUCED: "pass"}
    return ", ".join(f"{counts[it]} {word}" for it, word in words.items() if counts[it])


Rows: TypeAlias = Sequence[Mapping[str, object]]

COLUMNS = (
    *("variant", "claim", "data", "what", "printed", "verdict", "test", "test_verdict"),
    *("value", "low", "high", "least", "most", "unit", "mean", "deviation", "runs"),
)
_FILES = ("reproduction.json", "reproduction.csv", "report.html", "manifest.json")


def check_folder(folder: Path, *, force: bool, others: Sequence[str] = ()) -> None:
    """Refuse a folder that is in the way; replace one that is a reproduction, if requested.

    Args:
        folder: The run directory.
        force: Whether a reproduction may be there.
        others: Names besides those of every reproduction that it may hold.
    """
    if not folder.exists():
        return
    if not force:
        raise BadRunDirectory(f"{folder}: exists already. Use --force to replace it, or --out.")
    known = (*_FILES, *others)
    if not folder.is_dir() or any(path.name not in known for path in folder.iterdir()):
        raise BadRunDirectory(f"{folder}: is not a reproduction; --force replaces no other.")


def write_all(
    folder: Path,
    document: Mapping[str, object],
    judged: verdicts.Judged,
    *,
    page: Page,
    manifest: dict[str, object],
) -> None:
    """Write the run directory.

    Args:
        folder: Where; replaced if it is there.
        document: All that was found, for the JSON file.
        judged: The claims, for the CSV file.
        page: The report.
        manifest: What depends on the machine.
    """
    if folder.exists():
        shutil.rmtree(folder)
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise BadRunDirectory(f"{folder}: cannot be written: {error.strerror}.") from None
    write_files(folder, document, judged, page=page, manifest=manifest)


def write_files(
    folder: Path,
    document: Mapping[str, object],
    judged: verdicts.Judged,
    *,
    page: Page,
    manifest: dict[str, object],
) -> None:
    """Write the files of a reproduction into a folder that is there; see ``write_all``."""
    directory = RunDirectory(folder)
    directory.write("reproduction.csv", _csv(rows_of(judged)))
    directory.write("reproduction.json", json.dumps(document, indent=1, allow_nan=False) + "\n")
    directory.write("manifest.json", json.dumps(manifest, indent=1) + "\n")
    write(page, folder / "report.html")


def rows_of(judged: verdicts.Judged) -> Rows:
    """Return a line for each test of each claim of each variant."""
    rows: list[dict[str, object]] = []
    for variant, claims in judged.items():
        for one in claims:
            item = one.claim
            said = (variant, item.key, item.data, item.what, item.printed, one.verdict.value)
            for found in one.results:
                numbers = (found.value, found.low, found.high, found.least, found.most)
                cells = (
                    *(*said, found.name, found.verdict.value),
                    *map(_plain, numbers),
                    *(found.unit, _plain(found.mean), _plain(found.deviation), found.runs),
                )
                rows.append(dict(zip(COLUMNS, cells, strict=True)))
    return rows


def reproduction_document(
    paper: str,
    readings: Sequence[str],
    judge: verdicts.Judge,
    judged: verdicts.Judged,
    runs: Runs,
    *,
    seed: int,
) -> dict[str, object]:
    """Return all that was found, as JSON.

    Args:
        paper: Its name.
        readings: What all claims have in common.
        judge: Who decided.
        judged: The claims, by variant.
        runs: What was reached, run by run; settings are data classes.
        seed: The base seed of the runs.
    """
    return {
        "paper": paper,
        "seed": seed,
        "false_decision": verdicts.FALSE_DECISION,
        "tests": judge.tests,
        "common_readings": list(readings),
        "verdicts": {
            variant: {one.claim.key: one.verdict.value for one in claims}
            for variant, claims in judged.items()
        },
        "results": rows_of(judged),
        "runs": [
            asdict(one) | {"accuracy": [round(value, 6) for value in values]}
            for one, values in runs.items()
        ],
    }


def _plain(value: float) -> float | str | None:
    if math.isnan(value):
        return None
    return round(value, 6) if math.isfinite(value) else "inf" if value > 0 else "-inf"


def _csv(rows: Rows) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()
