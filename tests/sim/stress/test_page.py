"""The page of a load: every sentence is true of the figures, and of no others."""

import pytest

from load_figures import Json, found
from noisefloor_sim.pipelines import BLOCKS
from noisefloor_sim.report import Page
from noisefloor_sim.report.page import render
from noisefloor_sim.report.readings import caption
from noisefloor_sim.scenario import loads
from noisefloor_sim.stress.gating import LoadGateResult
from noisefloor_sim.stress.page import load_page, verdict_sentence

TEXT = """
name: s
question: How much?
seed: 1
pipelines: {clicks: {}}
load: {steps: [{rate: 400, seconds: 5}]}
"""
MANIFEST = {"seed": 1, "services": "started for the load", "machine": {"cores": "2"}}


def page_of(figures: Json, *, passed: bool = True) -> Page:
    gates = [LoadGateResult("run.conserved == 1", passed, "run.conserved is 1")]
    return load_page(loads(TEXT, BLOCKS), figures, MANIFEST, gates)


def captions(page: Page) -> dict[str, str]:
    return {one.title: caption(one) for part in page.sections for one in part.items}


def test_the_page_shows_knee_processes_percentiles_timeline_and_conservation() -> None:
    page = page_of(found())
    assert page.verdict_ok
    titles = list(captions(page))
    for title in ("Latency over load", "Percentile spectrum", "Processes", "Steps"):
        assert title in titles
    html = render(page)
    for text in ("How much?", "load-client-1", "ad-server at 97% of a core", "Cores in use"):
        assert text in html


def test_the_verdict_names_the_interval_and_what_was_at_its_limit() -> None:
    assert verdict_sentence(found()) == (
        "The knee is between 400 requests a second and 440. At its limit there: ad-server at 97% "
        "of a core."
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"is_lower_bound": True}, "The client had part in it: this is a lower bound."),
        ({"high": None}, "held up to 400 requests a second, the highest rate that was tried"),
        ({"low": 0.0}, "held at no rate; the lowest tried was 200 a second"),
        ({"limit": ""}, "No limit was seen."),
    ],
)
def test_other_knees_are_said_otherwise(changes: Json, words: str) -> None:
    one = found()
    one["knee"] |= changes
    assert words in verdict_sentence(one)
    render(page_of(one))


def test_a_load_without_a_search_says_how_many_runs_met_the_objective() -> None:
    assert verdict_sentence(found() | {"knee": None}) == (
        "The objective held in 3 of 4 runs of steps."
    )


def test_conservation_is_said_only_if_it_adds_up() -> None:
    good, bad = (captions(page_of(found(counted=count))) for count in (9_000, 8_999))
    title = "Frames by what became of them"
    assert "was counted once: 9,000" in good[title]
    assert "NOT add up" in bad[title]


def test_the_reading_of_the_knee_needs_rows_that_say_the_same() -> None:
    title = "The search for the knee"
    assert "It held at 400 and broke at 440" in captions(page_of(found()))[title]
    one = found()
    one["knee"]["runs"][0]["held"] = 0
    assert "It held at" not in captions(page_of(one))[title]


def test_rates_above_the_interval_that_met_the_objective_are_said() -> None:
    title, words = "The search for the knee", "Above the interval 800 held in most runs as well"
    assert words not in captions(page_of(found()))[title]
    one = found()
    one["knee"]["runs"].append({"rate": 800.0, "held": 2, "of": 3})
    assert words in captions(page_of(one))[title]


def test_runs_that_are_not_trusted_and_a_run_that_was_broken_off_are_warned_of() -> None:
    one = found(is_complete=False)
    one["runs"][0]["verdict"]["is_trusted"] = False
    page = page_of(one)
    assert not page.verdict_ok
    text = " ".join(page.warnings)
    assert "broken off (interrupted)" in text
    assert "1 of 4 runs of steps are not trusted" in text
    assert "share 2 cores" in text


def test_other_work_on_the_machine_is_warned_of() -> None:
    one = found()
    assert not any("Other work" in text for text in page_of(one).warnings)
    for run in one["runs"]:
        run["use"]["other_cores"] = 1.2
    assert any("Other work used 1.2 of 2 cores" in text for text in page_of(one).warnings)


def test_a_failed_gate_is_no_good_verdict() -> None:
    assert not page_of(found(), passed=False).verdict_ok
