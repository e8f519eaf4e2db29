"""The report's section on published texts: whatever was swept or not measured, it is drawn."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from noisefloor_sim.pipelines.api import Findings, PointFindings
from noisefloor_sim.pipelines.texts import posts
from noisefloor_sim.pipelines.texts.section import report_section
from noisefloor_sim.report import readings
from noisefloor_sim.report.spec import Plot, Section, Table
from noisefloor_sim.runs import execute
from text_worlds import CHEAP, SMALL, run_texts, texts_world
from word_search import folder_with

GUESSED: dict[str, Any] = {"attacks": ["texts.lengths", "texts.rare-word", "texts.exposure"]}


def point(epsilon: float, variant: str = "corrected") -> PointFindings:
    """Return what a small world found, as one point of a sweep."""
    swept = (("pipelines.texts.epsilon", epsilon), ("variant", variant))
    settings = {"epsilon": epsilon}
    scenario = texts_world(settings, variant=variant, **GUESSED)
    return PointFindings(swept, scenario, run_texts(settings, variant=variant, **GUESSED).found)


def items(found: Section, kind: type) -> dict[str, Any]:
    """Return plots or tables by their titles."""
    return {item.title: item for item in found.items if isinstance(item, kind)}


def test_a_sweep_draws_utility_likeness_and_attacks_of_both_variants() -> None:
    points = [point(epsilon, one) for one in ("corrected", "paper") for epsilon in (1.0, 2.0)]
    found = report_section(points)
    plots = items(found, Plot)
    assert {"corrected", "paper"} <= {
        curve.name for curve in plots["What a classifier learns of made-up texts"].curves
    }
    lengths = plots[
        "How often the adversary is right: whose text has a length that the others do not explain"
    ]
    assert readings.caption(lengths)
    assert "raw up to it, noisy after it" in found.intro
    assert "stands in for the paper's encoder-decoder" in found.intro
    table = items(found, Table)["What attacks and audits reached"]
    assert "None of 4 null games" in readings.caption(table)


def test_what_was_measured_nowhere_is_left_out() -> None:
    found = report_section([point(2.0)])
    assert not items(found, Plot), "one point has no axis"
    header = items(found, Table)["How good the last corpus is"].header
    assert "meaning" not in header
    assert "pairs" in header
    assert "encoder-decoder" not in found.intro


def test_a_world_in_which_nothing_was_published_has_a_section() -> None:
    swept = (("pipelines.texts.epsilon", 2.0),)
    empty = Findings((), ())
    found = report_section([PointFindings(swept, texts_world(), empty)])
    assert found.title == "Published texts"


HTML = "<script>alert(1)</script> sentinel7f3a9c"


def test_nothing_of_a_post_is_in_any_file_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No report shows a text: what is in a post cannot run, since it is not there."""
    posted: list[str] = []

    def with_html(texts: Sequence[str], most_bytes: int) -> list[str]:
        posted.extend(f"{HTML} {text}" for text in texts)
        return posted

    monkeypatch.setattr(posts, "cut_to_bytes", with_html)
    path = tmp_path / "html.yaml"
    attacks = ["texts.lengths", "texts.members", "texts.exposure", "texts.rare-word"]
    scenario = {**SMALL, "attacks": attacks, "pipelines": {"texts": CHEAP}}
    path.write_text(json.dumps(scenario), encoding="utf-8")
    options: dict[str, Any] = {"seed": None, "jobs": 1, "force": False, "resume": False}
    _, found = execute(path, settings=[], out=tmp_path / "run", **options)
    assert found.passed and len(posted) > 100
    for part in ("sentinel7f3a9c", "alert(1)"):
        assert folder_with(tmp_path / "run", part) == set()
    assert "sentinel" not in "".join(capsys.readouterr())
    (tmp_path / "run" / "planted.txt").write_text(posted[0], encoding="utf-8")
    assert folder_with(tmp_path / "run", "alert(1)") == {"planted.txt"}
