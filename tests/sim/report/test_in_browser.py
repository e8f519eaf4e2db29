"""The report in a real browser: it draws, it is silent, it asks for nothing, it fits a phone."""

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from noisefloor_sim.report import Curve, Plot, Section, Table, page
from noisefloor_sim.report.spec import Page
from sim.report import chromium, hostile, sample
from sim.report.chromium import Chromium

PROGRAM = chromium.executable()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        PROGRAM is None,
        reason=f"none of {', '.join(chromium.NAMES)} is there: apt-get install chromium",
    ),
]
WIDTHS = (1280, 390)


OVERLAPS = """(() => {
  const kinds = 'h1, h2, h3, header p, main > section > p, .checks .sign, .checks .said, '
    + '.claims th, .claims td, figcaption, .legend li, .axis, .canvas, dl div';
  const found = Array.from(document.querySelectorAll(kinds));
  const shown = found.map((one) => [one, one.getBoundingClientRect()])
    .filter(([one, box]) => one.checkVisibility() && box.width && box.height);
  return shown.flatMap(([one, a], place) => shown.slice(place + 1).filter(([other, b]) =>
    !one.contains(other) && !other.contains(one)
    && a.left + 1 < b.right && b.left + 1 < a.right && a.top + 1 < b.bottom && b.top + 1 < a.bottom
  ).map(([other]) => one.className + one.tagName + ' on ' + other.className + other.tagName));
})()"""
"""Pairs of texts and figures that cover each other."""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    assert PROGRAM is not None
    with chromium.browser(PROGRAM, tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture
def tab(browser: Chromium) -> Chromium:
    browser.forget()
    return browser


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("run") / "report.html"
    page.write(sample.page(), path)
    return path


@pytest.mark.parametrize("width", WIDTHS)
def test_it_draws_every_plot_without_an_error_or_a_request(
    tab: Chromium, report: Path, tmp_path: Path, width: int
) -> None:
    tab.open(report, width=width)
    tab.screenshot(tmp_path / "screen.png")
    drawn = tab.ask(
        "Array.from(document.querySelectorAll('.canvas'), (canvas) => "
        "canvas.querySelectorAll('svg.main-svg').length > 0 && "
        "canvas.querySelectorAll('.trace path, .trace .point').length > 0)"
    )
    assert drawn == [True] * 7
    assert tab.complaints == []
    assert tab.requests == [report.as_uri()]
    image = (tmp_path / "screen.png").read_bytes()
    assert struct.unpack(">I", image[16:20]) == (width,)
    assert len(image) > 20_000  # an empty page packs into less


@pytest.mark.parametrize("width", [*WIDTHS, 320])
def test_the_page_never_scrolls_sideways(tab: Chromium, report: Path, width: int) -> None:
    tab.open(report, width=width)
    assert tab.ask("document.documentElement.scrollWidth") <= width
    # Whatever is wider scrolls inside its box.
    wide = tab.ask(
        "Array.from(document.querySelectorAll('body *:not(.box *):not(svg *):not(.canvas *)'))"
        f".filter((one) => one.getBoundingClientRect().right > {width} + 0.5)"
        ".map((one) => one.tagName + '.' + one.className)"
    )
    assert wide == []


def test_verdict_and_worst_claim_are_on_the_first_screen(tab: Chromium, report: Path) -> None:
    tab.open(report, width=1280, height=800)
    bottom = "document.querySelector('{}').getBoundingClientRect().bottom"
    assert tab.ask(bottom.format(".verdict")) < 480
    assert tab.ask(bottom.format(".claims tbody tr:nth-child(1)")) < 800


@pytest.mark.parametrize("width", WIDTHS)
def test_question_and_findings_are_seen_before_anything_is_scrolled(
    tab: Chromium, report: Path, width: int
) -> None:
    tab.open(report, width=width, height=800)
    seen = tab.ask(
        "Array.from(document.querySelectorAll('h1, .findings .sign, .findings .said'), (one) => {"
        "const box = one.getBoundingClientRect(); "
        "return box.width > 0 && box.top >= 0 && box.bottom < 800 ? one.innerText : null; })"
    )
    question, *findings = seen
    assert question == sample.page().question
    assert findings[::2] == ["✓", "✗"]
    assert [text.split("  ")[0] for text in findings[1::2]] == [
        sample.page().findings[0].text,
        f"{sample.page().findings[1].text} {sample.page().findings[1].detail}",
    ]
    gates = tab.ask("document.querySelectorAll('#gates li').length")
    assert gates == len(sample.page().gates)


@pytest.mark.parametrize("width", WIDTHS)
def test_texts_of_the_page_do_not_overlap(tab: Chromium, report: Path, width: int) -> None:
    tab.open(report, width=width)
    overlaps = tab.ask(OVERLAPS)
    assert overlaps == []
    tab.ask("document.querySelector('#gates').style.marginTop = '-60px'")
    assert tab.ask(OVERLAPS) != []  # the question finds what is planted


@pytest.mark.parametrize("width", WIDTHS)
def test_labels_of_an_axis_do_not_overlap(tab: Chromium, report: Path, width: int) -> None:
    tab.open(report, width=width)
    overlaps = tab.ask(
        """Array.from(document.querySelectorAll('.canvas')).flatMap((canvas) =>
          ['.xtick text', '.ytick text', '.textpoint text'].flatMap((kind) => {
            const found = Array.from(canvas.querySelectorAll(kind))
              .filter((text) => text.style.visibility !== 'hidden');
            const boxes = found.map((text) => text.getBoundingClientRect());
            return boxes.flatMap((a, i) => boxes.slice(i + 1).filter((b) =>
              a.left < b.right && b.left < a.right && a.top + 3 < b.bottom && b.top + 3 < a.bottom
            ).map(() => canvas.id + ' ' + kind));
          }))"""
    )
    assert overlaps == []


@pytest.mark.parametrize("width", WIDTHS)
def test_of_labels_that_cover_each_other_the_first_is_shown(
    tab: Chromium, tmp_path: Path, width: int
) -> None:
    near = Curve("a", [1.0, 1.001, 2.0], [1.0, 1.001, 2.0], labels=["first", "second", "far"])
    cloud = Plot("t", "d.", "x", "y", [near], kind="scatter")
    page.write(
        Page("n", "q?", "", "v.", True, (), [Section("s", "", [cloud])]), tmp_path / "l.html"
    )
    tab.open(tmp_path / "l.html", width=width)
    shown = "Array.from(document.querySelectorAll('.textpoint text')).filter("
    shown += "(one) => one.style.visibility !== 'hidden').map((one) => one.textContent)"
    assert tab.ask(shown) == ["first", "far"]
    assert tab.complaints == []


def test_a_click_on_the_legend_hides_a_curve_with_its_band(tab: Chromium, report: Path) -> None:
    tab.open(report, width=1280)
    tab.ask("document.querySelector('.legend button').click()")
    hidden = "document.querySelector('#plot-1').data.filter((one) => one.visible === false).length"
    assert tab.ask(hidden) == 3
    tab.ask("document.querySelector('.legend button').click()")
    assert tab.ask(hidden) == 0
    assert tab.complaints == []


def test_dark_pages_have_light_letters_in_their_plots(tab: Chromium, report: Path) -> None:
    fill = "getComputedStyle(document.querySelector('.xtick text')).fill"
    tab.open(report, width=1280)
    light = tab.ask(fill)
    tab.open(report, width=1280, dark=True)
    assert tab.ask(fill) != light
    tab.print(report.with_suffix(".pdf"))
    assert tab.complaints == []
    assert tab.ask(fill) != light  # printing was on white, and is over


@pytest.mark.parametrize("dark", [False, True])
def test_print_shows_plots_on_paper_and_opens_the_folded_claims(
    tab: Chromium, tmp_path: Path, dark: bool
) -> None:
    long = Page("n", "q?", "", "v.", True, sample.claims() * 3, sample.sections())
    page.write(long, tmp_path / "long.html")
    tab.open(tmp_path / "long.html", width=1280, dark=dark)
    tab.ask(
        "window.addEventListener('beforeprint', () => { window.seen = ["
        "document.querySelector('details.more').open, "
        "document.querySelector('.xtick text').style.fill, "
        "...Array.from(document.querySelectorAll('.canvas .svg-container'), "
        "(one) => one.getBoundingClientRect().width)]; })"
    )
    tab.print(tmp_path / "long.pdf")
    is_open, ink, *widths = tab.ask("window.seen")
    assert is_open is True
    assert ink == "rgb(89, 98, 108)"
    assert widths == [660] * 7
    assert tab.complaints == []
    assert tab.requests == [(tmp_path / "long.html").as_uri()]


@pytest.mark.parametrize("width", WIDTHS)
def test_hostile_texts_do_nothing(tab: Chromium, tmp_path: Path, width: int) -> None:
    page.write(hostile.page(*hostile.TEXTS), tmp_path / "hostile.html")
    tab.open(tmp_path / "hostile.html", width=width)
    assert tab.ask("window.hacked") is None
    assert (
        tab.ask("document.querySelectorAll('.canvas a, .canvas image, iframe, img').length") == 0
    )
    assert tab.ask("document.querySelectorAll('a:not([href^=\"#\"])').length") == 0
    assert tab.ask("document.documentElement.scrollWidth") <= width
    assert tab.complaints == []
    assert tab.requests == [(tmp_path / "hostile.html").as_uri()]


def test_plotly_shows_markup_as_text(tab: Chromium, tmp_path: Path) -> None:
    page.write(hostile.page("<b>b</b> &amp;"), tmp_path / "markup.html")
    tab.open(tmp_path / "markup.html", width=1280)
    for kind in (".xtick text", ".textpoint text"):
        shown = tab.ask(
            f"Array.from(document.querySelectorAll('{kind}'), (one) => one.textContent)"
        )
        assert "<b>b</b> &amp;" in shown


def test_a_page_without_plots_is_silent_too(tab: Chromium, tmp_path: Path) -> None:
    table = Table("t", "r", [f"column {i}" for i in range(30)], [list(range(30))])
    bare = Page("n", "q?", "e", "v.", False, sample.claims(), [Section("s", "", [table])])
    page.write(bare, tmp_path / "bare.html")
    tab.open(tmp_path / "bare.html", width=375)
    assert tab.ask("document.documentElement.scrollWidth") <= 375
    tab.print(tmp_path / "bare.pdf")
    assert tab.complaints == []


def test_the_driver_hears_errors_and_requests(tab: Chromium, tmp_path: Path) -> None:
    """Test the test: silence would mean nothing if this page were silent."""
    planted = tmp_path / "planted.html"
    planted.write_text(
        "<!DOCTYPE html><html data-drawn='0'><script>setTimeout(() => { throw Error('planted') })"
        "</script><img src='missing.png'></html>"
    )
    tab.open(planted, width=375)
    tab.ask("new Promise((done) => setTimeout(done, 50))")
    assert any("planted" in complaint for complaint in tab.complaints)
    assert (tmp_path / "missing.png").as_uri() in tab.requests
