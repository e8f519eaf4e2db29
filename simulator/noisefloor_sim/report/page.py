"""From a Page to one HTML file that works offline.

Same page, same bytes: ids are counted, no clock is read. Nothing of the page is trusted: every
text goes through autoescape, figures are JSON in data blocks, and a Content-Security-Policy
allows the scripts written here by their hashes and nothing else, no request to anywhere.
"""

import base64
import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from itertools import count, groupby
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from noisefloor_sim.report import axes, figure, readings, wording
from noisefloor_sim.report.spec import Cell, CheckRow, ClaimRow, Page, Plot, Section, Table

View = dict[str, object]

FOLD = 12  # claims that are shown without asking
_TONES = {True: "ok", None: "warn", False: "bad"}
_CHECKS = {"true": "ok", "skipped": "warn", "false": "bad"}
_MARKS = {"ok": "\N{CHECK MARK}", "warn": "!", "bad": "\N{BALLOT X}"}
# What the legend's swatches need of SVG: strokes, markers around (17, 7), hatching of a bar.
_DASHES = {
    "solid": "none", "dash": "7 4", "dot": "2 3",
    "longdash": "11 4", "dashdot": "7 3 2 3", "longdashdot": "12 3 2 3",
}  # fmt: skip
_MARKERS = {
    "circle": "M13 7a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z",
    "square": "M13 3h8v8h-8Z",
    "diamond": "M17 2l5 5l-5 5l-5-5Z",
    "triangle-up": "M17 2.5l4.6 8h-9.2Z",
    "cross": "M15.5 3h3v2.5H21v3h-2.5V11h-3V8.5H13v-3h2.5Z",
    "x": "M13 4.5L14.5 3L17 5.5L19.5 3L21 4.5L18.5 7L21 9.5L19.5 11L17 8.5L14.5 11L13 9.5L15.5 7Z",
}
_HATCHING = {
    "/": "M10 7l6-6M10 13L22 1M18 13l6-6",
    "x": "M10 13L22 1M12 1l12 12",
    ".": "M13 4h1M19 4h1M13 10h1M19 10h1",
    "-": "M10 4h14M10 10h14",
    "+": "M10 7h14M17 1v12",
}


def write(page: Page, path: Path) -> None:
    """Write the report whole or not at all."""
    unfinished = path.with_name(path.name + ".part")
    try:
        unfinished.write_bytes(render(page).encode("utf-8"))
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def render(page: Page) -> str:
    """Return the report as HTML; plotly.js is in it once if there is a plot, else not at all."""
    sections = _sections(page.sections)
    has_plots = any(isinstance(item, Plot) for section in page.sections for item in section.items)
    scripts = [*([_plotly()] if has_plots else []), _template_text("page.js")]
    claims = wording.worst_first(page.claims)
    tone = "bad" if _has_failed(page) else _TONES[page.verdict_ok]
    return (
        _environment()
        .get_template("page.html")
        .render(
            page=page,
            badge=_badge(page),
            tone=tone,
            mark=_MARKS[tone],
            findings=[_check(row) for row in page.findings],
            gates=[_check(row) for row in _failed_first(page.gates)],
            claims=[_claim(row) for row in claims],
            tally=_tally(claims),
            fold=FOLD,
            sections=sections,
            css=Markup(_template_text("page.css")),  # noqa: S704  escaped already
            scripts=[Markup(script) for script in scripts],  # noqa: S704  escaped already
            policy=_policy(scripts),
            dashes=_DASHES,
            markers=_MARKERS,
            hatching=_HATCHING,
        )
    )


@cache  # compiling the templates takes longer than rendering most reports
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("noisefloor_sim.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
    )


def _finalize(value: object) -> object:
    """Clean every text on its way out; what is markup already was written here."""
    is_text = isinstance(value, str) and not isinstance(value, Markup)
    return wording.clean(str(value)) if is_text else value


@cache
def _plotly() -> str:
    """Return plotly.js as the wheel has it, fit to stand inside a script element."""
    script = files("plotly").joinpath("package_data", "plotly.min.js").read_text("utf-8")
    # It can stand in a string or a comment only, and there the backslash changes nothing.
    return script.replace("</script", "<\\/script")


def _template_text(name: str) -> str:
    return files("noisefloor_sim.report").joinpath("templates", name).read_text("utf-8")


def _policy(scripts: Sequence[str]) -> str:
    """Allow these scripts and the styles that plotly.js sets; forbid all else."""
    digests = (hashlib.sha256(script.encode()).digest() for script in scripts)
    hashes = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; "
        "base-uri 'none'; form-action 'none'"
    )


def _badge(page: Page) -> str:
    """Say in a few words whether the run passed: what failed first, then what passed."""
    failed = sum(row.state == "false" for row in page.gates)
    broken = sum(map(wording.ends_a_run, page.claims))
    faults = [f"{failed} of {len(page.gates)} gates"] if failed else []
    if broken:
        faults.insert(0, f"{broken} claim{'s' if broken > 1 else ''} contradicted by the run")
    if faults:
        return f"Failed: {', '.join(faults)}"
    if page.verdict_ok is None:
        return "Undecided"
    if page.gates and page.verdict_ok:
        passed = sum(row.state == "true" for row in page.gates)
        skipped = len(page.gates) - passed
        return f"Gates: {passed} passed" + (f", {skipped} skipped" if skipped else "")
    if page.expectation:
        return "As expected" if page.verdict_ok else "Not as expected"
    return "Passed" if page.verdict_ok else "Failed"


