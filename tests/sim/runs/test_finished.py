"""``import noisefloor_sim as nf``: the same runs as the commands, read in Python."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import noisefloor_sim as nf
from noisefloor.errors import BadRunDirectory, BadScenario
from noisefloor_sim.runs.results import PointResult, RunDirectory

TINY: dict[str, object] = {
    "population.users": 128,
    "population.cohort": 64,
    "behaviour.ads": 4,
    "days": 1,
    "pipelines.clicks.canaries": 1000,
    "sweep.seeds": 1,
    "pipelines.clicks.epsilon": np.array([1.0, 4.0]),
    "gates": ["claims.clicks.* holds where variant == corrected"],
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> nf.FinishedRun:
    return nf.run("quickstart", settings=TINY, seed=5, out=tmp_path_factory.mktemp("nf") / "out")


def test_a_run_has_its_metrics_claims_and_verdict(finished: nf.FinishedRun) -> None:
    assert finished.passed
    assert finished.run.card["seeds"] == [5]
    assert finished.report.is_file()
    page = finished.report.read_text(encoding="utf-8")
    findings = [found.text for found in finished.run.findings]
    assert len(findings) == 4
    assert finished.summary.startswith(" ".join(findings))
    verdict = finished.summary.removeprefix(" ".join(findings)).strip()
    assert all(text in page for text in (*findings, verdict))
    # Of the report and of the heaviest user, at each point; corrected, of dropped clicks too.
    assert len(finished.claims) == 10
    with (finished.folder / "metrics.csv").open(newline="") as file:
        written = list(csv.DictReader(file))
    rows = finished.rows()
    assert finished.metrics.num_rows == len(rows) == len(written)
    assert [row["metric"] for row in rows] == [row["metric"] for row in written]


def test_a_loaded_run_is_the_run_that_was_made(finished: nf.FinishedRun) -> None:
    again = nf.load(str(finished.folder))
    assert again.folder == finished.folder
    assert again.run.results == finished.run.results
    assert again.claims == finished.claims
    assert again.summary == finished.summary


def test_a_run_that_is_there_is_taken_up_and_force_makes_it_again(
    finished: nf.FinishedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    write_point = RunDirectory.write_point

    def counted(self: RunDirectory, result: PointResult) -> None:
        written.append(result.id)
        write_point(self, result)

    monkeypatch.setattr(RunDirectory, "write_point", counted)
    again = nf.run("quickstart", settings=TINY, seed=5, out=finished.folder)
    assert written == []
    assert again.claims == finished.claims
    nf.run("quickstart", settings=TINY, seed=5, out=finished.folder, force=True)
    assert len(written) == 4


def test_a_folder_of_another_scenario_is_never_replaced_unasked(
    finished: nf.FinishedRun,
) -> None:
    before = (finished.folder / "scenario.yaml").read_bytes()
    with pytest.raises(BadRunDirectory, match="holds a run of another scenario"):
        nf.run("row-order", out=finished.folder)
    assert (finished.folder / "scenario.yaml").read_bytes() == before


def test_settings_are_checked_like_those_of_the_command(tmp_path: Path) -> None:
    with pytest.raises(BadScenario, match="Did you mean 'users'"):
        nf.run("quickstart", settings={"population.user": 3}, out=tmp_path / "out")
    with pytest.raises(TypeError, match="got object"):
        nf.run("quickstart", settings={"name": object()}, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_data_frame_needs_pandas_and_says_so(
    finished: nf.FinishedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ModuleNotFoundError, match="pip install pandas"):
        finished.to_pandas()


def test_a_data_frame_has_every_metric(finished: nf.FinishedRun) -> None:
    pytest.importorskip("pandas")
    assert list(finished.to_pandas()["metric"]) == [row["metric"] for row in finished.rows()]


def test_the_package_imports_nothing_before_it_is_used() -> None:
    code = (
        "import sys, json, noisefloor_sim; "
        "print(json.dumps(sorted(it for it in sys.modules if it.startswith('noisefloor'))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == ["noisefloor_sim"]


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'walk'"):
        getattr(nf, "walk")  # noqa: B009  # mypy knows that there is none
