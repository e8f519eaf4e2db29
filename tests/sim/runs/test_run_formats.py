"""Run folders of other formats are refused by every command that reads one, with what to do."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from noisefloor.errors import BadRunDirectory
from noisefloor_sim.cli import run_commands
from noisefloor_sim.scenario import RUN_FORMAT

SCENARIO = """
name: tiny
seed: 3
question: Which format is this?
days: 1
population: {users: 64, cohort: 64}
behaviour: {ads: 4}
pipelines: {clicks: {canaries: 1000}}
"""


def run(folder: Path, *, resume: bool = False) -> int:
    file = folder.parent / "tiny.yaml"
    file.write_text(SCENARIO, encoding="utf-8")
    return run_commands.run(
        file, settings=[], seed=None, out=folder, jobs=1, force=False, resume=resume
    )


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a finished run, once for all tests."""
    path = tmp_path_factory.mktemp("finished") / "out"
    run(path)
    return path


@pytest.fixture
def folder(finished: Path, tmp_path: Path) -> Path:
    """Return a copy of a finished run."""
    return shutil.copytree(finished, tmp_path / "out")


def rewrite(folder: Path, **changes: object) -> None:
    """Change the run card; None takes a key away."""
    card = json.loads((folder / "manifest.json").read_text()) | changes
    kept = {key: value for key, value in card.items() if value is not None}
    (folder / "manifest.json").write_text(json.dumps(kept))


READERS: dict[str, Callable[[Path], object]] = {
    "report": run_commands.report,
    "explain": lambda path: run_commands.explain(path, 5),
    "resume": lambda path: run(path, resume=True),
}


@pytest.mark.parametrize("reader", READERS)
def test_a_run_of_this_format_is_read(reader: str, folder: Path) -> None:
    assert json.loads((folder / "manifest.json").read_text())["format"] == RUN_FORMAT
    assert READERS[reader](folder) == 0


@pytest.mark.parametrize("reader", READERS)
def test_a_newer_run_is_refused_before_anything_else_of_it_is_read(
    reader: str, folder: Path
) -> None:
    rewrite(folder, format=RUN_FORMAT + 1)
    if reader != "resume":  # which compares the scenario, and so needs it
        (folder / "scenario.yaml").write_text("unheard_of: 3\n")
    with pytest.raises(BadRunDirectory) as caught:
        READERS[reader](folder)
    number = f"Expected format {RUN_FORMAT}, got {RUN_FORMAT + 1}"
    newer = "written by a newer noisefloor. Upgrade: pip install --upgrade noisefloor."
    assert str(caught.value) == f"{folder}: manifest.json: format: {number}: {newer}"


@pytest.mark.parametrize("reader", READERS)
def test_a_run_without_a_format_is_refused_with_the_command_that_runs_it_again(
    reader: str, folder: Path
) -> None:
    again = f"Run it again: noisefloor run {folder / 'scenario.yaml'} --out FOLDER."
    for value in (None, 0, "1", True):
        rewrite(folder, format=value)
        with pytest.raises(BadRunDirectory) as caught:
            READERS[reader](folder)
        assert str(caught.value).endswith(f"written by an older noisefloor. {again}"), value


@pytest.mark.parametrize("text", ["{", "[]", "3"])
def test_a_damaged_card_is_said_to_be_damaged(text: str, folder: Path) -> None:
    (folder / "manifest.json").write_text(text)
    with pytest.raises(BadRunDirectory, match=r"manifest\.json is damaged"):
        run_commands.report(folder)
