"""The sentences of a run's page, checked against its data by computations of their own."""

import math
from collections.abc import Iterator
from dataclasses import replace

from markupsafe import escape

from noisefloor_sim.report import Curve, Page, Plot, Table, page, readings
from noisefloor_sim.runs import Run, page_of

DUST = 1e-9


def false_sentences(run: Run) -> list[str]:
    """Return every sentence of a run's page that its data do not bear out."""
    shown = page_of(run)
    written = page.render(shown)
    return [
        *_unwritten(shown, written),
        *(wrong for item in _items(shown) for wrong in false_captions(item)),
        *_false_findings(run, shown),
    ]


def _items(shown: Page) -> Iterator[Plot | Table]:
    for section in shown.sections:
        yield from section.items


def false_captions(item: Plot | Table) -> Iterator[str]:
    """Yield what is printed below a plot or table and is not true of its data."""
    for sentence in readings.true_readings(item):
        topics: list[list[str | None]] = [
            [one.said(item) for one in topic]  # type: ignore[arg-type]  # its own kind
            for topic in item.readings
        ]
        if not any(sentence in topic for topic in topics):
            yield f"{item.title}: {sentence}: no reading with a true predicate says so"
    if isinstance(item, Plot):
        said = readings.caption(item)
        for needle, expected in counted(item).items():
            if needle in said and expected not in said:
                yield f"{item.title}: expected {expected!r} in {said!r}"


def counted(plot: Plot) -> dict[str, str]:
    """Count, by another way, what captions say about closed forms, bounds and baselines."""
    return {
        "contain the closed form": _closed_forms(plot),
        "above the bound": _bounds(plot),
        "above the baseline": _baselines(plot),
    }


def _triples(plot: Plot, role: str) -> list[tuple[float, float, float]]:
    """Return value, lower end and line wherever a measured curve and a line meet."""
    solid = [curve for curve in plot.curves if curve.role == "measured"]
    mine = {curve.group or curve.name for curve in solid}
    found: list[tuple[float, float, float]] = []
    for curve in solid:
        lines = [one for one in plot.curves if one.role == role]
        own = [one for one in lines if (one.group or one.name) == (curve.group or curve.name)]
        others = [one for one in lines if (one.group or one.name) not in mine]
        for line in own or others:
            found += _met(curve, line)
    return found


def _met(curve: Curve, line: Curve) -> Iterator[tuple[float, float, float]]:
    low = curve.low or [math.nan] * len(curve.x)
    for place, x in enumerate(curve.x):
        for at, other in enumerate(line.x):
            pair = (curve.y[place], line.y[at])
            if x == other and not any(math.isnan(one) for one in pair):
                yield pair[0], low[place], pair[1]


def _closed_forms(plot: Plot) -> str:
    found = [one for one in _triples(plot, "closed-form") if not math.isnan(one[1])]
    flipped = replace(plot, curves=[_upside_down(curve) for curve in plot.curves])
    over = [-one[1] for one in _triples(flipped, "closed-form") if not math.isnan(one[1])]
    inside = sum(
        low - DUST <= line <= high + DUST for (_, low, line), high in zip(found, over, strict=True)
    )
    whole = f"of all {len(found)} measured values contain"
    return (
        whole if inside == len(found) else f"of {inside} of {len(found)} measured values contain"
    )


def _upside_down(curve: Curve) -> Curve:
    """Return a curve below the axis, so that its upper ends are the lower ones."""
    low = None if curve.high is None else [-one for one in curve.high]
    high = None if curve.low is None else [-one for one in curve.low]
    return replace(curve, y=[-one for one in curve.y], low=low, high=high)


def _bounds(plot: Plot) -> str:
    found = _triples(plot, "bound")
    above = sum(y > line + DUST for y, _, line in found)
    return (
        f"{above} of {len(found)} measured values" if above else f"None of {len(found)} measured"
    )


def _baselines(plot: Plot) -> str:
    found = [one for one in _triples(plot, "baseline") if not math.isnan(one[1])]
    above = sum(low > line + DUST for _, low, line in found)
    return f"{above} of {len(found)} are above" if above else f"None of {len(found)} is above"


def _unwritten(shown: Page, written: str) -> Iterator[str]:
    """Yield what is meant to be on the page and is not."""
    for item in _items(shown):
        for sentence in (item.describes, *readings.true_readings(item)):
            if str(escape(sentence)) not in written:
                yield f"{item.title}: {sentence}: not on the page"
    for row in (*shown.findings, *shown.gates):
        if str(escape(row.text)) not in written:
            yield f"{row.text}: not on the page"


def _false_findings(run: Run, shown: Page) -> Iterator[str]:
    for found, row in zip(run.findings, shown.findings, strict=True):
        is_marked = row.state == "true" and not row.text.startswith("Not ")
        if is_marked is not found.is_true or ("holds at all" in found.detail) is not is_marked:
            yield f"{row.text}: {row.state}, but {found.detail}"
    if not run.passed and "claims hold:" in shown.verdict_sentence:
        yield f"{shown.verdict_sentence}: of a run that failed"
