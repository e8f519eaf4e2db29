"""Gates: conditions on metrics and claims that decide the exit code of a run.

    clicks.rmse < 0.05
    clicks.rmse < 0.05 where variant == corrected and pipelines.clicks.epsilon >= 1
    claims.* holds
    claims.clicks.audited <= proved where variant == corrected
    ads.attack.*.success rises over pipelines.ads.epsilon

    gate       = (metric | trend | claim) ["where" filter {"and" filter}]
    metric     = NAME comparison NUMBER
    trend      = FORM "rises" "over" KEY             a name, * for any part of it; a swept key
    claim      = "claims." selector verdict
               | "claims." selector "." figure comparison (NUMBER | figure)
    selector   = PART {"." PART}           pipeline, mechanism, neighbours; * or left out: any
    verdict    = "holds" | "unprotected" | "overclaimed" | "unaccounted" | "misfit" | "broken"
    figure     = "claimed" | "proved" | "audited"
    filter     = KEY comparison (NUMBER | WORD)      a dotted key of the scenario at that point
    comparison = "<" | "<=" | ">" | ">=" | "==" | "!="

A gate holds if every row it selects meets it and there is at least one: what was not measured was
not shown. A metric rises over a key if it does not fall by more than its intervals between any two
points that differ in that key alone; then it has to be measured at all of them. A gate is read by
this small parser; nothing of it is ever run.
"""

import json
import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache

from noisefloor.privacy import Claim, ClaimVerdict
from noisefloor_sim.scenario.document import get, put, split
from noisefloor_sim.scenario.error_text import one_of, show
from noisefloor_sim.scenario.scalars import resolve

LONGEST_GATE = 300
FIGURES = ("claimed", "proved", "audited")
VERDICTS = (
    ClaimVerdict.HOLDS,
    ClaimVerdict.UNPROTECTED,
    ClaimVerdict.OVERCLAIMED,
    ClaimVerdict.UNACCOUNTED,
    ClaimVerdict.MISFIT,
    ClaimVerdict.BROKEN,
)
"""What a claim can be found to be."""

COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_TOKEN = re.compile(r"<=|>=|==|!=|<|>|[A-Za-z0-9_.*+-]+")
PARSED_TEXTS = 1024
"""Texts whose parsed form is kept: a sweep reads the same gates and findings at every point."""
_NAME = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)+")
_FORM = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_*-]+)+")
_SELECTOR = re.compile(r"claims(\.([a-z0-9_-]+|\*)){1,3}")
_CLAIM_FIGURE = re.compile(rf"{_SELECTOR.pattern}\.({'|'.join(FIGURES)})")


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition on one key of the scenario at a sweep point."""

    key: str
    comparison: str
    value: str | float

    def accepts(self, data: Mapping[str, object]) -> bool:
        """Whether the plain data of a point's scenario meet the condition."""
        found = get(data, split(self.key))
        if isinstance(found, bool):
            found = "true" if found else "false"
        if isinstance(found, str) or isinstance(self.value, str):
            is_equality = self.comparison in ("==", "!=")  # texts have no order
            return is_equality and (found == self.value) is (self.comparison == "==")
        return isinstance(found, int | float) and compared(found, self.comparison, self.value)


@dataclass(frozen=True, slots=True)
class MetricGate:
    """A bound on a metric."""

    metric: str
    comparison: str
    bound: float
    filters: tuple[Filter, ...] = ()

    def is_met(self, value: float) -> bool:
        """Whether a row's value is within the bound; NaN never is."""
        return compared(value, self.comparison, self.bound)


@dataclass(frozen=True, slots=True)
class TrendGate:
    """A condition on metrics along a swept key: they do not fall but within their intervals.

    Attributes:
        metric: A name, or a form of names with ``*`` for any part.
        key: Of the sweep, with numbers for values.
        filters: What a point has to meet.
    """

    metric: str
    key: str
    filters: tuple[Filter, ...] = ()

    def selects(self, name: str) -> bool:
        """Whether a metric, with its pipeline's name before it, is meant."""
        return fnmatchcase(name, self.metric)

    def curves(self, data: Mapping[str, Mapping[str, object]]) -> list[list[str]]:
        """Return the points that differ in the key alone, in its order: two or more each.

        Args:
            data: Plain data of the scenarios, by the id of a point.
        """
        path, curves = split(self.key), dict[str, dict[float, str]]()
        for name, one in data.items():
            place = get(one, path)
            is_number = isinstance(place, int | float) and not isinstance(place, bool)
            if is_number and applies(self, one):
                rest = json.dumps(put(one, path, None), sort_keys=True, default=str)
                curves.setdefault(rest, {})[float(str(place))] = name
        return [
            [name for _, name in sorted(curve.items())]
            for curve in curves.values()
            if len(curve) > 1
        ]


@dataclass(frozen=True, slots=True)
class ClaimGate:
    """A condition on claims: their verdict, or one of their epsilons.

    Attributes:
        selector: Pipeline, mechanism and neighbours; ``*`` is any, and so is what is left out.
        figure: One of claimed, proved, audited; or ``verdict``.
        comparison: As for metrics; ``==`` for a verdict.
        bound: A number, another figure of the same claim, or the verdict.
        filters: What the point has to meet.
    """

    selector: tuple[str, ...]
    figure: str
    comparison: str
    bound: str | float
    filters: tuple[Filter, ...] = ()

    def selects(self, *names: str) -> bool:
        """Whether a claim's pipeline, mechanism and neighbours are meant."""
        pairs = zip(self.selector, names, strict=False)
        return len(names) >= len(self.selector) and all(a in ("*", b) for a, b in pairs)

    def is_met(self, claim: Claim) -> bool:
        """Whether a claim meets the gate; what was not audited meets no bound on the audit."""
        if self.figure == "verdict":
            return claim.verdict == self.bound
        bound = claim_figure(claim, self.bound) if isinstance(self.bound, str) else self.bound
        return compared(claim_figure(claim, self.figure), self.comparison, bound)


