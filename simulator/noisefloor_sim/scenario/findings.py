"""Findings: sentences of a scenario that a run prints with their figures, true or not.

    sentence: The model's error is {ads.rmse}, that of the mean per ad {ads.rmse.item_means}.
    when: ads.rmse < ads.rmse.item_means where pipelines.ads.epsilon >= 1

    when       = gate | figure comparison figure ["where" filters]
               | figure "where" filters comparison figure "where" filters
    figure     = NAME | "claims." selector "." ("claimed" | "proved" | "audited")
    filters    = filter {"and" filter}                  gate and filter: as in ``gates``
    {...}      = figure ["where" filters]               with the conditions of ``when`` by default

A comparison of two figures with shared conditions is made at every point that meets them. With
conditions of their own, it is made between points that agree in every swept key that none of
these conditions names. A finding is true if every comparison is met and there is at least one.
It is read by the parser of gates; nothing of it is ever run.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from pydantic import BaseModel, Field, field_validator, model_validator

from noisefloor.privacy import Claim
from noisefloor_sim.scenario.blocks import FROZEN, PlainText, rule_error
from noisefloor_sim.scenario.error_text import show
from noisefloor_sim.scenario.gates import (
    COMPARISONS,
    PARSED_TEXTS,
    ClaimGate,
    Filter,
    Gate,
    claim_figure,
    compared,
    is_meant,
    is_name,
    parse_gate,
    words_of,
)

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class Figure:
    """A metric, or one of the epsilons of a claim, at the points that meet some conditions.

    Attributes:
        selects: A gate on the figure: what it selects is meant, its bound is not.
    """

    selects: Gate

    @property
    def name(self) -> str:
        """The name, as it was written."""
        gate = self.selects
        if isinstance(gate, ClaimGate):
            return ".".join(("claims", *gate.selector, gate.figure))
        return gate.metric

    @property
    def filters(self) -> tuple[Filter, ...]:
        """What a point has to meet."""
        return self.selects.filters

    def of_claim(self, claim: Claim) -> float:
        """Return the figure of a claim."""
        assert isinstance(self.selects, ClaimGate)  # noqa: S101  narrows a type
        return claim_figure(claim, self.selects.figure)


@dataclass(frozen=True, slots=True)
class FigureComparison:
    """A comparison of two figures.

    Attributes:
        left: The one.
        comparison: As in gates.
        right: The other.
        has_shared_filters: Whether both are read at the same points.
    """

    left: Figure
    comparison: str
    right: Figure
    has_shared_filters: bool

    def is_met(self, left: float, right: float) -> bool:
        """Whether two values compare so; NaN never does."""
        return compared(left, self.comparison, right)


Condition = Gate | FigureComparison
"""What decides whether a finding is true."""


@lru_cache(maxsize=PARSED_TEXTS)
def parse_condition(text: str) -> Condition:
    """Read the ``when`` of a finding.

    Raises:
        ValueError: It is not of the grammar above; the text is the rule it breaks.
    """
    words = words_of(text)
    at = _second_figure(words)
    if at is None:
        return parse_gate(text)
    left, comparison, right = words[: at - 1], words[at - 1], words[at:]
    if "where" in left:
        if "where" not in right:
            raise ValueError("Expected conditions after the second figure too, or only there.")
        return FigureComparison(_figure(left), comparison, _figure(right), False)
    shared = right[1:]
    return FigureComparison(_figure([*left, *shared]), comparison, _figure(right), True)


def _second_figure(words: list[str]) -> int | None:
    """Return where the right-hand figure of a comparison begins, if there is one.

    Behind ``where`` or ``and`` stand three words; a comparison at their end compares figures.
    """
    at = 1
    while at < len(words) and words[at] in ("where", "and"):
        at += 4
    is_compared = at + 1 < len(words) and words[at] in COMPARISONS and is_name(words[at + 1])
    return at + 1 if is_compared else None


def parse_figure(text: str) -> Figure:
    """Read a figure with its conditions.

    Raises:
        ValueError: It is not of the grammar above; the text is the rule it breaks.
    """
    return _figure(words_of(text))


def _figure(words: list[str]) -> Figure:
    if not words or not is_name(words[0]):
        found = show(" ".join(words))
        raise ValueError(f"Expected a figure such as 'clicks.error_rms', got {found}.")
    return Figure(parse_gate(" ".join([words[0], ">=", "0", *words[1:]])))


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence with figures: texts around them, one more than there are figures."""

    texts: tuple[str, ...]
    figures: tuple[Figure, ...]


@lru_cache(maxsize=PARSED_TEXTS)
def parse_sentence(sentence: str, condition: Condition) -> Sentence:
    """Take a sentence apart; a figure without conditions has those of ``when``.

    Raises:
        ValueError: A figure cannot be read, or needs conditions of its own.
    """
    found = list(_PLACEHOLDER.finditer(sentence))
    ends = [0, *(end for one in found for end in one.span()), len(sentence)]
    texts = [sentence[start:end] for start, end in list(pairwise(ends))[::2]]
    if any("{" in text or "}" in text for text in texts):
        raise ValueError("Expected braces in pairs, around one figure each.")
    return Sentence(tuple(texts), tuple(_placed(one[1], condition) for one in found))


def _placed(text: str, condition: Condition) -> Figure:
    words = words_of(text)
    if "where" in words:
        return _figure(words)
    if isinstance(condition, FigureComparison):
        if not condition.has_shared_filters:
            rule = "Expected 'where' in each figure of the sentence, since the two of 'when'"
            raise ValueError(f"{rule} have conditions of their own: {show(text)}.")
        condition = condition.left.selects
    bare = _figure(words).selects
    return Figure(replace(bare, filters=condition.filters))


class Finding(BaseModel):
    """A sentence, and the condition under which it is true."""

    model_config = FROZEN

    sentence: PlainText = Field(
        min_length=1,
        max_length=500,
        description="What is found if it is true; {metric} or {claims.x.proved where ...} stands "
        "for what was measured, from the least to the largest value.",
    )
    when: str = Field(
        description="When it is true: a condition as in gates, or a comparison of two figures."
    )

    @field_validator("when")
    @classmethod
    def _can_be_read(cls, text: str) -> str:
        """Return the condition with single spaces, if it can be read."""
        try:
            parse_condition(text)
        except ValueError as error:
            raise rule_error(str(error)) from None
        return " ".join(words_of(text))

    @model_validator(mode="after")
    def _has_figures(self) -> "Finding":
        try:
            self.parts()
        except ValueError as error:
            raise rule_error(str(error), "sentence") from None
        return self

    @property
    def condition(self) -> Condition:
        """When it is true."""
        return parse_condition(self.when)

    def parts(self) -> Sentence:
        """Return the sentence, taken apart."""
        return parse_sentence(self.sentence, self.condition)

    def gates(self) -> Iterator[tuple[str, Gate]]:
        """Yield all that it selects by gates, each with the key it stands in."""
        condition = self.condition
        if isinstance(condition, FigureComparison):
            yield "when", condition.left.selects
            yield "when", condition.right.selects
        else:
            yield "when", condition
        for figure in self.parts().figures:
            yield "sentence", figure.selects

    def is_meant(self, data: Mapping[str, Mapping[str, object]]) -> bool:
        """Whether each of its conditions is met by one of the points with these plain data."""
        return all(is_meant(gate, data) for _, gate in self.gates())
