"""Nothing from a scenario is trusted as HTML: twenty hostile texts in every place are inert."""

import json
import re

import pytest

from noisefloor_sim.report import page
from noisefloor_sim.report.wording import clean
from sim.report import hostile
from sim.report.test_page import Outline


@pytest.fixture(autouse=True)
def without_plotly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave five megabytes out of every page that is parsed here."""
    monkeypatch.setattr(page, "_plotly", lambda: "/* plotly.js */")


def skeleton(text: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(tag, tuple(attributes)) for tag, attributes in Outline(text).tags]


def test_there_are_twenty_of_them() -> None:
    assert len(set(hostile.TEXTS)) == 20


@pytest.mark.parametrize("text", hostile.TEXTS)
def test_a_hostile_text_adds_no_element_and_no_attribute(text: str) -> None:
    assert skeleton(page.render(hostile.page(text))) == skeleton(
        page.render(hostile.page("harmless"))
    )


@pytest.mark.parametrize("text", hostile.TEXTS)
def test_a_hostile_text_is_shown_as_it_is(text: str) -> None:
    shown = Outline(page.render(hostile.page(text))).texts
    assert shown.count(clean(text).strip()) >= 12


@pytest.mark.parametrize("text", hostile.TEXTS)
def test_figures_are_json_without_a_sign_that_html_knows(text: str) -> None:
    written = page.render(hostile.page(text))
    blocks = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', written, re.S)
    assert len(blocks) == 2
    for block in blocks:
        assert not set(block) & set("<>&\u2028")
        names = {trace.get("name") for trace in json.loads(block)["data"]}
        assert any(name and "<" not in name for name in names)


def test_the_own_scripts_and_styles_are_the_same_whatever_the_page_says() -> None:
    ours = [
        [
            script
            for script in Outline(page.render(hostile.page(text))).scripts
            if "{" not in script[:1]
        ]
        for text in (hostile.TEXTS[0], "harmless")
    ]
    assert ours[0] == ours[1]
