"""The written page: its bytes, its structure, and what a reader finds where."""

import base64
import hashlib
import math
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from jinja2 import UndefinedError

from noisefloor.privacy import LowerBound
from noisefloor_sim.report import CheckRow, ClaimRow, Page, RunCard, Section, Table, page, readings
from sim.report import sample

PLOTS = 7


class Outline(HTMLParser):
    """Tags in order, texts of elements, and scripts."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "col"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)
        elif data.strip():
            self.texts.append(data.strip())

    def count(self, tag: str, css: str = "") -> int:
        """Count elements of that tag and class."""
        return sum(
            name == tag and (not css or css in str(attributes.get("class")).split())
            for name, attributes in self.tags
        )


def bare(**changes: object) -> Page:
    """Return a page with nothing that is not needed, and the changes."""
    values: dict[str, object] = {
        "name": "n", "question": "q?", "expectation": "", "verdict_sentence": "v.",
        "verdict_ok": True,
    }  # fmt: skip
    return Page(**(values | changes))  # type: ignore[arg-type]  # a test's short cut


@pytest.fixture(scope="module")
def outline() -> Outline:
    return Outline(page.render(sample.page()))


def test_the_same_page_gives_the_same_bytes_in_another_process(tmp_path: Path) -> None:
    page.write(sample.page(), tmp_path / "here.html")
    code = (
        f"import sys; sys.path[:0] = {sys.path!r}\n"
        "from pathlib import Path\n"
        "from sim.report import sample\n"
        "from noisefloor_sim.report import page\n"
        f"page.write(sample.page(), Path({str(tmp_path / 'there.html')!r}))\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONHASHSEED": "7"})
    assert (tmp_path / "here.html").read_bytes() == (tmp_path / "there.html").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here.html", "there.html"]


def test_everything_that_was_opened_is_closed_and_ids_are_unique(outline: Outline) -> None:
    assert outline.open == []
    ids = [attributes["id"] for _, attributes in outline.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert [name for name in ids if str(name).startswith("plot-")] == [
        f"plot-{serial}" for serial in range(1, PLOTS + 1)
    ]


def test_question_verdict_and_claims_come_first_then_sections_then_run_card(
    outline: Outline,
) -> None:
    texts = outline.texts
    places = [
        texts.index(text)
        for text in (
            "quickstart", sample.page().question, "Gates: 2 passed, 1 skipped",
            sample.page().findings[0].text, sample.page().verdict_sentence,
            "Claimed, proved, audited", "✗ Overclaimed", "What an attacker learns",
            sample.attack_plot().title, sample.attack_plot().describes,
            " ".join(readings.true_readings(sample.attack_plot())), "Who exhausted the budget",
            "peak memory", "212 MB",
        )
    ]  # fmt: skip
    contents = texts.index("On this page")
    assert places[:7] == sorted(places[:7])
    assert places[8:] == sorted(places[8:])
    assert places[6] < texts.index("Gates") < contents < places[8]


def test_every_plot_has_a_title_a_legend_a_reading_and_its_numbers(outline: Outline) -> None:
    assert outline.count("figure", "plot") == PLOTS
    assert outline.count("ul", "legend") == PLOTS
    assert outline.count("figcaption") == PLOTS + 1  # and one table
    assert outline.count("details", "numbers") == PLOTS - 1  # not for a week of hours


def test_plotly_is_there_once_with_plots_and_not_at_all_without() -> None:
    marker = "window.Plotly = Plotly"
    assert page.render(sample.page()).count(marker) == 1
    table = Table("t", "r", ("a",), [(1,)])
    without = page.render(bare(claims=sample.claims(), sections=[Section("s", "", [table])]))
    assert marker not in without
    assert len(without) < 60_000


def test_cells_of_a_heat_map_are_shaded_and_others_are_not() -> None:
    heat = Table("t", "r", ("a", "b", "c"), [("p", "1", "2")], (), [(None, 0.0, 1.0)])
    made = page.render(bare(sections=[Section("s", "", [heat])]))
    assert made.count("rgba(0,114,178,0.00)") == made.count("rgba(0,114,178,0.60)") == 1
    plain = Table("t", "r", ("a",), [("1",)])
    assert "rgba(0,114,178" not in page.render(bare(sections=[Section("s", "", [plain])]))


def test_only_the_scripts_that_are_there_may_run(outline: Outline) -> None:
    (policy,) = (
        str(attributes["content"])
        for tag, attributes in outline.tags
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    )
    running = [
        script
        for script in outline.scripts
        if not script.startswith('{"data"')  # data blocks are not run
    ]
    hashes = [base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in running]
    assert re.findall(r"'sha256-([^']+)'", policy) == hashes
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert len(hashes) == 2
    assert "unsafe-inline" not in policy.split("style-src")[0]
    assert "unsafe-eval" not in policy


def test_nothing_in_plotly_ends_the_script_early() -> None:
    script = page._plotly()
    assert not re.search(r"</script|<!--", script, re.IGNORECASE)
    assert "\r" not in script  # the hash is taken after the parser's own idea of a line end


def test_infinity_is_a_sign_with_its_reason() -> None:
    row = ClaimRow(
        "binning", "svm", "paper", "", "record-add-remove", 1.0, math.inf, None,
        "overclaimed", "empty cells are published as they are",
    )  # fmt: skip
    text = page.render(bare(claims=[row]))
    assert ">∞<" in text
    assert "nothing could be proved; not attacked. Empty cells are published" in text
    assert "inf<" not in text


def test_a_delta_stands_beneath_its_epsilon() -> None:
    row = ClaimRow(
        "gaussian", "svm", "corrected", "", "record-add-remove", 2.0, 1.5,
        LowerBound(0.5, 0.99, 1000, 5.0), "holds",
        claimed_delta=1e-6, proved_delta=1e-7,
    )  # fmt: skip
    texts = [
        text.replace("\u00a0", " ") for text in Outline(page.render(bare(claims=[row]))).texts
    ]
    minus = "\N{MINUS SIGN}"
    at = texts.index(f"δ 1e{minus}6")
    assert texts[at - 1 : at + 5] == [
        "2",
        f"δ 1e{minus}6",
        "1.5",
        f"δ 1e{minus}7",
        "≥ 0.5",
        "at 99 %",
    ]


def test_a_long_table_of_claims_is_folded_after_the_worst_twelve() -> None:
    folded = Outline(page.render(bare(claims=sample.claims() * 2)))
    assert folded.count("details", "more") == 1
    assert folded.count("table", "claims") == 2
    assert "12 more claims" in folded.texts
    assert folded.texts.index("✗ Overclaimed") < folded.texts.index("12 more claims")
    assert Outline(page.render(bare(claims=sample.claims()))).count("details") == 0


@pytest.mark.parametrize(("number", "has_contents"), [(3, False), (4, True)])
def test_contents_come_with_more_than_three_sections(number: int, has_contents: bool) -> None:
    made = Outline(page.render(bare(sections=[Section(f"s{i}", "", []) for i in range(number)])))
    assert made.count("nav") == has_contents


@pytest.mark.parametrize(
    ("is_ok", "expectation", "mark", "badge"),
    [
        (True, "e", "✓", "As expected"),
        (False, "e", "✗", "Not as expected"),
        (True, "", "✓", "Passed"),
        (False, "", "✗", "Failed"),
        (None, "e", "!", "Undecided"),
    ],
)
def test_the_verdict_has_a_mark_and_words_besides_its_colour(
    is_ok: bool | None, expectation: str, mark: str, badge: str
) -> None:
    made = Outline(page.render(bare(verdict_ok=is_ok, expectation=expectation)))
    assert made.texts[made.texts.index(mark) + 1] == badge


GATES = {
    "passed": CheckRow("a.b < 1", "true", "holds at all 3"),
    "failed": CheckRow("a.b < 2", "false", "fails at 1 of 3: p001 (2)"),
    "skipped": CheckRow("a.b < 3", "skipped", "no point matches"),
}


@pytest.mark.parametrize(
    ("kinds", "is_ok", "tone", "badge"),
    [
        (("passed",), True, "ok", "Gates: 1 passed"),
        (("passed", "skipped"), True, "ok", "Gates: 1 passed, 1 skipped"),
        (("passed", "failed", "skipped"), False, "bad", "Failed: 1 of 3 gates"),
    ],
)
def test_every_gate_is_on_the_page_with_its_mark_the_failed_ones_first(
    kinds: tuple[str, ...], is_ok: bool, tone: str, badge: str
) -> None:
    made = Outline(
        page.render(bare(verdict_ok=is_ok, expectation="e", gates=[GATES[one] for one in kinds]))
    )
    assert made.count("div", tone) == 1
    assert badge in made.texts
    for kind in kinds:
        assert GATES[kind].text in made.texts
        assert f"{kind}: {GATES[kind].detail}" in made.texts
    places = [made.texts.index(GATES[one].text) for one in ("failed", "skipped", "passed")
              if one in kinds]  # fmt: skip
    assert places == sorted(places)


@pytest.mark.parametrize("verdict", ["broken", "misfit", "unaccounted"])
def test_a_page_with_a_claim_that_ends_a_run_never_shows_a_passed_run(verdict: str) -> None:
    rows = [*sample.claims(), replace(sample.claims()[0], verdict=verdict, cause="clicks: raw")]
    made = Outline(page.render(bare(claims=rows, gates=[GATES["passed"]])))
    assert made.count("div", "bad") == 1
    assert "Failed: 1 claim contradicted by the run" in made.texts
    assert "Gates: 1 passed" not in made.texts


def test_findings_stand_between_the_question_and_the_claims_with_their_marks() -> None:
    made = Outline(page.render(sample.page()))
    first, second = sample.page().findings
    texts = made.texts
    assert texts[texts.index(first.text) - 1] == "✓"
    assert texts[texts.index(second.text) - 1 :][:3] == ["✗", second.text, second.detail]
    answer = texts.index(sample.page().verdict_sentence)
    assert texts.index(sample.page().question) < texts.index(first.text) < answer


def test_a_bare_page_says_that_there_is_nothing() -> None:
    made = Outline(page.render(bare()))
    assert "This run makes no privacy claim." in made.texts
    assert "Nothing was recorded." in made.texts
    assert made.count("div", "warnings") == 0


def test_a_page_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    there = tmp_path / "report.html"
    page.write(bare(question="old?"), there)
    with pytest.raises(UndefinedError):
        page.write(replace(bare(), run_card=None), there)  # type: ignore[arg-type]  # on purpose
    assert "<h1>old?</h1>" in there.read_text("utf-8")
    assert list(tmp_path.iterdir()) == [there]


def test_names_with_lone_surrogates_can_be_written(tmp_path: Path) -> None:
    page.write(bare(question="a\ud800b", run_card=RunCard([("k\x00", "v")])), tmp_path / "r.html")
    assert "<h1>a\ufffdb</h1>" in (tmp_path / "r.html").read_text("utf-8")


def test_the_command_line_does_not_load_the_report() -> None:
    code = (
        f"import sys; sys.path[:0] = {sys.path!r}\nimport noisefloor_sim.cli\n"
        "print([name for name in ('jinja2', 'plotly', 'narwhals') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
