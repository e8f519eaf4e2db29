"""Bodies of requests and of refusals, and the parameters that stand in paths.

A request body is read once: its type is checked, and JSON is validated in one pass. A refusal is
short JSON with a name for programs and a sentence for people; it repeats nothing that was sent.
It says what becomes of the bytes: they are sent again, kept for later, or dropped.
"""

import json
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Annotated, Any, TypeAlias, TypeVar

from fastapi import HTTPException, Path, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from starlette.types import Send

from noisefloor.wire import MOST_EPOCH

Pairs: TypeAlias = list[tuple[bytes, bytes]]


class ClientAction(StrEnum):
    """What a client does with the bytes of a request that was refused."""

    RESEND = "resend"  # nothing is known of them: send the same again, after Retry-After if given
    WAIT = "wait"  # they were not taken: keep them, and send the same after Retry-After seconds
    DROP = "drop"  # they can never be taken as they are


_ACTIONS = {
    408: ClientAction.RESEND,
    429: ClientAction.WAIT,
    500: ClientAction.RESEND,
    503: ClientAction.RESEND,
}


def action_after(status: int, headers: Mapping[str, str] | None = None) -> ClientAction:
    """Return what a client does after a refusal; a conflict that passes names a time."""
    if status == 409 and "Retry-After" in (headers or {}):
        return ClientAction.WAIT
    return _ACTIONS.get(status, ClientAction.DROP)


def error_body(
    status: int,
    error: str,
    detail: str,
    *,
    headers: Mapping[str, str] | None = None,
    **more: str,
) -> bytes:
    """Write the body of a refusal: a name for programs, a sentence for people, what to do."""
    action = action_after(status, headers).value
    body = {"error": error, "detail": detail, "action": action, **more}
    return json.dumps(body, separators=(",", ":")).encode("ascii")


async def refuse(
    send: Send,
    status: int,
    error: str,
    detail: str,
    *,
    headers: Mapping[str, str] | None = None,
    **more: str,
) -> None:
    """Answer with a refusal; what the caller sent is no part of it."""
    body = error_body(status, error, detail, headers=headers, **more)
    pairs: Pairs = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"cache-control", b"no-store"),
    ]
    pairs += [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})


def header(pairs: Iterable[tuple[bytes, bytes]], name: bytes) -> list[bytes]:
    """Return every value that a header has; ASGI gives names in lower case."""
    return [value for key, value in pairs if key == name]


KindName = Annotated[
    str, Path(pattern=r"^[a-z][a-z0-9-]{0,31}$", description="Name of a kind of report.")
]
EpochNumber = Annotated[int, Path(ge=0, le=MOST_EPOCH)]


FRAME_TYPE = "application/vnd.apache.arrow.stream"
_FRAME_TYPES = [FRAME_TYPE.encode()]
_JSON_TYPE = "application/json"

_Body = TypeVar("_Body", bound=BaseModel)


def is_frame(request: Request) -> bool:
    """Tell whether a body is called a frame."""
    return header(request.scope["headers"], b"content-type")[:1] == _FRAME_TYPES


async def frame_body(request: Request) -> bytes:
    """Return a body that is called a frame."""
    if not is_frame(request):
        raise HTTPException(415, f"Expected a body of type {FRAME_TYPE}.")
    return await request.body()


async def json_body(request: Request, model: type[_Body]) -> _Body:
    """Return a body of JSON that obeys every rule of the model."""
    types = header(request.scope["headers"], b"content-type")
    if not types or types[0].partition(b";")[0].strip().lower() != _JSON_TYPE.encode():
        raise HTTPException(415, f"Expected a body of type {_JSON_TYPE}.")
    try:
        return model.model_validate_json(await request.body())
    except ValidationError as error:
        found = [
            {**one, "loc": ("body", *one["loc"])}
            for one in error.errors(include_url=False, include_input=False)
        ]
        raise RequestValidationError(found) from None


_FRAME_SCHEMA = {FRAME_TYPE: {"schema": {"type": "string", "format": "binary"}}}


def openapi_json_body(
    model: type[BaseModel],
    *,
    or_frame: bool = False,
) -> dict[str, Any]:  # Any: JSON
    """Describe a body of JSON for the interface, or of either type."""
    content = {_JSON_TYPE: {"schema": model.model_json_schema()}}
    content |= _FRAME_SCHEMA if or_frame else {}
    return {"requestBody": {"required": True, "content": content}}


def openapi_frame_body() -> dict[str, Any]:  # Any: JSON
    """Describe a body that is a frame for the interface."""
    return {"requestBody": {"required": True, "content": dict(_FRAME_SCHEMA)}}
