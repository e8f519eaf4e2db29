"""Twenty texts that would do something if a page took them for more than text."""

from noisefloor.privacy import LowerBound
from noisefloor_sim.report import CheckRow, ClaimRow, Curve, Page, Plot, RunCard, Section, Table

TEXTS = (
    "<script>window.hacked=1</script>",
    "</script><script>window.hacked=1</script>",
    "</style><script>window.hacked=1</script>",
    "</title><script>window.hacked=1</script>",
    "<img src=x onerror=window.hacked=1>",
    "<img src='http://example.invalid/beacon.png'>",
    "<svg onload=window.hacked=1>",
    "<svg><script>window.hacked=1</script></svg>",
    '" onmouseover="window.hacked=1" x="',
    "' autofocus onfocus='window.hacked=1",
    "<a href='javascript:window.hacked=1'>click</a>",
    "<a href='https://example.invalid/'>click</a>",
    "javascript:window.hacked=1",
    "<iframe srcdoc='<script>parent.hacked=1</script>'></iframe>",
    "<!--<script>window.hacked=1</script>",
    "]]><script>window.hacked=1</script>",
    "{{ 7 * 7 }}{% raw %}${alert(1)}",
    "&lt;script&gt;window.hacked=1&lt;/script&gt;",
    "<b>%{y}</b><br><extra>$x^2$</extra>",
    "\u2028</ScRiPt\n><base href='http://example.invalid/'><meta http-equiv=refresh content=0>",
)


def page(*texts: str) -> Page:
    """Return a page that has the texts wherever a text can be."""
    every = " ".join(texts)
    return Page(
        name=every,
        question=every,
        expectation=every,
        verdict_sentence=every,
        verdict_ok=False,
        claims=[claim(text) for text in texts],
        sections=[*(section(text) for text in texts), *[Section("more", "", [])] * 3],
        run_card=RunCard([(text, text) for text in texts]),
        warnings=texts,
        findings=[CheckRow(text, "false", text) for text in texts],
        gates=[CheckRow(text, "skipped", text) for text in texts],
    )


def claim(text: str) -> ClaimRow:
    """Return a claim of nothing but that text."""
    return ClaimRow(
        text, text, text, text, text, 1.0, 2.0, LowerBound(1.5, 0.99, 1000, 5.0), text, text
    )


def section(text: str) -> Section:
    """Return plots and a table of nothing but that text."""
    named = Curve(text, [text], [1.0], labels=[text])
    lines = Plot(text, text, text, text, [named, Curve("b", ["k"], [2.0])])
    bars = Plot(text, text, text, text, [Curve(text, [text], [1.0], [0.5], [1.5])], kind="bar")
    return Section(text, text, [lines, bars, Table(text, text, (text, "number"), [(text, 1)])])
