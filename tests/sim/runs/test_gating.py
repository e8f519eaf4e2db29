"""A gate is skipped if settings took its points away, and refused if it never had any."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from noisefloor.errors import BadScenario
from noisefloor_sim.cli import commands
from noisefloor_sim.pipelines import BLOCKS
from noisefloor_sim.pipelines.api import Findings, Metric
from noisefloor_sim.runs.gating import check_gate, check_gates, unseen_metrics
from noisefloor_sim.runs.results import PointResult
from noisefloor_sim.scenario import load_points, parse_gate
from scenario_gates import uneven_secrets
from text_worlds import texts_world

SCENARIO = """
name: gated
seed: 3
question: Which gates are checked?
days: 1
population: {users: 300, cohort: 128}
behaviour: {ads: 4}
pipelines: {clicks: {canaries: 1000}}
sweep: {variant: [paper, corrected]}
gates:
  - claims.clicks.* holds where variant == corrected
  - claims.clicks.* overclaimed where variant == paper
"""
RISES = "clicks.* rises over pipelines.clicks.epsilon"
HOLDS, OVERCLAIMED = (
    "claims.clicks.* holds where variant == corrected",
    "claims.clicks.* overclaimed where variant == paper",
)


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "gated.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


def test_a_gate_on_an_axis_that_was_replaced_is_skipped(scenario: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["run", str(scenario), "--out", str(out), "--set", "variant=corrected"]
    ran = CliRunner().invoke(commands.app, words)
    assert ran.exit_code == 0, ran.output
    gates = [line for line in ran.stdout.splitlines() if line.startswith("gate ")]
    assert gates == [
        f"gate passed: {HOLDS} (holds at all 1)",
        f"gate skipped: {OVERCLAIMED} (no point matches)",
    ]
    # It did not pass either: nothing was shown.
    assert json.loads((out / "manifest.json").read_text())["gates"] == [
        {"gate": HOLDS, "passed": True, "detail": "holds at all 1", "skipped": False},
        {"gate": OVERCLAIMED, "passed": False, "detail": "no point matches", "skipped": True},
    ]
    page = (out / "report.html").read_text()
    assert f"<code>{OVERCLAIMED}</code>" in page
    assert "skipped: no point matches" in page
    assert f"<code>{HOLDS}</code>" in page  # gates that passed are on the page, too
    assert "passed: holds at all 1" in page
    again = CliRunner().invoke(commands.app, ["report", str(out)])
    assert again.exit_code == 0
    assert again.stdout == ran.stdout


def test_without_settings_a_gate_that_no_point_matches_is_refused(scenario: Path) -> None:
    text = SCENARIO.replace("sweep: {variant: [paper, corrected]}", "variant: corrected")
    scenario.write_text(text, encoding="utf-8")
    with pytest.raises(BadScenario) as refused:
        load_points(scenario, BLOCKS)
    assert str(refused.value) == (
        f"{scenario}:12: gates.1: Expected a condition that some point of the sweep meets."
    )


def test_a_gate_that_no_point_ever_matches_is_refused_with_settings_too(scenario: Path) -> None:
    scenario.write_text(SCENARIO.replace("== paper", "== papper"), encoding="utf-8")
    with pytest.raises(BadScenario, match=r"gates\.1: Expected a condition that some point"):
        load_points(scenario, BLOCKS, ["variant=corrected"])


def test_only_gates_about_points_that_are_gone_are_skipped(scenario: Path) -> None:
    assert load_points(scenario, BLOCKS).skipped == ()
    assert load_points(scenario, BLOCKS, ["days=2"]).skipped == ()
    assert load_points(scenario, BLOCKS, ["variant=corrected"]).skipped == (OVERCLAIMED,)
    assert load_points(scenario, BLOCKS, ["sweep.variant=[paper]"]).skipped == (HOLDS,)


def test_a_file_that_settings_complete_has_no_points_to_compare_with(scenario: Path) -> None:
    scenario.write_text(SCENARIO.replace("seed: 3\n", ""), encoding="utf-8")
    loaded = load_points(scenario, BLOCKS, ["seed=4", "variant=paper"])
    assert loaded.skipped == (HOLDS,)


def curve(*values: tuple[float, float, float] | None) -> dict[str, PointResult]:
    """Return points at epsilon 1, 2, ... with a value and its interval, or without either."""
    return {
        f"p{place}": PointResult(
            f"p{place}",
            "",
            1,
            "corrected",
            {"clicks": Findings(() if one is None else (Metric("right", *one),), ())},
            0.0,
            0.0,
        )
        for place, one in enumerate(values)
    }


def test_a_gate_on_what_services_hand_out_to_nobody_is_skipped(scenario: Path) -> None:
    points = load_points(scenario, BLOCKS).points
    (measured,) = curve((1.0, math.nan, math.nan)).values()
    results = {one.id: replace(measured, id=one.id) for one in points}
    gates = ["clicks.noise.found == 1", "clicks.right == 1", "clicks.wrong == 1"]
    found = check_gates(gates, points, results, unseen=("clicks.noise.*", "clicks.right"))
    assert [(one.passed, one.skipped) for one in found] == [
        (False, True),
        (True, False),  # it was measured: the gate is checked
        (False, False),  # it is measured nowhere: a misspelt name is no excuse
    ]
    assert found[0].detail == "running services hand out no noise"
    assert not check_gates(gates, points, results)[0].skipped


def test_what_is_unseen_follows_from_the_bus() -> None:
    blocks = texts_world().pipelines
    assert unseen_metrics(blocks, "memory") == ()
    assert unseen_metrics(blocks, "services") == ("texts.residuals.*", "texts.counting.*")


@pytest.mark.parametrize(
    ("values", "passed", "detail"),
    [
        ([(0.5, 0.4, 0.6), (0.6, 0.5, 0.7)], True, "holds at all 1"),
        ([(0.5, 0.4, 0.6), (0.45, 0.35, 0.55)], True, "holds at all 1"),  # within intervals
        (
            [(0.5, 0.4, 0.6), (0.3, 0.2, 0.39)],
            False,
            "fails at 1 of 1: p1 (clicks.right: 0.3)",
        ),
        (
            # Neighbours overlap; the ends of the curve do not.
            [(0.5, 0.45, 0.55), (0.45, 0.4, 0.5), (0.4, 0.35, 0.44)],
            False,
            "fails at 1 of 2: p2 (clicks.right: 0.4)",
        ),
        ([(0.5, math.nan, math.nan), (0.4, math.nan, math.nan)], False, "fails at 1 of 1: p1 ("),
        ([(0.5, 0.4, 0.6), None], False, "fails at 1 of 1: p1 (clicks.right: not measured)"),
        ([None, None], False, "selects nothing that was measured"),
    ],
)
def test_a_metric_rises_unless_it_falls_by_more_than_its_intervals(
    values: list[tuple[float, float, float] | None], passed: bool, detail: str
) -> None:
    results = curve(*values)
    data = {
        name: {"pipelines": {"clicks": {"epsilon": place + 1.0}}}
        for place, name in enumerate(results)
    }
    found = check_gate(RISES, parse_gate(RISES), data, results)
    assert found.passed is passed
    assert found.detail.startswith(detail)


def test_a_trend_is_refused_without_a_sweep_and_skipped_where_settings_took_it(
    scenario: Path,
) -> None:
    text = SCENARIO.replace("sweep: {", "sweep: {pipelines.clicks.epsilon: [1.0, 2.0], ")
    scenario.write_text(f"{text}  - {RISES}\n", encoding="utf-8")
    assert load_points(scenario, BLOCKS).skipped == ()
    assert load_points(scenario, BLOCKS, ["pipelines.clicks.epsilon=1"]).skipped == (RISES,)
    scenario.write_text(f"{SCENARIO}  - {RISES}\n", encoding="utf-8")
    with pytest.raises(BadScenario, match=r"gates\.2: Expected pipelines\.clicks\.epsilon to be"):
        load_points(scenario, BLOCKS)


@pytest.mark.parametrize(
    ("priors", "wrong"),
    [
        ((0.5, 0.5, 0.5), 0),
        ((0.5, 0.17, 0.08), 1),
        ((0.5, 0.5, None), 1),  # no point there
    ],
)
def test_a_secret_that_changes_along_epsilon_is_found(
    priors: tuple[float | None, ...], wrong: int
) -> None:
    results = {
        name: replace(
            one,
            findings={
                "ads": Findings(
                    () if prior is None else (Metric("attack.favourite.prior", prior),), ()
                )
            },
        )
        for (name, one), prior in zip(curve(*[None] * len(priors)).items(), priors, strict=True)
    }
    data = {
        name: {"pipelines": {"ads": {"epsilon": place + 1.0}}}
        for place, name in enumerate(results)
    }
    assert len(uneven_secrets(data, results)) == wrong
