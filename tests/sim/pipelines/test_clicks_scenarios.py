"""The shipped scenarios on clicks: small ones keep their gates, findings and captions."""

from dataclasses import replace
from pathlib import Path

import pytest

from noisefloor_sim.pipelines import BLOCKS
from noisefloor_sim.report import Curve, Plot, Reading, readings
from noisefloor_sim.runs import Run, page_of
from noisefloor_sim.runs.answers import check_findings
from noisefloor_sim.runs.gating import check_gates
from noisefloor_sim.scenario import load, shipped_scenarios
from page_sentences import false_captions, false_sentences
from scenario_gates import failed_gates, run_here

SMALL = ("population.users=1000", "population.cohort=512", "pipelines.clicks.canaries=4000")
FEWER = {
    "quickstart": (
        *("sweep.seeds=1", "sweep.pipelines.clicks.epsilon=[1.0, 4.0]"),
        "pipelines.clicks.canaries=10000",
    ),
    "clicks-display": ("sweep.pipelines.clicks.epsilon=[1.0, 4.0, 8.0]",),
}
"""Shorter sweeps, where the shipped ones are long; as many canaries as the audits need."""

BY_SIZE = ("clicks.error_relative <", "clicks.error_relative.gap <")
"""Gates and findings that need as many people as the file has."""

NAMES = ("quickstart", "clicks-display", "clicks-longitudinal", "row-order")


def small(name: str) -> Path:
    return shipped_scenarios()[name]


def test_every_shipped_world_with_ads_states_its_click_rate() -> None:
    for name, path in shipped_scenarios().items():
        points = load(path, BLOCKS)
        text = path.read_text(encoding="utf-8")
        assert (points.behaviour is not None) is ("\n# Click rate: " in text), name


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_small_one_keeps_the_gates_that_do_not_depend_on_size(name: str) -> None:
    scenario = load(small(name), BLOCKS, [*SMALL, *FEWER.get(name, ())])
    assert failed_gates(scenario, leaving_out=BY_SIZE) == []


def test_every_shipped_scenario_answers_its_question_with_two_findings_or_more() -> None:
    for path in shipped_scenarios().values():
        findings = load(path, BLOCKS).findings
        assert 2 <= len(findings) <= 5, path.stem
        assert any("{" in one.sentence for one in findings), path.stem


@pytest.fixture(scope="module")
def run() -> Run:
    settings = [*SMALL, *FEWER["quickstart"], "days=1", "population.users=400"]
    return run_here(load(small("quickstart"), BLOCKS, settings))


def test_made_false_the_data_have_other_captions_and_findings(run: Run) -> None:
    plots = [item for section in page_of(run).sections for item in section.items]
    attacks = [
        item for item in plots if isinstance(item, Plot) and "adversary is right" in item.title
    ]
    assert attacks
    for plot in attacks:
        raised = replace(plot, curves=[_raised(curve) for curve in plot.curves])
        said = readings.caption(raised)
        assert said != readings.caption(plot)
        assert "None of" not in said
        assert "of all" not in said
        assert list(false_captions(raised)) == []  # what is said then is true of the new data
    swapped = {
        point.id: replace(run.results[other.id], id=point.id)
        for point, other in zip(run.points, run.points[::-1], strict=True)
    }
    # The first three compare the variants, which are swapped; the last is about both.
    found = check_findings(run.scenario.findings, run.points, swapped)
    assert [one.is_true for one in found][:3] == [False] * 3
    twin = replace(
        run,
        results=swapped,
        gates=tuple(check_gates(run.scenario.gates, run.points, swapped)),
        findings=tuple(check_findings(run.scenario.findings, run.points, swapped)),
    )
    assert not twin.passed
    assert false_sentences(twin) == []
    assert "gates failed." in page_of(twin).verdict_sentence
    assert all(row.text.startswith("Not so: ") for row in page_of(twin).findings[:3])


def _raised(curve: Curve) -> Curve:
    """Return a measured curve above everything; other lines as they are."""
    if curve.role != "measured":
        return curve
    y, low, high = (
        [one + 9 for one in ends or curve.y] for ends in (curve.y, curve.low, curve.high)
    )
    return replace(curve, y=y, low=low, high=high)


def test_a_caption_that_is_not_true_of_the_data_is_found() -> None:
    """Test the test: a reading that always holds prints what the data do not bear out."""
    bound, claimed = (
        Curve("a", (1.0,), (0.9,), (0.8,), (1.0,), group="g"),
        Curve("b", (1.0,), (0.5,), role="bound", group="g"),
    )
    lie: Reading[Plot] = Reading("None of 1 measured values is above the bound.", lambda _: {})
    plot = Plot("t", "d.", "x", "y", (bound, claimed), readings=((lie,),))
    assert list(false_captions(plot)) == [
        "t: expected '1 of 1 measured values' in 'd. None of 1 measured values is above the "
        "bound.'"
    ]
