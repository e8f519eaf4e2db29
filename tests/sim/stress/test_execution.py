"""A load from the command line to its run directory; the program that sends is made up."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from load_figures import found
from noisefloor.errors import BadRunDirectory, BadScenario
from noisefloor_sim.cli import commands
from noisefloor_sim.stress import LoadOptions, execution, stress
from noisefloor_sim.stress.target import ServicesUnderLoad

TEXT = """
name: s
question: q
seed: 1
days: 1
population: {users: 2000}
pipelines: {clicks: {form: one-click}}
load:
  rows: 100
  steps: [{rate: 400, seconds: 5}]
  search: {start: 400, most: 2000}
  gates: [knee.low >= 400]
"""
Jobs = list[dict[str, Any]]


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "s.yaml"
    path.write_text(TEXT)
    return path


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> Jobs:
    """Put a program and services in place that only note what they are asked for."""
    given: Jobs = []
    process = SimpleNamespace(name="ad-server", pid=11, port=8080, server_pid=0)
    counting = SimpleNamespace(name="aggregator", pid=12, port=8081, server_pid=13)
    services: Any = SimpleNamespace(  # Any: as much of a deployment as is looked at
        processes={"ad-server": process, "aggregator": counting},
        state=SimpleNamespace(durability="memory"),
        token=lambda role: f"token-{role}",
    )

    @contextmanager
    def opened(*_: object) -> Iterator[object]:
        yield services, True

    @contextmanager
    def registered(*_: object, is_own: bool) -> Iterator[ServicesUnderLoad]:
        yield ServicesUnderLoad(services, "stress-1", is_own)

    def program(job: dict[str, Any], on_step: object) -> int:
        given.append(job)
        assert Path(job["requests"]).read_text()
        (Path(job["out"]) / "stress.json").write_text(json.dumps(found()))
        return 0

    monkeypatch.setattr(execution, "opened_services", opened)
    monkeypatch.setattr(execution, "collection_for_load", registered)
    monkeypatch.setattr(execution, "run_program", program)
    return given


def test_a_load_leaves_a_run_directory_with_metrics_and_a_report(
    scenario: Path, tmp_path: Path, jobs: Jobs
) -> None:
    options = LoadOptions(out=tmp_path / "run", seed=7)
    done = stress(scenario, options, lambda what: None, lambda step: None)
    assert done.code == 0
    assert {path.name for path in done.folder.iterdir()} == {
        "scenario.yaml", "stress.json", "manifest.json", "metrics.csv", "report.html",
    }  # fmt: skip
    manifest = json.loads((done.folder / "manifest.json").read_text())
    assert manifest["seed"] == jobs[0]["seed"] == 7
    assert manifest["services"] == "started for the load"
    assert "fdatasync" in manifest["machine"]
    assert [gate["passed"] for gate in manifest["gates"]] == [True]
    assert "token" not in (done.folder / "manifest.json").read_text()


def test_the_job_says_where_to_send_and_which_processes_to_look_at(
    scenario: Path, tmp_path: Path, jobs: Jobs
) -> None:
    stress(scenario, LoadOptions(out=tmp_path / "run"), lambda what: None, lambda step: None)
    (job,) = jobs
    assert job["target"]["ports"] == [8080]
    assert job["counting"] == {"port": 8081, "collection": "stress-1", "token": "token-read"}
    assert job["pids"] == {"ad-server": 11, "aggregator": 12, "aggregator-server": 13}
    assert job["steps"] == [
        {"name": "step-1", "phases": [{"rate": 400.0, "end_rate": 400.0, "seconds": 5.0}]}
    ]
    assert job["search"] == {"start": 400.0, "most": 2000.0, "repeats": 3}


def test_a_quick_load_runs_each_step_once(scenario: Path, tmp_path: Path, jobs: Jobs) -> None:
    options = LoadOptions(out=tmp_path / "run", is_quick=True)
    stress(scenario, options, lambda what: None, lambda step: None)
    assert (jobs[0]["repeats"], jobs[0]["search"]["repeats"], jobs[0]["warm_s"]) == (1, 1, 0.5)


@pytest.mark.usefixtures("jobs")
def test_a_gate_that_fails_decides_the_exit_code(scenario: Path, tmp_path: Path) -> None:
    scenario.write_text(TEXT.replace("knee.low >= 400", "knee.low >= 401"))
    out = CliRunner().invoke(
        commands.app, ["stress", str(scenario), "--out", str(tmp_path / "run")]
    )
    assert out.exit_code == 1
    assert "gate FAILED: knee.low >= 401 (knee.low is 400)" in out.output
    assert "The knee is between 400 requests a second and 440." in out.output


@pytest.mark.usefixtures("jobs")
def test_only_a_run_of_stress_is_replaced(scenario: Path, tmp_path: Path) -> None:
    options = LoadOptions(out=tmp_path / "run")

    def again(force: bool) -> None:
        forced = LoadOptions(out=options.out, force=force)
        stress(scenario, forced, lambda what: None, lambda step: None)

    again(False)
    with pytest.raises(BadRunDirectory, match="exists already"):
        again(False)
    again(True)
    (tmp_path / "run" / "dear.txt").write_text("mine")
    with pytest.raises(BadRunDirectory, match="no run of stress"):
        again(True)


def test_a_scenario_without_a_load_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(TEXT.partition("load:")[0])
    with pytest.raises(BadScenario, match="load: Expected this key"):
        stress(path, LoadOptions(out=tmp_path / "run"), lambda what: None, lambda step: None)
    assert not (tmp_path / "run").exists()


def test_a_program_that_refuses_its_job_leaves_no_folder(
    scenario: Path, tmp_path: Path, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execution, "run_program", lambda job, on_step: 2)
    options = LoadOptions(out=tmp_path / "run")
    done = stress(scenario, options, lambda what: None, lambda step: None)
    assert (done.code, done.sentence) == (2, "")
    assert not (tmp_path / "run").exists()
    assert not jobs


@pytest.mark.usefixtures("jobs")
def test_a_program_that_breaks_down_is_an_error(
    scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execution, "run_program", lambda job, on_step: 1)
    with pytest.raises(execution.StressFailed, match="nothing was measured"):
        options = LoadOptions(out=tmp_path / "run")
        stress(scenario, options, lambda what: None, lambda step: None)
