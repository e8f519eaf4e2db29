"""The commands that publish, run in this process, on a small table of one's own."""

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from noisefloor.randomness import SeededSource, new_run
from noisefloor_sim.cli import commands

VISITS = {
    "record": "one visit",
    "columns": {
        "country": {"categories": ["CH", "DE"]},
        "age": {"bins": [0, 18, 40, 65, 120]},
        "pages": {"range": [0, 16]},
        "buys": {"categories": ["no", "yes"]},
    },
    "label": "buys",
}


class CommandResult(NamedTuple):
    """What a command left."""

    code: int
    out: str
    error: str


def run(*words: str) -> CommandResult:
    """Run one command as the program does, and return its exit code and what it printed."""
    out, error, code = io.StringIO(), io.StringIO(), 0
    with (
        pytest.MonkeyPatch.context() as patch,
        redirect_stdout(out),
        redirect_stderr(error),
        new_run(),
    ):
        patch.setattr(sys, "argv", ["noisefloor", *words])
        try:
            commands.main()
        except SystemExit as end:
            code = int(end.code or 0)
    return CommandResult(code, out.getvalue(), error.getvalue())


def write_table(folder: Path, count: int = 2000, schema: object = VISITS) -> Path:
    """Write a table in which whoever is of age and sees many pages buys, mostly."""
    with new_run():
        draw = SeededSource(5, "visits").generator()
        country = np.array(["CH", "DE"])[draw.integers(0, 2, count)]
        age, pages = draw.integers(0, 121, count), draw.integers(0, 17, count)
        score = (pages - 8) / 3 + (age > 40) - 0.5 + draw.standard_normal(count)
    rows = [
        f"{one},{years},{seen},{'yes' if lean > 0 else 'no'}"
        for one, years, seen, lean in zip(country, age, pages, score, strict=True)
    ]
    path = folder / "visits.csv"
    path.write_text("\n".join(["country,age,pages,buys", *rows, ""]))
    if schema is not None:
        path.with_suffix(".schema.json").write_text(json.dumps(schema))
    (folder / "new-visits.csv").write_text("country,age,pages\nCH,70,15\nDE,20,1\n")
    return path