Gate = MetricGate | TrendGate | ClaimGate


def applies(gate: Gate, data: Mapping[str, object]) -> bool:
    """Whether a gate is meant for the point with these plain data."""
    return all(condition.accepts(data) for condition in gate.filters)


def is_meant(gate: Gate, data: Mapping[str, Mapping[str, object]]) -> bool:
    """Whether a gate is about any of the points with these plain data, by their id."""
    if isinstance(gate, TrendGate):
        return bool(gate.curves(data))
    return any(applies(gate, one) for one in data.values())


def is_name(word: str) -> bool:
    """Whether a word can be the name of a metric or of a claim's epsilon, and is no number."""
    if not (_NAME.fullmatch(word) or _CLAIM_FIGURE.fullmatch(word)):
        return False
    return isinstance(_number_or_word(word), str)


@lru_cache(maxsize=PARSED_TEXTS)
def parse_gate(text: str) -> Gate:
    """Read a gate.

    Raises:
        ValueError: It is not of the grammar above; the text is the rule it breaks.
    """
    head, *conditions = _parted(words_of(text), "where")
    if len(conditions) > 1:
        raise ValueError("Expected 'where' once.")
    filters = tuple(_filter(words) for part in conditions for words in _parted(part, "and"))
    if head and head[0].startswith("claims."):
        return _claim_gate(head, filters)
    return _trend_gate(head, filters) if "rises" in head else _metric_gate(head, filters)


def words_of(text: str) -> list[str]:
    """Return the names, numbers and comparisons of a gate.

    Raises:
        ValueError: There is something else in it.
    """
    if len(text) > LONGEST_GATE:
        raise ValueError(f"Expected a gate of at most {LONGEST_GATE} characters.")
    words: list[str] = _TOKEN.findall(text)
    if "".join(words) != "".join(text.split()):
        raise ValueError(f"Expected names, numbers and comparisons, got {show(text)}.")
    return words


def _metric_gate(words: list[str], filters: tuple[Filter, ...]) -> MetricGate:
    if len(words) != 3 or words[1] not in COMPARISONS or not _NAME.fullmatch(words[0]):
        found = show(" ".join(words))
        raise ValueError(f"Expected a gate such as 'clicks.rmse < 0.05', got {found}.")
    return MetricGate(words[0], words[1], _number(words[2]), filters)


def _trend_gate(words: list[str], filters: tuple[Filter, ...]) -> TrendGate:
    if len(words) != 4 or words[1:3] != ["rises", "over"] or not _FORM.fullmatch(words[0]):
        found, example = show(" ".join(words)), "clicks.attack.*.success rises over budget"
        raise ValueError(f"Expected a gate such as '{example}', got {found}.")
    split(words[3])
    return TrendGate(words[0], words[3], filters)


def _claim_gate(words: list[str], filters: tuple[Filter, ...]) -> ClaimGate:
    name, rest = words[0], words[1:]
    if len(rest) == 1 and rest[0] in VERDICTS and _SELECTOR.fullmatch(name):
        return ClaimGate(tuple(name.split(".")[1:]), "verdict", "==", rest[0], filters)
    selector, _, figure = name.rpartition(".")
    if len(rest) != 2 or rest[0] not in COMPARISONS:
        found = show(" ".join(words))
        raise ValueError(f"Expected a gate such as 'claims.* {one_of(VERDICTS)}', got {found}.")
    if figure not in FIGURES or not _SELECTOR.fullmatch(selector):
        found = show(name)
        raise ValueError(f"Expected 'claims.', a pipeline, and {one_of(FIGURES)}, got {found}.")
    bound = rest[1] if rest[1] in FIGURES else _number(rest[1])
    return ClaimGate(tuple(selector.split(".")[1:]), figure, rest[0], bound, filters)


def _filter(words: list[str]) -> Filter:
    if len(words) != 3 or words[1] not in COMPARISONS:
        found = show(" ".join(words))
        raise ValueError(f"Expected a condition such as 'variant == corrected', got {found}.")
    key, comparison, word = words
    split(key)
    value = _number_or_word(word)
    if isinstance(value, str) and comparison not in ("==", "!="):
        raise ValueError(f"Expected a number after {comparison}, got {show(word)}.")
    return Filter(key, comparison, value)


def _number(word: str) -> float:
    value = _number_or_word(word)
    if isinstance(value, str):
        raise ValueError(f"Expected a number to compare with, got {show(word)}.")
    return value


def _number_or_word(word: str) -> float | str:
    try:
        value = resolve(word)
    except ValueError as error:
        raise ValueError(f"{error}, got {show(word)}.") from None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else word


def _parted(words: list[str], separator: str) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for word in words:
        if word == separator:
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def claim_figure(claim: Claim, name: str) -> float:
    """Return one of a claim's epsilons; NaN, which meets nothing, if it was not audited."""
    if name == "audited":
        return claim.audited.epsilon if claim.audited else math.nan
    return claim.claimed.epsilon if name == "claimed" else claim.proved.epsilon


def compared(left: float, comparison: str, right: float) -> bool:
    """Compare two numbers; NaN is in no relation to any."""
    is_number = not (math.isnan(left) or math.isnan(right))
    return is_number and COMPARISONS[comparison](left, right)
