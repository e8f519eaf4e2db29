"""Answers to failed requests: what was wrong and where, never what was sent.

FastAPI's own answers repeat the input. These name fields that the OpenAPI description contains,
and the rule that was broken; an unknown field is called unknown, since its name is input as well.

``describe_refusals`` lists every refusal in the OpenAPI description, all of one schema. FastAPI
would describe its own answers to bad input, which are not used here, and does not know the
refusals that are made before a route is reached.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from redis.exceptions import RedisError
from starlette.exceptions import HTTPException

from noisefloor.errors import (
    AnswerChanged,
    BadBackbone,
    BadFrame,
    BadParameter,
    BatchTooSmall,
    BrokenChain,
    BudgetExceeded,
    BusFull,
    ClockWentBack,
    EpochOpen,
    IncompatibleGuarantees,
    LedgerAbsent,
    MissingData,
    MissingExtra,
    NoisefloorError,
    PublicationFailed,
    SpendConflict,
)
from noisefloor.privacy import number_or_inf
from noisefloor_services import ledger
from noisefloor_services.http.bodies import ClientAction, action_after
from noisefloor_services.http.policy import METHODS
from noisefloor_services.store import BadStore, FrameRefused, Refusal, StreamFull

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
    "was exceeded, `short`: each quantity that ran out, what was asked for and what is left; of a "
    "batch that is too small, `threshold`: the reports that it would need; of a token without a "
    "role, `role`. `action` says what to do with the bytes that were sent: `resend` the same, "
    "`wait` until Retry-After has passed and send the same, or `drop` them.",
    "properties": {
        "error": {"type": "string"},
        "detail": {"anyOf": [{"type": "string"}, {"type": "array", "items": _FAULT}]},
        "field": {"type": "string"},
        "rule": {"type": "string"},
        "short": {"type": "array", "items": _SHORTAGE},
        "threshold": {"type": "integer"},
        "role": {"type": "string"},
        "action": {"enum": [one.value for one in ClientAction]},
    },
    "required": ["error", "detail", "action"],
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


RETRY_AFTER = {"Retry-After": "1"}
RETRY_LATER = {"Retry-After": "60"}
"""Where an epoch or a round has to pass before the same can be sent."""

_BOUNDS = ("ge", "gt", "le", "lt", "multiple_of", "min_length", "max_length", "pattern")
_MOST_FAULTS = 20

_ANSWERS: tuple[tuple[type[NoisefloorError], int, str], ...] = (
    (BudgetExceeded, 409, "budget-exceeded"),
    (SpendConflict, 409, "spend-conflict"),
    (PublicationFailed, 410, "publication-failed"),
    (IncompatibleGuarantees, 422, "unlike-neighbours"),
    (MissingExtra, 422, "missing-extra"),
    (MissingData, 422, "missing-data"),
    (BadBackbone, 422, "bad-backbone"),
    (BadFrame, 422, "bad-frame"),
    (ledger.ReleaseSealed, 409, "release-sealed"),
    (ledger.ReleaseUnspent, 409, "release-unspent"),
    (LedgerAbsent, 503, "ledger-absent"),
    (BrokenChain, 503, "broken-chain"),
    (ClockWentBack, 503, "clock-went-back"),
    (ledger.LedgerBehind, 503, "ledger-behind"),
    (ledger.BadAnchor, 503, "bad-anchor"),
    (AnswerChanged, 409, "answer-changed"),
    (BusFull, 503, "busy"),
)


_REFUSALS: Mapping[Refusal, tuple[int, str, dict[str, str]]] = {
    Refusal.CLOSED: (410, "The epoch is closed: drop it, it counts no more.", {}),
    Refusal.FULL: (410, "The epoch is full: drop it, it cannot count.", {}),
    Refusal.AHEAD: (
        409,
        "The epoch is too far ahead: keep it, and send the same later.",
        RETRY_LATER,
    ),
}


def refusal(
    body: Mapping[str, object], status: int, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """Answer with a refusal that says what becomes of the bytes."""
    action = action_after(status, headers).value
    return JSONResponse({**body, "action": action}, status, headers)


def install_error_handlers(app: FastAPI) -> None:
    """Make an application answer failures without repeating input."""
    known: set[str] = set()

    async def bad_input(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)  # noqa: S101  narrows a type
        if not known:
            known.update(_names(app.openapi()))
        return refusal({"error": "bad-input", "detail": faults(error.errors(), known)}, 422)

    async def plain(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)  # noqa: S101  narrows a type
        name = "http-error" if error.status_code >= 500 else "refused"
        later = RETRY_AFTER if error.status_code == 503 else {}
        headers = {**later, **(error.headers or {})}
        return refusal({"error": name, "detail": str(error.detail)}, error.status_code, headers)

    async def known_error(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, NoisefloorError)  # noqa: S101  narrows a type
        return _known(error)

    async def away(_: Request, __: Exception) -> JSONResponse:
        detail = "The store does not answer; nothing is promised. Send the same again."
        return refusal({"error": "store-away", "detail": detail}, 503, RETRY_AFTER)

    async def fault(_: Request, __: Exception) -> JSONResponse:
        return refusal({"error": "fault", "detail": "A fault of the service."}, 500)

    app.add_exception_handler(RequestValidationError, bad_input)
    app.add_exception_handler(HTTPException, plain)
    app.add_exception_handler(NoisefloorError, known_error)
    app.add_exception_handler(RedisError, away)
    app.add_exception_handler(Exception, fault)


def install_frame_handlers(app: FastAPI) -> None:
    """Make an application answer what goes wrong with frames, epochs and their store."""
    app.add_exception_handler(BadFrame, _bad_frame)
    app.add_exception_handler(StreamFull, _full)
    app.add_exception_handler(FrameRefused, _refused)
    app.add_exception_handler(EpochOpen, _open_epoch)
    app.add_exception_handler(BatchTooSmall, _too_small)
    app.add_exception_handler(BadStore, _bad_store)


def faults(errors: Iterable[Mapping[str, Any]], known: Iterable[str]) -> list[dict[str, object]]:
    """Write what a validator found: where, which rule, and the bounds of the rule.

    Args:
        errors: As pydantic lists them (Any: their context is free in form).
        known: Every name that the interface itself uses.
    """
    names = set(known) | {"body", "query", "path", "header", "cookie"}
    listed = []
    for error in list(errors)[:_MOST_FAULTS]:
        context = error.get("ctx") or {}
        bounds = {name: context[name] for name in _BOUNDS if name in context}
        where = _where(error.get("loc", ()), names)
        listed.append({"where": where, "rule": str(error.get("type", "")), **bounds})
    return listed


def _where(places: Sequence[object], names: set[str]) -> str:
    shown = [
        str(place) if isinstance(place, int) or place in names else "<unknown>" for place in places
    ]
    return ".".join(shown)


def _names(value: object) -> Iterable[str]:
    """Walk a description and yield the names of its parameters and properties."""
    if isinstance(value, list):
        for item in value:
            yield from _names(item)
    if isinstance(value, dict):
        properties = value.get("properties")
        if isinstance(properties, dict):
            yield from properties
        if isinstance(value.get("name"), str) and "in" in value:
            yield value["name"]
        for item in value.values():
            yield from _names(item)


def _known(error: NoisefloorError) -> JSONResponse:
    """Answer an error that was raised on purpose; of a parameter, name and rule only."""
    if isinstance(error, BadParameter):
        detail = f"Expected {error.name} {error.rule}."
        return refusal({"error": "bad-parameter", "detail": detail}, 422)
    wait_s = getattr(error, "retry_after_s", None)  # errors that pass have it
    if wait_s is not None:
        detail = f"Try again in {int(wait_s)} s: send the same."
        headers = {"Retry-After": str(int(wait_s))}
        return refusal({"error": "busy", "detail": detail}, 503, headers)
    for kind, status, name in _ANSWERS:
        if isinstance(error, kind):
            later = RETRY_AFTER if status == 503 else None
            body = {"error": name, "detail": _detail(error), **_fields(error)}
            return refusal(body, status, later)
    return refusal({"error": "refused", "detail": type(error).__name__}, 400)


def _fields(error: NoisefloorError) -> dict[str, object]:
    """Return what a program can read beside the text: of a budget, which parts ran out."""
    if not isinstance(error, BudgetExceeded):
        return {}
    short = [
        {"quantity": one.quantity, "asked": number_or_inf(one.requested), "left": one.left}
        for one in error.short
    ]
    return {"short": short}


def _detail(error: NoisefloorError) -> str:
    if isinstance(error, BudgetExceeded):
        short = "; ".join(map(str, error.short))
        return f"Nothing was spent: {short}. Ask the ledger what spent it."
    if isinstance(error, BadFrame | MissingExtra | BrokenChain | ClockWentBack):
        return str(error)  # names of ours; such errors never hold a value
    if isinstance(error, PublicationFailed):
        return "It was paid for and failed. Nothing is drawn again; a new one needs a new id."
    if isinstance(error, SpendConflict):
        return (
            "The id stands for another request, or for a release that was lost with a restored "
            "ledger. A retry has to repeat the first request; after a loss take another id."
        )
    return type(error).__name__


async def _bad_frame(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, BadFrame)  # noqa: S101  narrows a type
    body = {"error": "bad-frame", "detail": str(error), "field": error.field, "rule": error.rule}
    return refusal(body, 400)


async def _full(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, StreamFull)  # noqa: S101  narrows a type
    detail = f"Too much waits: send the same in {error.retry_after_s} s."
    headers = {"Retry-After": str(error.retry_after_s)}
    return refusal({"error": "too-much-waits", "detail": detail}, 429, headers)


async def _refused(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, FrameRefused)  # noqa: S101  narrows a type
    status, detail, headers = _REFUSALS[error.reason]
    return refusal({"error": error.reason.value, "detail": detail}, status, headers)


async def _open_epoch(_: Request, __: Exception) -> JSONResponse:
    detail = "The epoch is open: it is released once it is closed."
    return refusal({"error": "epoch-open", "detail": detail}, 409)


async def _too_small(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, BatchTooSmall)  # noqa: S101  narrows a type
    detail = (
        f"The epoch was closed with fewer reports than the minimum of {error.minimum}: nothing "
        "is released of it, now or later. Read a later epoch, close epochs less often, or retire "
        "this one."
    )
    return refusal({"error": "batch-too-small", "detail": detail, "threshold": error.minimum}, 409)


async def _bad_store(_: Request, __: Exception) -> JSONResponse:
    detail = "The store holds something else, or lost what it held."
    return refusal({"error": "bad-store", "detail": detail}, 503, RETRY_AFTER)
