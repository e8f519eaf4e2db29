"""What a report shows, as plain frozen values: claims, plots, tables, sections, run card.

A pipeline fills these in; the page draws them and knows no pipeline. Every text is taken
literally: no markup, wherever it comes from. What a plot or table shows is described in plain
words; what is to be seen in it is said by readings, each with a predicate on the data. Sequences
are kept as tuples, so that a page does not change after it was described. What is wrong is
refused here, where the pipeline that said it is still on the stack.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar, get_args

from noisefloor.errors import BadParameter
from noisefloor.privacy import Claim, LowerBound

Role = Literal["measured", "bound", "closed-form", "baseline"]
Kind = Literal["line", "bar", "step", "scatter"]
Cell = str | int | float | None


CheckState = Literal["true", "false", "skipped"]

Shown = TypeVar("Shown", bound="Plot | Table")
Figures = Mapping[str, object]
"""What a predicate computed, by the names that its sentence has in braces."""


def _keep_tuple(owner: object, *names: str) -> None:
    """Replace the named sequences of a frozen value by tuples."""
    for name in names:
        value = getattr(owner, name)
        if value is not None:
            object.__setattr__(owner, name, tuple(value))


@dataclass(frozen=True, slots=True)
class Curve:
    """One line, row of bars or cloud of points.

    Attributes:
        name: As in the legend.
        x: Numbers, or texts for categories.
        y: As many numbers; infinity and NaN leave a gap, and the page says so.
        low: Lower ends of the confidence band.
        high: Upper ends of the confidence band.
        role: Decides the stroke: measured solid with a band, bound dashed, closed form dotted,
            baseline grey.
        group: Curves of one group share a colour and a marker: the attack, its bound and its
            closed form. A curve without a group is a group of its own.
        labels: Short texts beside the points, if any: the epsilon of each on a frontier.
    """

    name: str
    x: Sequence[float] | Sequence[str]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    role: Role = "measured"
    group: str = ""
    labels: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if self.role not in get_args(Role):
            raise BadParameter("role", self.role, f"to be one of {', '.join(get_args(Role))}")
        if (self.low is None) is not (self.high is None):
            raise BadParameter("low", self.low, "to be given together with high, or neither")
        _keep_tuple(self, "x", "y", "low", "high", "labels")
        for name in ("y", "low", "high", "labels"):
            value = getattr(self, name)
            if value is not None and len(value) != len(self.x):
                raise BadParameter(f"len({name})", len(value), f"== {len(self.x)}, that of x")


@dataclass(frozen=True, slots=True)
class Reading(Generic[Shown]):
    """A sentence about the data of a plot or table, and the predicate that makes it true.

    Attributes:
        sentence: With names in braces for figures that the predicate computes.
        predicate: Takes the plot or table; returns the figures if the sentence is true of its
            data, None if it is not.
    """

    sentence: str
    predicate: Callable[[Shown], Figures | None]

    def said(self, shown: Shown) -> str | None:
        """Return the sentence with its figures, or None if it is not true of the data."""
        figures = self.predicate(shown)
        return None if figures is None else self.sentence.format(**figures)


Readings = Sequence[Sequence[Reading[Shown]]]
"""By topic, the sentences that may be printed: the first that is true, or none."""


def _keep_readings(owner: "Plot | Table") -> None:
    object.__setattr__(owner, "readings", tuple(tuple(topic) for topic in owner.readings))


@dataclass(frozen=True, slots=True)
class Plot:
    """One figure, and what is said below it.

    Attributes:
        title: What is plotted.
        describes: What is plotted, in a sentence or two that are true whatever the data are.
        x_label: With its unit.
        y_label: With its unit.
        curves: At least one. In a bar plot, bounds and closed forms are drawn as lines.
        kind: Of all measured and baseline curves.
        log_x: Logarithmic; values that are not positive leave a gap, and the page says so.
        log_y: Likewise.
        x_tick: Distance of the ticks where the usual choice is odd: 24 for hours.
        readings: What may be said about the data besides, by topic.
    """

    title: str
    describes: str
    x_label: str
    y_label: str
    curves: Sequence[Curve]
    kind: Kind = "line"
    log_x: bool = False
    log_y: bool = False
    x_tick: float | None = None
    readings: "Readings[Plot]" = ()

    def __post_init__(self) -> None:
        _keep_readings(self)
        if not self.describes.strip():
            raise BadParameter("describes", self.describes, "to say what is plotted")
        if self.kind not in get_args(Kind):
            raise BadParameter("kind", self.kind, f"to be one of {', '.join(get_args(Kind))}")
        _keep_tuple(self, "curves")
        if not self.curves:
            raise BadParameter("curves", self.curves, "to hold at least one curve")
        if self.x_tick is not None and not 0 < self.x_tick < math.inf:
            raise BadParameter("x_tick", self.x_tick, "> 0")


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of texts and numbers; numbers are set to the right and rounded to four digits.

    Attributes:
        title: What is listed.
        describes: What is listed, in words that are true whatever the rows are; may be empty.
        header: Names of the columns.
        rows: As wide as the header.
        readings: What may be said about the rows besides, by topic.
        shades: How dark each cell of each row is, in [0, 1], or None: a heat map. None at all if
            left out.
    """

    title: str
    describes: str
    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    readings: "Readings[Table]" = ()
    shades: Sequence[Sequence[float | None]] = ()

    def __post_init__(self) -> None:
        _keep_readings(self)
        _keep_tuple(self, "header", "rows")
        for row in self.rows:
            if len(row) != len(self.header):
                raise BadParameter("len(row)", len(row), f"== {len(self.header)}, of the header")
        object.__setattr__(self, "rows", tuple(tuple(row) for row in self.rows))
        object.__setattr__(self, "shades", tuple(tuple(row) for row in self.shades))
        if self.shades and [len(row) for row in self.shades] != [len(row) for row in self.rows]:
            raise BadParameter("shades", "<shades>", "one for each cell, or none")
        if not all(one is None or 0 <= one <= 1 for row in self.shades for one in row):
            raise BadParameter("shades", "<shades>", "in [0, 1]")


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page: plots and tables in order, under a title and a few words."""

    title: str
    intro: str
    items: Sequence[Plot | Table]

    def __post_init__(self) -> None:
        _keep_tuple(self, "items")


@dataclass(frozen=True, slots=True)
class ClaimRow:
    """One epsilon three times: claimed, proved, audited.

    Attributes:
        mechanism: What was attacked.
        pipeline: Where it ran.
        variant: ``paper`` or ``corrected``, with its form.
        point: The point of the sweep, in words; may be empty.
        neighbours: The relation all three numbers are about.
        claimed: Infinite if nothing is claimed.
        proved: Infinite if nothing could be proved; the reason then says why.
        audited: What an attack reached, and could have reached; ``None`` if there was none.
        verdict: One of ``privacy.ClaimVerdict``; another word is shown as it is.
        reason: Why, if the numbers alone do not say it.
        claimed_delta: Of (epsilon, delta); 0 for pure privacy.
        proved_delta: Likewise.
        cause: Of a claim that is broken, misfit or unaccounted: the flow, and what was found.
    """

    mechanism: str
    pipeline: str
    variant: str
    point: str
    neighbours: str
    claimed: float
    proved: float
    audited: LowerBound | None
    verdict: str
    reason: str = ""
    claimed_delta: float = 0.0
    proved_delta: float = 0.0
    cause: str = ""

    def __post_init__(self) -> None:
        for name in ("claimed", "proved"):
            value = getattr(self, name)
            if not value >= 0:
                raise BadParameter(name, value, ">= 0")
        if math.isinf(self.proved) and not self.reason:
            raise BadParameter("reason", self.reason, "to say why nothing is proved")

    @classmethod
    def of(
        cls,
        claim: Claim,
        mechanism: str,
        *,
        pipeline: str,
        variant: str = "",
        point: str = "",
        cause: str = "",
    ) -> "ClaimRow":
        """Make the row of a claim."""
        said, shown = claim.claimed, claim.proved
        return cls(
            mechanism,
            pipeline,
            variant,
            point,
            shown.neighbours.value,
            said.epsilon,
            shown.epsilon,
            claim.audited,
            claim.verdict,
            shown.reason,
            said.delta,
            shown.delta,
            cause,
        )


@dataclass(frozen=True, slots=True)
class CheckRow:
    """A finding or a gate after a run.

    Attributes:
        text: The sentence with its figures, or the gate.
        state: Whether it is true; ``skipped`` if it was not checked.
        detail: Where it is true, or where it is not.
    """

    text: str
    state: CheckState
    detail: str = ""

    def __post_init__(self) -> None:
        if self.state not in get_args(CheckState):
            rule = f"to be one of {', '.join(get_args(CheckState))}"
            raise BadParameter("state", self.state, rule)


@dataclass(frozen=True, slots=True)
class RunCard:
    """What produced the page, as ordered pairs of name and text."""

    entries: Sequence[tuple[str, str]] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "entries", tuple((name, text) for name, text in self.entries))


@dataclass(frozen=True, slots=True)
class Page:
    """A whole report.

    Attributes:
        name: Of the scenario.
        question: The one it asks.
        expectation: What its author expected to see; may be empty.
        verdict_sentence: What was found about the claims, in a few sentences.
        verdict_ok: Whether the run is what was expected: its gates passed. None if that is
            undecided.
        claims: In any order; the page puts the worst first.
        sections: In the order they are read.
        run_card: Scenario hash, seeds, versions, times.
        warnings: What limits the answer: seeds left out, late frames, an interrupted run.
        findings: The answer to the question, in sentences with figures.
        gates: What decided the exit code.
    """

    name: str
    question: str
    expectation: str
    verdict_sentence: str
    verdict_ok: bool | None
    claims: Sequence[ClaimRow] = ()
    sections: Sequence[Section] = ()
    run_card: RunCard = RunCard()
    warnings: Sequence[str] = ()
    findings: Sequence[CheckRow] = ()
    gates: Sequence[CheckRow] = ()

    def __post_init__(self) -> None:
        _keep_tuple(self, "claims", "sections", "warnings", "findings", "gates")
