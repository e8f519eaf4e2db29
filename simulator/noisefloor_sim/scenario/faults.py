"""What a model says of bad data, in our words: the path in the data and the rule it breaks."""

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from noisefloor_sim.scenario.document import Flaw
from noisefloor_sim.scenario.keys import Path, field_at, names_at
from noisefloor_sim.scenario.showing import count, did_you_mean, show

_ENOUGH = 100
"""Errors that are told; looking for the nearest name takes time."""

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
    details = error.errors(include_url=False)[:_ENOUGH]
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
