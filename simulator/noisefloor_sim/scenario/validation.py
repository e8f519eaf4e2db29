"""Plain data into a scenario: every rule is tried, and every rule that is broken is listed.

What a model says of bad data, in our words: the path in the data and the rule it breaks.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from noisefloor_sim.scenario.blocks import Blocks, PipelineBlock, attack_names, game_of
from noisefloor_sim.scenario.document import (
    Document,
    Flaw,
    Path,
    field_at,
    has,
    names_at,
    split,
    unknown_key,
)
from noisefloor_sim.scenario.error_text import count, did_you_mean, show
from noisefloor_sim.scenario.formats import SCENARIO_FORMAT, format_fault
from noisefloor_sim.scenario.gates import (
    ClaimGate,
    Gate,
    MetricGate,
    TrendGate,
    applies,
    parse_gate,
)
from noisefloor_sim.scenario.hashing import resolved
from noisefloor_sim.scenario.model import MOST_ATTACKS, Scenario
from noisefloor_sim.scenario.result_names import WORLD, unknown_results

_MOST_ERRORS = 100
"""Errors that are listed; looking for the nearest name takes time."""

_REDO = "Begin with a new file: noisefloor new NAME."

_Context = Mapping[str, Any]  # pydantic's: limits and messages, by error

# What is expected, from the limits in the error's context. Where the rule says all there is to
# say, nothing is added; the others are followed by what was found and what the key means.
_EXPECTED: Mapping[str, Callable[[_Context], str]] = {
    "greater_than": lambda c: f"> {_figure(c['gt'])}",
    "greater_than_equal": lambda c: f">= {_figure(c['ge'])}",
    "less_than": lambda c: f"< {_figure(c['lt'])}",
    "less_than_equal": lambda c: f"<= {_figure(c['le'])}",
    "finite_number": lambda c: "a finite number",
    "int_type": lambda c: "a whole number",
    "int_from_float": lambda c: "a whole number",
    "float_type": lambda c: "a number",
    "bool_type": lambda c: "true or false",
    "string_type": lambda c: "a text (in quotes if it looks like something else)",
    "string_pattern_mismatch": lambda c: f"a text like {c['pattern']}",
    "string_too_short": lambda c: f"at least {count(c['min_length'], 'character')}",
    "string_too_long": lambda c: f"at most {count(c['max_length'], 'character')}",
    "tuple_type": lambda c: "a list",
    "too_short": lambda c: f"at least {count(c['min_length'], 'value')}",
    "too_long": lambda c: f"at most {count(c['max_length'], 'value')}",
    "mapping_type": lambda c: "a mapping of keys",
    "dict_type": lambda c: "a mapping of keys",
    "model_type": lambda c: "a mapping of keys",
    "model_attributes_type": lambda c: "a mapping of keys",
    "literal_error": lambda c: str(c["expected"]),
}


def flaws_of(
    error: ValidationError, model: type[BaseModel], data: object, *, base: Path = ()
) -> list[Flaw]:
    """Translate pydantic's errors.

    Args:
        error: What the model raised.
        model: The model.
        data: What it was given.
        base: Where the data stand in the scenario.
    """
    details = error.errors(include_url=False)[:_MOST_ERRORS]
    return [_flaw(it, model, data, base) for it in details if not _is_only_of_bad_items(it)]


def unknown(kind: str, name: str, allowed: list[str]) -> str:
    """Write the rule that a name breaks which nothing goes by."""
    return f"Unknown {kind} {show(name)}. {did_you_mean(name, allowed)}"


def _flaw(detail: ErrorDetails, model: type[BaseModel], data: object, base: Path) -> Flaw:
    context = detail.get("ctx", {})
    path = _path_in(data, detail["loc"], is_missing=detail["type"] == "missing")
    if detail["type"] == "rule":
        key = (context["key"],) if context["key"] else ()
        return Flaw((*base, *path, *key), context["rule"])
    if detail["type"] == "extra_forbidden":
        allowed = names_at(model, path[:-1])
        return Flaw((*base, *path), unknown("key", str(path[-1]), allowed))
    field = field_at(model, _named(path))
    meaning = f" {field.description}" if field and field.description else ""
    return Flaw((*base, *path), _rule(detail, context) + meaning)


def _is_only_of_bad_items(detail: ErrorDetails) -> bool:
    """Whether a list is called too short only because pydantic does not count bad items."""
    is_short = detail["type"] == "too_short"
    return is_short and len(detail["input"]) >= detail["ctx"]["min_length"]


def _rule(detail: ErrorDetails, context: _Context) -> str:
    if detail["type"] == "missing":
        return "Expected this key, found none."
    if detail["type"] == "value_error":  # raised by a check of the platform, in its own words
        return str(context["error"])
    found = show(detail["input"])
    expected = _EXPECTED.get(detail["type"])
    if expected is None:
        return f"{detail['msg']}, got {found}."
    return f"Expected {expected(context)}, got {found}."


def _path_in(data: object, loc: Path, *, is_missing: bool) -> Path:
    """Return the part of pydantic's location that lies in the data: unions add names to it."""
    path: list[str | int] = []
    for place, part in enumerate(loc):
        if isinstance(data, Mapping) and part in data:
            data = data[part]
        elif isinstance(data, list | tuple) and isinstance(part, int) and part < len(data):
            data = data[part]
        elif not (is_missing and place == len(loc) - 1):
            continue
        path.append(part)
    return tuple(path)


