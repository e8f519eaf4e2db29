"""A state folder that was restored from a backup: spent budget stays spent, whatever is copied."""

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from noisefloor.errors import NoisefloorError
from noisefloor_sim.cli import commands
from noisefloor_sim.deploy import anchors
from noisefloor_sim.deploy import state as states
from noisefloor_sim.deploy.anchors import anchor_of
from noisefloor_sim.deploy.deployment import Deployment, running
from noisefloor_sim.deploy.errors import BadState, FolderBusy, NotRunning, StartFailed
from noisefloor_sim.deploy.paths import DeploymentPaths
from noisefloor_sim.deploy.process import Process
from noisefloor_sim.deploy.starting import restore_ledger, start
from noisefloor_sim.deploy.state import EMBEDDED, DeploymentState
from own_tables import write_visits

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def _paths(monkeypatch: pytest.MonkeyPatch) -> None:
    roots = [str(ROOT / one) for one in ("platform", "simulator", "services")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(roots))
    for name in ("REDIS_URL", "LEDGER_ANCHOR"):
        monkeypatch.delenv(f"NOISEFLOOR_{name}", raising=False)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    made = tmp_path / "topology"
    yield made
    try:
        running(made).stop()
    except NoisefloorError:
        return


def publish(topology: Deployment, publication_id: str) -> httpx.Response:
    body: dict[str, Any] = {
        "publication_id": publication_id,
        "data_set": "visits",
        "method": "histogram",
        "cost": {"epsilon": 0.25, "neighbours": "record-add-remove"},
        "parameters": {"columns": "country,age"},
    }
    token = {"Authorization": f"Bearer {topology.token('publish')}"}
    url = f"{topology.url('model-publisher')}/publications"
    return httpx.post(url, json=body, headers=token, timeout=30)


@pytest.mark.slow
def test_a_restored_folder_gives_no_second_draw(folder: Path, tmp_path: Path) -> None:
    visits = [f"visits={write_visits(tmp_path)}"]
    topology = start(folder, data_sets=visits)
    assert publish(topology, "p-0").status_code == 200
    shutil.copytree(folder, tmp_path / "backup")  # the whole folder, as a backup would
    assert publish(topology, "p-1").status_code == 200
    with pytest.raises(FolderBusy):
        restore_ledger(folder)
    topology.stop()
    shutil.rmtree(folder)
    shutil.copytree(tmp_path / "backup", folder)

    with pytest.raises(StartFailed, match="holds less than its anchor says") as refusal:
        start(folder, data_sets=visits)
    file = anchor_of(DeploymentPaths.of(folder), EMBEDDED, None)
    assert file is not None and str(file) in str(refusal.value)
    assert f"noisefloor restore-ledger --folder {folder}" in str(refusal.value)

    done = CliRunner().invoke(commands.app, ["restore-ledger", "--folder", str(folder)])
    assert (done.exit_code, done.stdout) == (
        0,
        "Raised visits by epsilon 0.250000; 1 entries added, 0 spends sealed.\n",
    )
    assert restore_ledger(folder) == "The ledger holds what its anchor says: nothing was raised."


def test_the_anchor_is_outside_of_the_folder_and_its_own(tmp_path: Path) -> None:
    here, home = {"HOME": str(tmp_path / "home")}, tmp_path / "home/.local/state"
    one, other = (DeploymentPaths.of(tmp_path / name) for name in (".noisefloor", "other"))
    first = anchor_of(one, EMBEDDED, None, here)
    assert first is not None and first.parent == home / "noisefloor/anchors"
    assert first.name.startswith("noisefloor-")
    assert stat.S_IMODE(first.parent.stat().st_mode) == 0o700
    files = {
        first,
        anchor_of(other, EMBEDDED, None, here),
        anchor_of(one, "redis://127.0.0.1:6379/0", None, here),
    }
    assert len(files) == 3
    assert anchor_of(one, EMBEDDED, None, here) == first
    moved = anchor_of(one, EMBEDDED, None, {**here, "XDG_STATE_HOME": str(tmp_path / "xdg")})
    assert moved == tmp_path / "xdg/noisefloor/anchors" / first.name


def test_what_is_named_comes_before_what_is_noted_and_that_before_the_default(
    tmp_path: Path,
) -> None:
    paths, here = DeploymentPaths.of(tmp_path / "state"), {"HOME": str(tmp_path)}
    paths.make()
    noted, named, given = (tmp_path / name for name in ("noted", "named", "given"))
    anchors.note(paths, EMBEDDED, noted)
    anchors.note(paths, "redis://other:6379/0", given)
    assert anchor_of(paths, EMBEDDED, None, here) == noted
    variables = {**here, anchors.VARIABLE: str(named)}
    assert anchor_of(paths, EMBEDDED, None, variables) == named
    assert anchor_of(paths, EMBEDDED, given, variables) == given
    # A folder that was moved takes its note along.
    shutil.move(paths.folder, tmp_path / "moved")
    assert anchor_of(DeploymentPaths.of(tmp_path / "moved"), EMBEDDED, None, here) == noted
    (tmp_path / "moved/anchors.json").write_text("[]")
    with pytest.raises(BadState, match=r"anchors\.json"):
        anchor_of(DeploymentPaths.of(tmp_path / "moved"), EMBEDDED, None, here)


def test_without_a_place_for_it_or_inside_the_folder_there_is_a_warning(tmp_path: Path) -> None:
    paths = DeploymentPaths.of(tmp_path / "state")
    (tmp_path / "file").write_text("")
    for environment in ({}, {"HOME": "relative"}, {"HOME": str(tmp_path / "file")}):
        assert anchor_of(paths, EMBEDDED, None, environment) is None
    assert "--anchor" in anchors.anchor_warning(paths, None)
    assert "--anchor" in anchors.anchor_warning(paths, paths.folder / "anchor")
    assert anchors.anchor_warning(paths, tmp_path / "state-anchor") == ""


@pytest.mark.parametrize("variable", [True, False])
def test_the_command_hands_the_anchor_on(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: bool
) -> None:
    seen: list[Path | None] = []

    def started(at: Path, *, anchor: Path | None, **_: object) -> Deployment:
        seen.append(anchor)
        paths = DeploymentPaths.of(at)
        paths.make()
        inside = DeploymentState(
            EMBEDDED, "disk", processes=PROCESSES, anchor=str(paths.folder / "a")
        )
        states.write(paths, inside)
        return Deployment(paths, inside)

    monkeypatch.setattr("noisefloor_sim.cli.services.start", started)
    elsewhere = tmp_path / "elsewhere"
    words = ["up", "--folder", str(folder)]
    if variable:
        monkeypatch.setenv(anchors.VARIABLE, str(elsewhere))
    else:
        words += ["--anchor", str(elsewhere)]
    done = CliRunner().invoke(commands.app, words)
    assert (done.exit_code, seen) == (0, [elsewhere]), done.output
    assert f"ledger anchor    {folder / 'a'}" in done.stdout
    assert "inside the state folder" in done.stderr


PROCESSES = tuple(
    Process(name=name, pid=1 << 30, born="gone", since=0.0, port=1)
    for name in ("ad-server", "aggregator")
)


def test_where_nothing_was_started_nothing_is_restored(folder: Path) -> None:
    with pytest.raises(NotRunning, match="no topology was ever started"):
        restore_ledger(folder)
    assert not folder.exists()
