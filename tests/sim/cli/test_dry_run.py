"""``noisefloor run --dry-run``: exit code and exact output; nothing is written, run or fetched."""

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from noisefloor_sim.cli import commands
from noisefloor_sim.pipelines import BLOCKS
from noisefloor_sim.runs.engine import Engine
from noisefloor_sim.scenario import load, scenario_hash

SCENARIO = """
name: planned
seed: 3
question: What would it cost?
days: 3
population: {users: 600}
behaviour: {ads: 4}
budget: 10
pipelines:
  clicks: {epsilon: 2.0}
sweep:
  seeds: 2
  variant: [paper, corrected]
gates:
  - claims.clicks.* holds where variant == corrected
  - claims.clicks.* overclaimed where variant == paper
"""


@pytest.fixture
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write the scenario into an empty folder, which is also where the command runs."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "planned.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


def dry_run(path: Path, *words: str) -> tuple[int, str]:
    ran = CliRunner().invoke(commands.app, ["run", str(path), "--dry-run", *words])
    return ran.exit_code, ran.stdout


def main(words: list[str], monkeypatch: pytest.MonkeyPatch) -> object:
    """Run the command line as a process would, and return its exit code."""
    monkeypatch.setattr(sys, "argv", ["noisefloor", *words])
    with pytest.raises(SystemExit) as ended:
        commands.main()
    return ended.value.code


def test_the_table_has_every_claim_once_and_nothing_is_written(scenario: Path) -> None:
    digest = scenario_hash(load(scenario, BLOCKS))[:12]
    code, said = dry_run(scenario)
    assert code == 0
    assert [line.split() for line in said.splitlines()[1:6]] == [
        "point pipeline mechanism per claimed proved verdict debited".split(),
        "variant paper clicks clicks-per-bit day 2 8 overclaimed".split(),
        "variant paper clicks whole-run run 6 24 overclaimed 6 of 10".split(),
        "variant corrected clicks clicks-one-click day 2 2 holds".split(),
        "variant corrected clicks whole-run run 6 6 holds 6 of 10".split(),
    ]
    assert [said.splitlines()[0], *said.splitlines()[6:]] == [
        f"planned (4 points; 600 users; 3 days; clicks; hash {digest}). Nothing was run.",
        "budget of a user at variant paper: 6 of 10",
        "budget of a user at variant corrected: 6 of 10",
        "frames of clicks: clicks",
    ]
    assert list(scenario.parent.iterdir()) == [scenario]


def test_no_point_is_run(scenario: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a dry run must not run a point")

    monkeypatch.setattr(Engine, "run_days", refuse)
    assert dry_run(scenario)[0] == 0


def test_a_budget_that_is_too_small_is_named(scenario: Path) -> None:
    code, said = dry_run(scenario, "--set", "budget=5", "--set", "variant=corrected")
    assert code == 0
    assert said.splitlines()[-3:] == [
        "budget of a user at all: 6 of 5, so that later releases are refused",
        "frames of clicks: clicks",
        "gate skipped: claims.clicks.* overclaimed where variant == paper (no point matches)",
    ]


def test_json_has_every_point_with_its_claims(scenario: Path) -> None:
    settings = ["variant=corrected", "seed=9"]
    code, said = dry_run(scenario, "--json", "--set", settings[0], "--seed", "9")
    found = json.loads(said)
    assert code == 0
    assert found["hash"] == scenario_hash(load(scenario, BLOCKS, settings))
    assert found["points"] == 2
    assert [point["settings"] for point in found["plan"]] == [{"seed": 9}, {"seed": 10}]
    shared = {
        "neighbours": "user",
        "claimed_delta": 0.0,
        "proved_delta": 0.0,
        "verdict": "holds",
        "budget": 10.0,
    }
    point = found["plan"][0]
    (day, run) = point["pipelines"]["clicks"]["claims"]
    proved = day.pop("proved"), run.pop("proved")
    assert 1.999999 < proved[0] <= 2.0
    assert proved[1] == pytest.approx(3 * proved[0], rel=1e-12)
    assert day == shared | {
        "mechanism": "clicks-one-click", "per": "day", "claimed": 2.0, "debited": None,
    }  # fmt: skip
    assert run == shared | {
        "mechanism": "whole-run", "per": "run", "claimed": 6.0, "debited": 6.0,
    }  # fmt: skip
    assert point["pipelines"]["clicks"]["frames"] == ["clicks"]
    assert (point["budget"], point["debited"], point["is_debit_known"]) == (10.0, 6.0, True)


def test_what_is_missing_leaves_claims_unknown_and_is_named(
    scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOISEFLOOR_DATA", str(tmp_path / "none"))
    head = SCENARIO.partition("behaviour:")[0]
    text = head + "budget: 10\npipelines: {collection: {source: ionosphere}}\n"
    scenario.write_text(text, encoding="utf-8")
    code, said = dry_run(scenario)
    assert code == 0
    assert said.splitlines()[1:] == [
        "claims of collection are unknown: Data set 'ionosphere' is not in the cache "
        f"({tmp_path / 'none'}). Get it by: noisefloor data fetch ionosphere",
        "data sets needed: ionosphere",
        "needs ionosphere, which is not here: noisefloor data fetch ionosphere",
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--dry-run", "--set", "days=0"], "days: Expected >= 1, got 0."),
        (["--dry-run", "--set", "variant=papper"], "variant: Expected 'paper' or 'corrected'"),
        (["--json"], "Expected json=True only with --dry-run; a run writes privacy.json."),
    ],
)
def test_bad_input_ends_with_code_two_and_writes_nothing(
    words: list[str],
    message: str,
    scenario: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["run", str(scenario), *words], monkeypatch) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert message in said.err
    assert list(scenario.parent.iterdir()) == [scenario]


def test_settings_that_do_not_go_together_are_refused_as_a_run_refuses_them(
    scenario: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = SCENARIO.partition("pipelines:")[0] + "pipelines: {ads: {training: {dimension: 9}}}\n"
    scenario.write_text(text, encoding="utf-8")
    codes = [main(["run", str(scenario), *words], monkeypatch) for words in ([], ["--dry-run"])]
    run, dry = capsys.readouterr().err.splitlines()
    assert codes == [2, 2]
    assert run == dry
    assert "pipelines.ads.training.dimension" in dry
