"""Findings after a run: true or not, with the figures that were measured."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from noisefloor.errors import BadScenario
from noisefloor.privacy import Claim, Guarantee, LowerBound, Neighbours
from noisefloor_sim.cli import commands
from noisefloor_sim.pipelines import BLOCKS
from noisefloor_sim.pipelines.api import Findings, Metric, NamedClaim
from noisefloor_sim.runs.answers import FindingResult, check_findings
from noisefloor_sim.runs.results import PointResult
from noisefloor_sim.scenario import Finding, expand, load_points, loads

SCENARIO = """
name: answered
seed: 3
question: Which findings are true?
days: 1
population: {users: 300, cohort: 128}
behaviour: {ads: 4}
pipelines: {clicks: {canaries: 1000}}
sweep:
  variant: [paper, corrected]
  pipelines.clicks.epsilon: [1.0, 2.0]
findings:
  - sentence: As printed {claims.clicks.*.proved} is proved of {claims.clicks.*.claimed}.
    when: claims.clicks.*.proved > claimed where variant == paper
  - sentence: No click was estimated.
    when: clicks.clicks_mean < 0
"""
BASE = loads(SCENARIO, BLOCKS)
POINTS = expand(BASE, BLOCKS)


def result(place: int, *metrics: Metric) -> PointResult:
    """Return a result whose claim proves a third more than twice its epsilon."""
    point = POINTS[place]
    epsilon = float(dict(point.settings)["pipelines.clicks.epsilon"])  # type: ignore[arg-type]
    said = Guarantee(epsilon, Neighbours.USER)
    claim = Claim(said, replace(said, epsilon=7 * epsilon / 3), LowerBound(0.66666, 0.9, 9, 9.0))
    findings = {"clicks": Findings(metrics, (NamedClaim("clicks-split", claim),))}
    return PointResult(point.id, "", 3, point.scenario.variant, findings, 0.0, 0.0)


VALUES = (1.0, 10.0, 2.0, 20.0)
"""Of the metric: epsilon 1 as printed and corrected, epsilon 2 likewise."""


def checked(sentence: str, when: str, values: tuple[float, ...] = VALUES) -> FindingResult:
    metrics = [(Metric("error_rms", one), Metric("error_relative", one / 10)) for one in values]
    results = {POINTS[at].id: result(at, *some) for at, some in enumerate(metrics)}
    (found,) = check_findings([Finding(sentence=sentence, when=when)], POINTS, results)
    return found


def test_the_points_are_in_the_order_of_the_values() -> None:
    assert [point.scenario.variant for point in POINTS] == ["paper", "corrected"] * 2


def test_figures_are_printed_from_the_least_to_the_largest_and_rounded_safely() -> None:
    found = checked(
        "Off by {clicks.error_rms}; {claims.clicks.*.proved} proved, {claims.clicks.*.audited} "
        "reached, at 1 {clicks.error_rms where pipelines.clicks.epsilon == 1}.",
        "clicks.error_rms < 15 where variant == paper",
    )
    # Seven thirds are rounded up and two thirds down.
    assert found.text == "Off by 1 to 2; 2.334 to 4.667 proved, 0.6666 reached, at 1 1 to 10."
    assert (found.is_true, found.detail) == (True, "holds at all 2")


def test_a_finding_that_is_not_true_says_so_and_where() -> None:
    found = checked("All are small: {clicks.error_rms}.", "clicks.error_rms < 15")
    assert not found.is_true
    assert found.text == "Not so: All are small: 1 to 20."
    assert found.detail.startswith("fails at 1 of 4: p003-")


def test_figures_of_one_point_are_compared_there() -> None:
    smaller = "clicks.error_relative < clicks.error_rms"
    assert checked("Yes.", smaller).is_true
    twin = checked("Yes.", smaller, (1.0, -10.0, 2.0, 20.0))
    assert not twin.is_true
    assert "(-1 against -10)" in twin.detail


def test_points_are_compared_that_agree_in_every_key_that_no_condition_names() -> None:
    when = "clicks.error_rms where variant == corrected > clicks.error_rms where variant == paper"
    # Of 2 and 10 the first is at another epsilon: it is not compared.
    found = checked("Yes.", when, (1.0, 10.0, 15.0, 20.0))
    assert (found.is_true, found.detail) == (True, "holds at all 2")
    assert not checked("Yes.", when, (1.0, 10.0, 25.0, 20.0)).is_true
    across = (
        "clicks.error_rms where variant == corrected and pipelines.clicks.epsilon == 2 > "
        "clicks.error_rms where variant == paper and pipelines.clicks.epsilon == 1"
    )
    assert checked("Yes.", across).detail == "holds at all 1"


@pytest.mark.parametrize(
    "when",
    [
        "clicks.coverage < 1",
        "clicks.coverage < clicks.error_rms",
        "clicks.coverage where variant == paper < clicks.error_rms where variant == corrected",
    ],
)
def test_a_finding_that_selects_nothing_is_not_true(when: str) -> None:
    found = checked("It is {clicks.coverage where seed == 3}.", when)
    assert (found.is_true, found.detail) == (False, "selects nothing that was measured")
    assert found.text == "Not measured: It is \N{EN DASH}."


def test_findings_are_printed_written_and_do_not_decide_the_exit_code(tmp_path: Path) -> None:
    path, out = tmp_path / "answered.yaml", tmp_path / "out"
    path.write_text(SCENARIO, encoding="utf-8")
    ran = CliRunner().invoke(commands.app, ["run", str(path), "--out", str(out)])
    assert ran.exit_code == 0, ran.output
    question, *lines = ran.stdout.splitlines()
    assert question == "Which findings are true?"
    assert lines[0] == "✓ As printed 4 to 8 is proved of 1 to 2."
    assert lines[1].startswith("✗ Not so: No click was estimated. (fails at 4 of 4: p000-")
    first, second = json.loads((out / "manifest.json").read_text())["findings"]
    assert first == {
        "sentence": "As printed 4 to 8 is proved of 1 to 2.",
        "when": "claims.clicks.*.proved > claimed where variant == paper",
        "is_true": True,
        "detail": "holds at all 2",
    }
    assert not second["is_true"]
    page = (out / "report.html").read_text()
    assert page.index("<h1>Which findings are true?</h1>") < page.index("As printed 4 to 8")
    assert "Not so: No click was estimated." in page
    again = CliRunner().invoke(commands.app, ["report", str(out)])
    assert again.stdout == ran.stdout


def test_a_finding_about_points_that_are_not_there_is_refused_unless_settings_took_them(
    tmp_path: Path,
) -> None:
    path = tmp_path / "answered.yaml"
    path.write_text(SCENARIO.replace("== paper", "== papper"), encoding="utf-8")
    with pytest.raises(BadScenario, match=r"findings\.0: Expected a condition that some point"):
        load_points(path, BLOCKS)
    path.write_text(SCENARIO, encoding="utf-8")
    assert load_points(path, BLOCKS, ["variant=corrected"]).scenario.findings