def _named(path: Path) -> Path:
    """Leave out the indices at the end: what a list means is said of the list."""
    while path and isinstance(path[-1], int):
        path = path[:-1]
    return path


def _figure(limit: float) -> str:
    return str(limit) if isinstance(limit, int) else f"{limit:g}"


MOST_CELLS = 1 << 27
"""Users of a cohort times ads: what a cohort may hold at once."""

_MOST_PIPELINES = 100
"""Pipelines that are looked at; there are not that many."""

_Model = TypeVar("_Model", bound=BaseModel)
_Result = tuple[Scenario | None, list[Flaw]]


def validated(document: Document, blocks: Blocks) -> Scenario:
    """Return the scenario that a document holds, its sweep not yet expanded.

    Raises:
        BadScenario: It breaks rules; all of them are listed.
    """
    scenario, flaws = check(document.data, blocks)
    if scenario is None:
        raise document.error(flaws)
    return scenario


def check(data: object, blocks: Blocks) -> _Result:
    """Return the scenario, or None and what is wrong with the data."""
    if not isinstance(data, Mapping):
        return None, [Flaw((), f"Expected a mapping of keys, got {show(data)}.")]
    number = data.get("format")
    if type(number) is int and number != SCENARIO_FORMAT:
        # Alone: what another format allows is not known here.
        return None, [Flaw(("format",), format_fault(number, SCENARIO_FORMAT, _REDO))]
    flaws: list[Flaw] = []
    given = dict(data)
    if isinstance(data.get("pipelines"), Mapping):
        given["pipelines"] = _pipelines(data["pipelines"], blocks, flaws)
        flaws += _behaviour_flaws(data, blocks)
    if isinstance(data.get("attacks"), tuple):
        flaws += _attack_flaws(data["attacks"], given.get("pipelines"), blocks)
    scenario = _built(Scenario, given, (), flaws)
    if scenario is None or flaws:
        return None, flaws
    flaws += [*_cell_flaws(scenario), *_gate_flaws(scenario)]
    return (None if flaws else scenario), flaws


def _pipelines(
    given: Mapping[str, object], blocks: Blocks, flaws: list[Flaw]
) -> dict[str, PipelineBlock]:
    """Build each pipeline's block; an empty one stands in for what is wrong."""
    built: dict[str, PipelineBlock] = {}
    for name, value in itertools.islice(given.items(), _MOST_PIPELINES):
        path: Path = ("pipelines", name)
        if name in blocks:
            built[name] = _built(blocks[name], value, path, flaws) or PipelineBlock()
        else:
            built[name] = PipelineBlock()
            flaws.append(Flaw(path, unknown("pipeline", name, sorted(blocks))))
    return built


def needs_ads(data: Mapping[str, object], blocks: Blocks) -> bool:
    """Whether a pipeline that plain data name works on ads."""
    named = data.get("pipelines")
    known = [blocks[name] for name in blocks if isinstance(named, Mapping) and name in named]
    return any(block.needs_ads for block in known)


