"""Runs: the same bytes for any number of workers, consistent directories, gates, bad input."""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from noisefloor.errors import BadParameter, BadRunDirectory
from noisefloor_sim.cli import commands, run_commands
from noisefloor_sim.pipelines import BLOCKS
from noisefloor_sim.runs.results import RunDirectory
from noisefloor_sim.runs.tables import COLUMNS
from noisefloor_sim.scenario import expand, loads

SCENARIO = """
name: sweep
seed: 3
question: Does the number of workers matter?
days: 2
population: {users: 600, cohort: 128}
behaviour: {ads: 4}
pipelines: {clicks: {canaries: 1000}}
sweep:
  seeds: 2
  variant: [paper, corrected]
gates:
  - claims.clicks.* holds where variant == corrected
"""
RESULTS = ("metrics.csv", "metrics.parquet", "privacy.json", "scenario.yaml")


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "sweep.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


def run(
    scenario: Path, out: Path, jobs: int = 1, *, force: bool = False, resume: bool = False
) -> int:
    return run_commands.run(
        scenario, settings=[], seed=None, out=out, jobs=jobs, force=force, resume=resume
    )


def noisefloor(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Call the command line as its process does, in this one: that saves loading everything."""
    out, errors = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as ended:
        patch.setattr(sys, "argv", ["noisefloor", *map(str, words)])
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            commands.main()
    code = ended.value.code
    assert isinstance(code, int)
    return subprocess.CompletedProcess(words, code, out.getvalue(), errors.getvalue())


@pytest.mark.slow
def test_one_worker_and_two_write_the_same_bytes(scenario: Path, tmp_path: Path) -> None:
    assert run(scenario, tmp_path / "one", jobs=1) == 0
    assert run(scenario, tmp_path / "two", jobs=2) == 0
    for name in RESULTS:
        one, two = (tmp_path / folder / name for folder in ("one", "two"))
        assert one.read_bytes() == two.read_bytes(), name


def test_the_directory_holds_what_is_promised(scenario: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(scenario, out)
    table = pq.read_table(out / "metrics.parquet")
    assert tuple(table.column_names) == COLUMNS  # seed and variant, which are swept, are there
    assert table.num_rows == len((out / "metrics.csv").read_text().splitlines()) - 1
    claims = json.loads((out / "privacy.json").read_text())
    assert len(claims) == 8  # of the report and of the heaviest user, at each point
    assert {claim["verdict"] for claim in claims} == {"holds", "overclaimed"}
    card = json.loads((out / "manifest.json").read_text())
    assert card["points"] == 4
    assert card["seeds"] == [3, 4]
    assert "<html" in (out / "report.html").read_text()
    assert not list(out.rglob(".*.part"))


def test_a_value_set_on_a_swept_key_is_what_runs(scenario: Path, tmp_path: Path) -> None:
    out, words = tmp_path / "out", ["--set", "variant=corrected", "--set", "sweep.seeds=1"]
    ran = CliRunner().invoke(commands.app, ["run", str(scenario), "--out", str(out), *words])
    assert ran.exit_code == 0, ran.output
    claims = json.loads((out / "privacy.json").read_text())
    assert {claim["variant"] for claim in claims} == {"corrected"}
    assert [claim["pipeline"] for claim in claims] == ["clicks", "world"]
    text = (out / "scenario.yaml").read_text()
    assert "\nvariant: corrected\n" in text
    assert "  variant:" not in text  # no axis is left of it
    checked = CliRunner().invoke(commands.app, ["validate", str(scenario), *words])
    assert "valid (1 point;" in checked.output


def test_an_interrupted_run_goes_on_where_it_stopped(
    scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(scenario, tmp_path / "whole")
    out = tmp_path / "out"
    kept: list[object] = []
    write_point = RunDirectory.write_point

    def interrupted(self: RunDirectory, result: object) -> None:
        if len(kept) == 2:
            raise KeyboardInterrupt
        kept.append(result)
        write_point(self, result)  # type: ignore[arg-type]  # handed on as it came

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(RunDirectory, "write_point", interrupted)
        run(scenario, out)
    assert len(list((out / "points").iterdir())) == 2
    assert not (out / "metrics.csv").exists()
    with pytest.raises(BadRunDirectory, match="--resume"):
        run_commands.report(out)
    run(scenario, out, resume=True)
    for name in RESULTS:
        assert (out / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.slow
def test_control_c_leaves_a_directory_that_can_be_resumed(scenario: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = [
        sys.executable,
        "-m",
        "noisefloor_sim.cli",
        "run",
        str(scenario),
        "--out",
        str(out),
    ]
    more = ["--jobs", "2", "--set", "sweep.seeds=40"]
    # A shell that runs tests in the background hands on an ignored SIGINT: take it back.
    running = subprocess.Popen(
        [*words, *more],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    # Bounded: a minute for the first point to appear, then a minute to stop.
    for _ in range(600):
        if any((out / "points").glob("p*.json")):
            break
        time.sleep(0.1)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 130
    assert said.splitlines()[-1].endswith("add --resume.")
    kept = len(list((out / "points").glob("p*.json")))
    assert 1 <= kept < 80
    assert not (out / "metrics.csv").exists()
    for path in (out / "points").glob("p*.json"):
        assert json.loads(path.read_text())["id"] == path.stem


def test_an_existing_run_is_not_overwritten_unasked(scenario: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(scenario, out)
    with pytest.raises(BadRunDirectory, match="exists already"):
        run(scenario, out)
    assert run(scenario, out, force=True) == 0
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "diary.txt").write_text("dear")
    with pytest.raises(BadRunDirectory, match="not a run directory"):
        run(scenario, precious, force=True)
    assert (precious / "diary.txt").read_text() == "dear"


def test_another_scenario_does_not_resume_a_run(scenario: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(scenario, out)
    scenario.write_text(SCENARIO.replace("seed: 3", "seed: 5"), encoding="utf-8")
    with pytest.raises(BadRunDirectory, match="another scenario"):
        run(scenario, out, resume=True)


def test_a_failed_gate_is_exit_code_one(scenario: Path, tmp_path: Path) -> None:
    text = SCENARIO.replace("holds where variant == corrected", "holds")
    scenario.write_text(text, encoding="utf-8")
    assert run(scenario, tmp_path / "out") == 1
    gates = json.loads((tmp_path / "out" / "manifest.json").read_text())["gates"]
    assert gates[0]["passed"] is False


def test_a_gate_on_a_metric_that_was_not_measured_fails(scenario: Path, tmp_path: Path) -> None:
    # The adversary links frames here, so that the order of rows is not attacked.
    gate = "clicks.attack.row_order.success < 1 where"
    text = SCENARIO.replace("claims.clicks.* holds where", gate)
    scenario.write_text(text, encoding="utf-8")
    assert run(scenario, tmp_path / "out") == 1


@pytest.mark.parametrize("damage", ["remove", "garble", "truncate"])
def test_a_damaged_run_is_refused_in_one_line(scenario: Path, tmp_path: Path, damage: str) -> None:
    out = tmp_path / "out"
    run(scenario, out)
    point = next((out / "points").iterdir())
    if damage == "remove":
        point.unlink()
    else:
        whole = point.read_text()
        point.write_text(whole[: len(whole) // 2] if damage == "truncate" else "{}")
    done = noisefloor("report", out)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert point.name in done.stderr


def test_bad_input_is_exit_code_two_and_writes_nothing(scenario: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for words, message in [
        (["run", tmp_path / "missing.yaml", "--out", out], "missing.yaml"),
        (["run", scenario, "--set", "population.users=1000000000000", "--out", out], "users"),
        (["run", scenario, "--set", "pipelines.clicks.epsilon=0", "--out", out], "epsilon"),
        (["run", scenario, "--set", "populaton.users=5", "--out", out], "population"),
        (["report", tmp_path / "nothing"], "nothing"),
        (["validate", tmp_path], "sweep"),
    ]:
        done = noisefloor(*map(str, words))
        assert done.returncode == 2, words
        assert done.stdout == ""
        if message != "sweep":
            assert message in done.stderr
        assert "Traceback" not in done.stderr
        assert not out.exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_place_that_cannot_be_written_is_refused(scenario: Path, tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    with pytest.raises(BadRunDirectory, match="cannot be written"):
        run(scenario, locked / "out")


def test_a_file_in_the_way_is_refused(scenario: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadRunDirectory, match="cannot be written"):
        run(scenario, tmp_path / "file" / "out")


def test_explain_replays_a_user(
    scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(scenario, tmp_path / "out")
    capsys.readouterr()
    assert run_commands.explain(tmp_path / "out", 5) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert lines[1].startswith("  day 0: ")
    assert lines[0].startswith("user 5 at p000-")
    done = noisefloor("explain", tmp_path / "out", "--user", "600")
    assert done.returncode == 2
    assert "Expected user=600 in [0, 599]." in done.stderr


def test_explain_replays_a_user_at_the_point_that_is_named(
    scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = SCENARIO.replace("variant: [paper, corrected]", "pipelines.clicks.epsilon: [1, 4]")
    scenario.write_text(text, encoding="utf-8")
    run(scenario, tmp_path / "out")
    ids = sorted(path.stem for path in (tmp_path / "out" / "points").iterdir())
    outputs = []
    for point in (ids[0], ids[2], "p002"):
        capsys.readouterr()
        assert run_commands.explain(tmp_path / "out", 5, point) == 0
        outputs.append(capsys.readouterr().out)
    assert [lines.splitlines()[0] for lines in outputs] == [
        f"user 5 at {ids[0]}",
        f"user 5 at {ids[2]}",
        f"user 5 at {ids[2]}",
    ]
    # The budget is spent at the epsilon of the point.
    assert "; 1 spent, 999.000000 left" in outputs[0]
    assert "; 4 spent, 996.000000 left" in outputs[1]
    assert outputs[1] == outputs[2]
    done = noisefloor("explain", tmp_path / "out", "--user", "5", "--point", "p009")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "noisefloor: Expected point='p009' to be the id of one point, or how it begins: "
        f"{', '.join(ids)}.\n"
    )


@pytest.mark.parametrize("given", ["", "p", "p00"])
def test_the_beginning_of_many_ids_is_refused_with_some_of_them(given: str) -> None:
    swept = SCENARIO.replace("seeds: 2", "seeds: 6")
    points = expand(loads(swept, BLOCKS), BLOCKS)
    with pytest.raises(BadParameter) as refused:
        run_commands._point(points, given)
    listed = ", ".join(point.id for point in points[:8])
    more = 2 if given == "p00" else 4
    assert str(refused.value) == (
        f"Expected point={given!r} to be the id of one point, or how it begins: {listed} and "
        f"{more} more."
    )


def test_the_shipped_scenarios_are_valid() -> None:
    for path in sorted(Path(__file__).parents[3].glob("scenarios/*.yaml")):
        done = noisefloor("validate", path)
        assert done.returncode == 0, done.stderr
        assert path.read_text(encoding="utf-8").startswith("# yaml-language-server:")
