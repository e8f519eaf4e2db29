"""Refusals in the description of an interface: every one has the same form, and is listed.

FastAPI describes its own answers to bad input, which are not given here, and knows nothing of what
is refused before a route is reached.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from noisefloor_services.security.policy import METHODS

JSON = "application/json"
NAME = "Refusal"

_FAULT = {
    "type": "object",
    "description": "One fault: where it is, the rule that it breaks, and the rule's own bounds.",
    "properties": {"where": {"type": "string"}, "rule": {"type": "string"}},
    "required": ["where", "rule"],
}
_SHORTAGE = {
    "type": "object",
    "properties": {
        "quantity": {"enum": ["epsilon", "delta"]},
        "asked": {"type": ["number", "string"]},
        "left": {"type": "number"},
    },
    "required": ["quantity", "asked", "left"],
}
REFUSAL: Mapping[str, Any] = {  # Any: JSON
    "title": NAME,
    "type": "object",
    "description": "Why nothing was done. `error` is for programs, `detail` for people; neither "
    "repeats what was sent. Of a bad frame, `field` and `rule` are given too; of a budget that "
    "was exceeded, `short`: each quantity that ran out, what was asked for and what is left.",
    "properties": {
        "error": {"type": "string"},
        "detail": {"anyOf": [{"type": "string"}, {"type": "array", "items": _FAULT}]},
        "field": {"type": "string"},
        "rule": {"type": "string"},
        "short": {"type": "array", "items": _SHORTAGE},
    },
    "required": ["error", "detail"],
}
_INPUT = "The input breaks a rule; `detail` says where and which."
_OF_BODIES = {
    "400": "The body cannot be read.",
    "408": "The body took too long to come.",
    "413": "The body is too long.",
    "415": "The body is of another type, or encoded.",
    "422": _INPUT,
}
_OF_PATHS = {"401": "No token, or no route takes such a path.", "422": _INPUT}
_OF_FASTAPI = ("HTTPValidationError", "ValidationError")


def describe_refusals(openapi: dict[str, Any]) -> dict[str, Any]:  # Any: JSON
    """Write into a description what every operation may refuse; it is changed and returned."""
    schemas = openapi.setdefault("components", {}).setdefault("schemas", {})
    for name in _OF_FASTAPI:
        schemas.pop(name, None)
    schemas[NAME] = dict(REFUSAL)
    for path, operation in _operations(openapi):
        answers = operation.setdefault("responses", {})
        for status, text in _common(path, operation):
            answers.setdefault(status, {"description": text})
        for status, answer in answers.items():
            if status >= "400" and ("content" not in answer or _is_of_fastapi(answer)):
                answer["content"] = {JSON: {"schema": {"$ref": f"#/components/schemas/{NAME}"}}}
                if answer["description"] == "Validation Error":
                    answer["description"] = _INPUT
    return openapi


def _common(path: str, operation: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if "requestBody" in operation:
        yield from _OF_BODIES.items()
    if "{" in path:
        yield from _OF_PATHS.items()


def _is_of_fastapi(answer: Mapping[str, Any]) -> bool:
    schema = answer["content"].get(JSON, {}).get("schema", {})
    return str(schema.get("$ref", "")).endswith(_OF_FASTAPI)


def _operations(openapi: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, item in openapi.get("paths", {}).items():
        for method, operation in item.items():
            if method.upper() in METHODS:
                yield path, operation