def _has_failed(page: Page) -> bool:
    is_broken = any(map(wording.ends_a_run, page.claims))
    return is_broken or any(row.state == "false" for row in page.gates)


def _check(row: CheckRow) -> View:
    """Describe a finding or a gate; for gates the mark is said in words as well."""
    tone = _CHECKS[row.state]
    words = {"true": "passed", "false": "failed", "skipped": "skipped"}
    mark = "\N{EN DASH}" if row.state == "skipped" else _MARKS[tone]
    word = words[row.state]
    return {"text": row.text, "detail": row.detail, "tone": tone, "mark": mark, "word": word}


def _failed_first(rows: Sequence[CheckRow]) -> list[CheckRow]:
    order = ("false", "skipped", "true")
    return sorted(rows, key=lambda row: order.index(row.state))


def _claim(row: ClaimRow) -> View:
    severity = wording.severity(row)
    relation = row.neighbours and f"{row.neighbours} neighbours"
    place = [part for part in (row.pipeline, row.variant, row.point, relation) if part]
    return {
        "mechanism": row.mechanism,
        "place": place,
        "claimed": wording.upper(row.claimed),
        "claimed_delta": wording.delta(row.claimed_delta),
        "proved": wording.upper(row.proved),
        "proved_delta": wording.delta(row.proved_delta),
        "audited": wording.audited(row),
        "audited_how": wording.audited_how(row),
        "severity": severity,
        "mark": _MARKS[severity],
        "verdict": wording.verdict(row),
        "sentence": wording.sentence(row),
    }


def _tally(rows: Sequence[ClaimRow]) -> str:
    """Count the verdicts, the worst first."""
    counts = Counter(
        "hold" if row.verdict == wording.HOLDS else wording.verdict(row).lower() for row in rows
    )
    total = f"{len(rows)} claim{'s' if len(rows) != 1 else ''}"
    return f"{total}: " + ", ".join(f"{times} {word}" for word, times in counts.items()) + "."


def _sections(sections: Sequence[Section]) -> list[View]:
    ids = count(1)
    return [
        {
            "id": f"section-{place}",
            "title": section.title,
            "intro": section.intro,
            "items": list(_items(section.items, ids)),
        }
        for place, section in enumerate(sections, 1)
    ]


def _items(items: Sequence[Plot | Table], ids: Iterator[int]) -> Iterator[View]:
    """Describe the items; plots stand in pairs, and the last of an odd row takes all its width."""
    for _, group in groupby(items, key=lambda item: isinstance(item, Plot)):
        row = list(group)
        for place, item in enumerate(row, 1):
            if isinstance(item, Plot):
                is_wide = place == len(row) and len(row) % 2 == 1
                yield _plot(item, next(ids)) | {"is_plot": True, "is_wide": is_wide}
            else:
                yield _table(item) | {"is_plot": False}


def _plot(plot: Plot, serial: int) -> View:
    named = zip(plot.curves, figure.styles(plot), strict=True)
    return {
        "id": serial,
        "title": plot.title,
        "caption": readings.caption(plot),
        "describes": plot.describes,
        "seen": " ".join(readings.true_readings(plot)),
        "x_label": plot.x_label,
        "y_label": plot.y_label,
        "curves": [{"name": curve.name, "style": look} for curve, look in named],
        "is_scale": not axes.is_category(plot),
        "gaps": figure.gaps(plot),
        "json": _json(figure.figure(plot)),
    } | _numbers(plot)


def _json(value: object) -> Markup:
    """Write JSON that no parser of HTML can take for anything else."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)  # noqa: S704  escaped already


def _numbers(plot: Plot) -> View:
    """List the numbers of a plot, if they are few."""
    if not figure.is_small(plot):
        return {"header": [], "rows": []}
    header = ("curve", plot.x_label, plot.y_label, "low", "high")
    rows: list[tuple[Cell, ...]] = []
    for curve in plot.curves:
        nothing = (None,) * len(curve.x)
        low, high = curve.low or nothing, curve.high or nothing
        xs: Sequence[Cell] = curve.x
        for x, y, least, most in zip(xs, curve.y, low, high, strict=True):
            rows.append((curve.name, x, y, least, most))
    has_band = any(curve.low is not None for curve in plot.curves)
    width = len(header) if has_band else 3
    return _cells(header[:width], [row[:width] for row in rows])


def _table(table: Table) -> View:
    seen = " ".join(readings.true_readings(table))
    named: View = {"title": table.title, "describes": table.describes, "seen": seen}
    named |= {"is_heat": bool(table.shades)}
    return named | _cells(table.header, table.rows, table.shades)


def _cells(
    header: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    shades: Sequence[Sequence[float | None]] = (),
) -> View:
    numeric = [any(isinstance(row[at], int | float) for row in rows) for at in range(len(header))]
    return {
        "header": [
            {"text": text, "is_number": flag} for text, flag in zip(header, numeric, strict=True)
        ],
        "rows": [
            [
                {"text": wording.cell(value), "is_number": flag, "shade": shade}
                for value, flag, shade in zip(row, numeric, dark, strict=True)
            ]
            for row, dark in zip(rows, shades or [(None,) * len(header)] * len(rows), strict=True)
        ],
    }