def _behaviour_flaws(data: Mapping[str, object], blocks: Blocks) -> Iterator[Flaw]:
    """Refuse a behaviour that no pipeline uses: it would be ignored without a word."""
    if data.get("behaviour") is not None and not needs_ads(data, blocks):
        needing = ", ".join(name for name in sorted(blocks) if blocks[name].needs_ads) or "none"
        rule = f"Expected this key only beside a pipeline that needs ads ({needing})."
        yield Flaw(("behaviour",), f"{rule} Leave it out: this world has no ads.")


def _attack_flaws(given: tuple[object, ...], pipelines: object, blocks: Blocks) -> Iterator[Flaw]:
    """Find attacks that no pipeline of the scenario has, and such that are listed twice."""
    allowed = attack_names(pipelines if isinstance(pipelines, dict) else (), blocks)
    for index, name in enumerate(given[:MOST_ATTACKS]):
        path: Path = ("attacks", index)
        if isinstance(name, str) and name not in allowed:
            yield Flaw(path, unknown("attack", name, allowed))
        elif name in given[:index]:
            yield Flaw(path, f"Expected each attack once, got {show(name)} again.")


def _built(model: type[_Model], data: object, base: Path, flaws: list[Flaw]) -> _Model | None:
    """Return the model, or None after adding what is wrong to the flaws."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        flaws += flaws_of(error, model, data, base=base)
        return None


def _cell_flaws(scenario: Scenario) -> Iterator[Flaw]:
    """Keep a cohort's table of users and ads within memory."""
    if scenario.behaviour is None:
        return
    cohort, ads = scenario.population.cohort, scenario.behaviour.ads
    if cohort * ads > MOST_CELLS:
        rule = f"Expected at most {MOST_CELLS} cells in a cohort, got {cohort} users x {ads} ads."
        yield Flaw(("population", "cohort"), f"{rule} Make the cohort smaller.")


def _gate_flaws(scenario: Scenario) -> Iterator[Flaw]:
    """Find gates and findings on keys, pipelines, metrics or claims that are not there."""
    if not scenario.gates and not scenario.findings:
        return
    data = resolved(scenario)
    for index, text in enumerate(scenario.gates):
        for rule in _broken_rules(parse_gate(text), scenario, data, "gate"):
            yield Flaw(("gates", index), rule)
    for index, finding in enumerate(scenario.findings):
        for key, gate in finding.gates():
            for rule in _broken_rules(gate, scenario, data, "finding"):
                yield Flaw(("findings", index, key), rule)


def _broken_rules(
    gate: Gate, scenario: Scenario, data: Mapping[str, object], kind: str
) -> Iterator[str]:
    """Yield the rules that a gate, or what a finding selects, breaks."""
    keys = [condition.key for condition in gate.filters]
    for key in [*keys, gate.key] if isinstance(gate, TrendGate) else keys:
        if not has(data, split(key)):
            yield unknown_key(key, data)
    names = sorted([WORLD, *scenario.pipelines])
    if isinstance(gate, ClaimGate) and gate.selector[0] not in ("*", *names):
        yield unknown("pipeline", gate.selector[0], names)
        return
    yield from unknown_results(gate, scenario.pipelines)
    missing = _unmounted(gate, scenario) if applies(gate, data) else []
    if missing:
        listed = " or ".join(missing)
        rule = f"Expected what is measured: this needs {listed}, which attacks leaves out."
        yield f"{rule} Add it there, or remove the {kind}."


def _is_of_game(gate: MetricGate | TrendGate, start: str) -> bool:
    """Whether a gate is about a game whose metrics start so; one about several may be."""
    form = gate.metric.split(".")[:3]
    return len(form) == 3 and fnmatchcase(start, f"{'.'.join(form)}.")


def _unmounted(gate: Gate, scenario: Scenario) -> list[str]:
    """Return the attacks of which a gate needs one, if none of them is mounted."""
    needed: list[str] = []
    for name, block in scenario.pipelines.items():
        for attack, one in block.attacks.items():
            if isinstance(gate, ClaimGate):
                is_audited = "audited" in (gate.figure, gate.bound)
                is_needed = one.is_audit and is_audited and gate.selector[0] in ("*", name)
            else:
                games = one.games or (game_of(attack),)
                is_needed = any(_is_of_game(gate, f"{name}.attack.{game}.") for game in games)
            if is_needed:
                needed.append(f"{name}.{attack}")
    is_mounted = not scenario.attacks or any(name in scenario.attacks for name in needed)
    return [] if is_mounted else needed
