"""``noisefloor new``: what it writes is valid, commented, and never replaces anything."""

import json
from pathlib import Path
from typing import Any

import pytest

from noisefloor.errors import BadParameter, BadScenario
from noisefloor_sim.cli import new_scenario
from noisefloor_sim.pipelines import BLOCKS
from noisefloor_sim.scenario import load, loads, schema_text, shipped_scenarios
from scenario_gates import failed_gates

SCHEMA: dict[str, Any] = json.loads(schema_text(BLOCKS))  # Any: it is JSON


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_new_scenario_is_written_and_says_what_to_do_next(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert new_scenario.new("mine", source=None) == 0
    said = "mine.yaml: written. Check it: noisefloor validate mine.yaml. "
    assert capsys.readouterr().out == said + "Run it: noisefloor run mine.yaml.\n"
    assert load("mine.yaml", BLOCKS).name == "mine"


def test_a_small_one_runs_and_keeps_its_gate() -> None:
    new_scenario.new("mine", source=None)
    small = ["population.users=300", "pipelines.clicks.canaries=1000", "days=1"]
    assert failed_gates(load("mine.yaml", BLOCKS, small)) == []


def test_every_key_stands_below_its_meaning_and_default() -> None:
    lines = new_scenario.commented("mine").splitlines()
    for key in ("seed", "days", "variant", "budget", "gates", "pipelines"):
        place = next(at for at, line in enumerate(lines) if line.startswith(f"{key}:"))
        start = max(at for at in range(place) if not lines[at])
        comment = " ".join(line.removeprefix("# ") for line in lines[start + 1 : place])
        assert comment.startswith(SCHEMA["properties"][key]["description"])
    assert "# How long the world runs. Default: 7." in lines
    users = lines.index("  users: 2000")
    assert lines[users - 1].endswith("Default: 10000.")
    assert max(map(len, lines)) <= 99


def test_choices_are_listed() -> None:
    assert 'One of paper, corrected. Default: "corrected".' in new_scenario.commented("mine")


def test_a_section_that_may_be_left_out_has_its_keys_explained_too() -> None:
    inner = {"properties": {"ads": {"description": "How many."}}}
    outer = {"anyOf": [{"$ref": "#/$defs/Inner"}, {"type": "null"}]}
    assert new_scenario._section(outer, {"$defs": {"Inner": inner}}) == inner


@pytest.mark.parametrize("name", ["no", "12", "1e3", "null"])
def test_a_name_that_looks_like_something_else_stays_a_text(name: str) -> None:
    for source in (None, "row-order"):
        assert loads(_text(name, source), BLOCKS).name == name


def _text(name: str, source: str | None) -> str:
    return new_scenario.commented(name) if source is None else new_scenario.copied(name, source)


@pytest.mark.parametrize("source", shipped_scenarios())
def test_a_copy_differs_by_name_question_seed_and_first_line_alone(source: str) -> None:
    before = shipped_scenarios()[source].read_text(encoding="utf-8").splitlines()
    after = new_scenario.copied("mine", source).splitlines()
    pairs = zip(before, after, strict=True)
    changed = [new for old, new in pairs if old != new]
    shipped, own = load(shipped_scenarios()[source], BLOCKS), loads("\n".join(after), BLOCKS)
    assert changed == [
        f"# Copied from the shipped scenario {source}.",
        f"# Seed: {shipped.seed + 1}",
        'name: "mine"',
        f"question: {shipped.question} (From {source}.)",
        f"seed: {shipped.seed + 1}",
    ]
    assert (own.name, own.seed) == ("mine", shipped.seed + 1)
    same = {"name": shipped.name, "question": shipped.question, "seed": shipped.seed}
    assert own.model_copy(update=same) == shipped


def test_an_existing_file_is_left_as_it_is() -> None:
    Path("mine.yaml").write_text("dear\n", encoding="utf-8")
    with pytest.raises(BadScenario, match="Exists already and is left as it is"):
        new_scenario.new("mine", source="quickstart")
    assert Path("mine.yaml").read_text(encoding="utf-8") == "dear\n"


@pytest.mark.parametrize("name", ["Mine", "mine.yaml", "../mine", "", "a" * 65])
def test_a_name_that_no_scenario_may_have_is_refused_and_nothing_written(name: str) -> None:
    with pytest.raises(BadParameter, match="small letters, digits and hyphens"):
        new_scenario.new(name, source=None)
    assert list(Path().iterdir()) == []


def test_an_unknown_source_is_refused_with_near_names_and_nothing_written() -> None:
    with pytest.raises(BadScenario, match="Did you mean quickstart"):
        new_scenario.new("mine", source="quikstart")
    assert list(Path().iterdir()) == []
