"""``noisefloor validate``: exit code and exact output, as lines and as JSON."""

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from noisefloor_sim.cli import commands
from noisefloor_sim.pipelines import BLOCKS
from noisefloor_sim.scenario import load, scenario_hash
from own_tables import write_visits

SCENARIO = """
name: checked
seed: 3
question: Is it valid?
days: 2
population: {users: 600}
pipelines:
  clicks: {}
sweep:
  variant: [paper, corrected]
gates:
  - claims.clicks.* holds where variant == corrected
  - claims.clicks.* overclaimed where variant == paper
"""
SKIPPED = "claims.clicks.* overclaimed where variant == paper"
SUMMARY = ("points", "users", "days", "pipelines", "hash", "needs", "skipped_gates")


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "checked.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


def validate(path: Path, *words: str) -> tuple[int, str]:
    ran = CliRunner().invoke(commands.app, ["validate", str(path), *words])
    return ran.exit_code, ran.stdout


def pipelines(path: Path, block: str) -> Path:
    """Replace everything from the pipelines on."""
    head = SCENARIO.partition("pipelines:")[0]
    path.write_text(f"{head}pipelines:\n  {block}\n", encoding="utf-8")
    return path


def test_a_valid_file_is_one_line(scenario: Path) -> None:
    digest = scenario_hash(load(scenario, BLOCKS))[:12]
    assert validate(scenario) == (
        0,
        f"{scenario}: valid (2 points; 600 users; 2 days; clicks; hash {digest}).\n",
    )


def test_settings_are_checked_as_a_run_would_take_them(scenario: Path) -> None:
    code, said = validate(scenario, "--set", "variant=corrected", "--set", "days=3")
    assert code == 0
    first, second = said.splitlines()
    assert first.startswith(f"{scenario}: valid (1 point; 600 users; 3 days; clicks; hash ")
    assert second == f"gate skipped: {SKIPPED} (no point matches)"


def test_json_holds_what_would_run(scenario: Path) -> None:
    settings = "variant=corrected"
    code, said = validate(scenario, "--json", "--set", settings)
    assert code == 0
    assert json.loads(said) == {
        "valid": True,
        "errors": [],
        "points": 1,
        "users": 600,
        "days": 2,
        "pipelines": ["clicks"],
        "hash": scenario_hash(load(scenario, BLOCKS, [settings])),
        "needs": {"extras": [], "data_sets": [], "missing": {}},
        "skipped_gates": [SKIPPED],
    }


def test_json_lists_every_error_and_ends_with_code_two(scenario: Path) -> None:
    text = SCENARIO.replace("days: 2", "days: 0").replace("seed: 3", "seed: -1")
    scenario.write_text(text, encoding="utf-8")
    code, said = validate(scenario, "--json")
    found = json.loads(said)
    assert code == 2
    assert found["valid"] is False
    assert [(one["file"], one["key"], one["line"]) for one in found["errors"]] == [
        (str(scenario), "seed", 3),
        (str(scenario), "days", 5),
    ]
    assert found["errors"][1]["rule"] == "Expected >= 1, got 0. How long the world runs."
    assert {name: found[name] for name in SUMMARY} == dict.fromkeys(SUMMARY)


def test_json_names_a_gate_on_a_metric_that_does_not_exist(scenario: Path) -> None:
    scenario.write_text(SCENARIO + "  - clicks.eror_rms < 1\n", encoding="utf-8")
    code, said = validate(scenario, "--json")
    (error,) = json.loads(said)["errors"]
    assert code == 2
    assert (error["key"], error["line"]) == ("gates.2", 14)
    assert error["rule"].startswith("Unknown metric 'clicks.eror_rms'. Near names: clicks.error_r")


@pytest.mark.parametrize(
    ("block", "missing", "key", "rule"),
    [
        (
            "collection: {{source: {0}/own.csv, schema_file: {0}/own.yaml}}",
            "own.yaml",
            "pipelines.collection.schema_file",
            "{}: Cannot be read: No such file or directory.",
        ),
        (
            "models: {{source: {0}/own.csv, label: country}}",
            "own.csv",
            "pipelines.models.source",
            "{}: Expected a file, there is none of that name.",
        ),
    ],
)
def test_a_file_that_is_named_and_missing_is_an_error(
    block: str, missing: str, key: str, rule: str, scenario: Path, tmp_path: Path
) -> None:
    code, said = validate(pipelines(scenario, block.format(tmp_path)), "--json")
    (error,) = json.loads(said)["errors"]
    assert code == 2
    assert (error["key"], error["line"]) == (key, 8)
    assert error["rule"] == rule.format(tmp_path / missing)


def test_a_table_without_its_file_or_label_is_an_error_and_a_whole_one_is_valid(
    scenario: Path, tmp_path: Path
) -> None:
    table = write_visits(tmp_path)
    block = f"models: {{source: {table}, label: country, method: plain}}"
    assert validate(pipelines(scenario, block))[0] == 0
    code, said = validate(pipelines(scenario, block.replace("country", "city")), "--json")
    (error,) = json.loads(said)["errors"]
    assert (code, error["key"]) == (2, "pipelines.models.source")
    assert error["rule"] == f"{table}: Expected label to name one of its columns, country, age."
    gone = write_visits(tmp_path, name="gone")
    gone.unlink()
    code, said = validate(pipelines(scenario, block.replace(str(table), str(gone))), "--json")
    (error,) = json.loads(said)["errors"]
    assert (code, error["key"]) == (2, "pipelines.models.source")
    assert error["rule"] == f"{gone}: Expected a file, there is none of that name."


def test_what_is_missing_is_named_with_the_command_for_it(
    scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setenv("NOISEFLOOR_DATA", str(tmp_path / "none"))
    path = pipelines(scenario, "collection: {source: ionosphere, method: unified}")
    code, said = validate(path)
    assert code == 0
    assert said.splitlines()[1:] == [
        "needs collection, which is not here: pip install 'noisefloor[collection]'",
        "needs ionosphere, which is not here: noisefloor data fetch ionosphere",
    ]
    assert json.loads(validate(path, "--json")[1])["needs"] == {
        "extras": ["collection"],
        "data_sets": ["ionosphere"],
        "missing": {
            "collection": "pip install 'noisefloor[collection]'",
            "ionosphere": "noisefloor data fetch ionosphere",
        },
    }
