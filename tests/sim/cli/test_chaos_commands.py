"""The chaos command of the simulator: a process is watched, a run directory written."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from noisefloor.errors import BadRunDirectory
from noisefloor_sim.cli import chaos, commands
from noisefloor_sim.cli.chaos_page import page_of
from noisefloor_sim.report.page import render
from noisefloor_sim.report.readings import caption

ACCOUNT = {
    "accepted": 12, "counted": 10, "duplicates": 1, "dead_letters": 1, "late": 0, "pending": 0,
    "reports": 1000,
}  # fmt: skip
PLAN = {"reports": 1000, "worker_kills": 5, "zombies": 2, "server_kills": 1, "poison": 1}


def figures(faults: list[str]) -> dict[str, Any]:
    run = {
        "is_exact": not faults, "plan": PLAN, "faults": faults, "conservation": ACCOUNT,
        "frames": 10, "reports": 1000, "worker_kills": 5, "zombies": 2, "server_kills": 1,
        "held_frames": 3, "cells": 114, "elapsed_s": 1.5,
    }  # fmt: skip
    spending = {
        "is_exact": True, "faults": [], "processes": 100, "threads": 1, "cap": 1000,
        "asked": 1100, "granted": 1000, "retried": 1000, "ledger_spent": 1000,
        "naive_granted": 1900, "elapsed_s": 2.0,
    }  # fmt: skip
    outage = {
        "is_exact": True, "faults": [], "way": "killed", "away_s": 3.0, "answers": {"503": 9},
        "slowest_s": 0.1, "probes": {"503": 5}, "ready_again_s": {"ad-server": 0.2},
        "first_taken_s": 0.3, "recovery_s": 0.3, "conservation": ACCOUNT, "cells": 80,
    }  # fmt: skip
    return {
        "format": 1,
        "is_exact": not faults,
        "is_naive": False,
        "durability": "disk",
        "seeds": [1],
        "elapsed_s": 3.5,
        "machine": {"cores": 2, "load_before": 0.5, "load_after": 1.0, "python": "3.11"},
        "streams": {"1": run},
        "outage": {"killed": outage},
        "ledger": {"spending": spending},
    }


def test_the_page_shows_every_figure_and_the_verdict() -> None:
    page = page_of(figures([]))
    assert page.verdict_ok
    assert page.verdict_sentence.startswith("All 3 runs are exact")
    html = render(page)
    for text in ("SIGKILLs of workers", "114", "Frames answered with 503", "1,900", "2 cores"):
        assert text in html


def captions(found: dict[str, Any]) -> list[str]:
    """Return what is said below each table."""
    return [caption(item) for section in page_of(found).sections for item in section.items]


def test_a_caption_follows_from_the_rows_of_its_table() -> None:
    honest = figures([])
    assert captions(honest) == [
        "Planned beside done, and the truth beside what was counted. 114 sums were compared with "
        "the truth, and none differs.",
        "Requests and recovery around a kill of the store. Everything was as before 0.3 s after "
        "the return.",
        "Spends asked for by many processes, beside what the budget covers. 1000 spends were "
        "granted, 1000 are in the budget; the twin granted 1900.",
    ]
    honest["outage"]["killed"]["recovery_s"] = 9.0
    honest["ledger"]["spending"]["granted"] = 1001
    # A run that calls itself exact is not taken at its word.
    assert captions(honest)[1:] == [
        "Requests and recovery around a kill of the store.",
        "Spends asked for by many processes, beside what the budget covers.",
    ]
    assert captions(figures(["one sum differs"]))[0].endswith("Not exact: one sum differs.")


def test_a_failure_comes_first_and_its_text_is_escaped() -> None:
    page = page_of(figures(["<script>alert(1)</script>"]))
    assert not page.verdict_ok
    assert page.verdict_sentence.startswith("1 of 3 runs went wrong")
    html = render(page)
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert" in html


@pytest.mark.slow
def test_a_storm_fills_a_run_directory(tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = ["chaos", "--quick", "--reports", "10000", "--seeds", "1", "--only", "streams"]
    done = CliRunner().invoke(commands.app, [*words, "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines() == [
        "The one run is exact: nothing accepted was lost, and nothing counted twice.",
        f"report: {out / 'report.html'}",
    ]
    assert sorted(path.name for path in out.iterdir()) == ["chaos.json", "report.html"]
    assert json.loads((out / "chaos.json").read_text())["is_exact"]
    with pytest.raises(BadRunDirectory, match="--force"):
        chaos.chaos([], out=out, force=False)


def test_bad_options_are_2_and_other_folders_are_left_alone(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert chaos.chaos(["--seeds", "1,1"], out=tmp_path / "x", force=False) == 2
    assert not (tmp_path / "x").exists()
    assert "each named once" in capfd.readouterr().err
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "mine").write_text("")
    with pytest.raises(BadRunDirectory, match="holds no"):
        chaos.chaos([], out=tmp_path / "x", force=True)
    assert (tmp_path / "x" / "mine").exists()
