"""An aggregator as bytes: versioned JSON with a checksum, the same bytes for the same state.

Rows that were collected are written sorted, and batch ids apart from them: a snapshot does not
tell which rows came together. The checksum finds damage, not forgery.
"""

import hashlib
import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from noisefloor.canonical_json import canonical_json
from noisefloor.checks import check_count
from noisefloor.errors import BadSnapshot, NoisefloorError
from noisefloor.roles.batches import BatchTerms
from noisefloor.roles.epochs import EpochState, EpochWindow
from noisefloor.roles.frame_outcomes import DeadLetter, FrameCounters
from noisefloor.wire import ID_BYTES, Kind, Reduction

VERSION = 2
FIRST_VERSION = 1
"""It holds no terms: any batch was released, and nothing was stated."""


@dataclass(frozen=True, slots=True)
class AggregatorContents:
    """What a snapshot holds."""

    counters: FrameCounters
    dead_letters: tuple[DeadLetter, ...]
    windows: dict[str, EpochWindow]
    terms: BatchTerms = field(default_factory=BatchTerms)


def encode(contents: AggregatorContents, version: int = VERSION) -> bytes:
    """Write the contents; everything is sorted, so that history leaves no trace."""
    windows = contents.windows
    body: dict[str, object] = {
        "version": version,
        "counters": asdict(contents.counters),
        "dead_letters": [asdict(letter) for letter in sorted(contents.dead_letters)],
        "kinds": {name: _window_fields(window) for name, window in windows.items()},
    }
    if version > FIRST_VERSION:
        body["terms"] = contents.terms.fields
    return canonical_json({"body": body, "checksum": _checksum(body)})


def decode(data: bytes, kinds: Mapping[str, Kind], width: int) -> AggregatorContents:
    """Read a snapshot of these kinds, or refuse it with BadSnapshot."""
    body = _body(data)
    try:
        contents = AggregatorContents(
            _counters(body["counters"]),
            tuple(_letter(fields) for fields in body["dead_letters"]),
            {name: _window(kinds[name], fields, width) for name, fields in body["kinds"].items()},
            BatchTerms.read(body["terms"]) if body["version"] > FIRST_VERSION else BatchTerms(),
        )
        written = encode(contents, body["version"])
        is_canonical = set(contents.windows) == set(kinds) and written == data
    # What Arrow raises on bad bytes included.
    except (
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        OSError,
        EOFError,
        NoisefloorError,
    ):
        raise BadSnapshot("Aggregator snapshot: body is not that of these kinds.") from None
    if not is_canonical:
        raise BadSnapshot("Aggregator snapshot: body is not in canonical form.")
    return contents


def _counters(fields: dict[str, Any]) -> FrameCounters:
    counters = FrameCounters(**{name: _whole(fields[name], name) for name in fields})
    if not counters.is_conserved:
        raise ValueError("frames without an outcome")
    return counters


def _letter(fields: dict[str, Any]) -> DeadLetter:
    size_bytes = _whole(fields["size_bytes"], "size_bytes")
    return DeadLetter(str(fields["key"]), str(fields["reason"]), size_bytes)


def _whole(value: int, name: str) -> int:
    return check_count(value, name, least=0, most=1 << 62)


def _window_fields(window: EpochWindow) -> dict[str, object]:
    return {
        "kind": hashlib.sha256(repr(window.kind).encode()).hexdigest(),
        "floor": window.floor,
        "closed": sorted(window.closed),
        "epochs": {str(epoch): _state_fields(state) for epoch, state in window.states.items()},
    }


def _window(kind: Kind, fields: dict[str, Any], width: int) -> EpochWindow:
    window = EpochWindow(kind, _whole(fields["floor"], "floor"), width)
    window.closed = {_whole(epoch, "epoch") for epoch in fields["closed"]}
    for epoch, state in fields["epochs"].items():
        window.states[int(epoch)] = _state(kind, state)
    return window


def _state_fields(state: EpochState) -> dict[str, object]:
    collects = state.kind.reduction is Reduction.COLLECT
    return {
        "rows": state.rows,
        "late_rows": state.late_rows,
        "seen": _text(b"".join(sorted(state.seen))),
        "late": _text(b"".join(sorted(state.late))),
        "tally": _text(state.tally.astype("<i8").tobytes()),
        "collected": _text(state.collected().serialize()) if collects else "",
    }


def _state(kind: Kind, fields: dict[str, Any]) -> EpochState:
    state = EpochState(kind)
    state.rows = _whole(fields["rows"], "rows")
    state.late_rows = _whole(fields["late_rows"], "late_rows")
    state.seen, state.late = set(_ids(fields["seen"])), set(_ids(fields["late"]))
    # Copied, because an array over bytes cannot be added to.
    state.tally[...] = np.frombuffer(b64decode(fields["tally"], validate=True), dtype="<i8")
    if kind.reduction is Reduction.COLLECT:
        message = pa.py_buffer(b64decode(fields["collected"], validate=True))
        rows = pa.ipc.read_record_batch(message, kind.schema)
        rows.validate(full=True)
        kind.check(rows)
        if rows.num_rows != state.rows:
            raise ValueError("rows that are not counted")
        state.keep(rows)
    return state


def _ids(text: str) -> Iterable[bytes]:
    joined = b64decode(text, validate=True)
    if len(joined) % ID_BYTES:
        raise ValueError("part of an id")
    return (joined[start : start + ID_BYTES] for start in range(0, len(joined), ID_BYTES))


def _body(data: bytes) -> dict[str, Any]:
    """Return the body once version and checksum fit (Any: the caller rebuilds and compares)."""
    try:
        outer = json.loads(data.decode("ascii"))
        body, checksum = outer["body"], outer["checksum"]
        version = body["version"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise BadSnapshot("Aggregator snapshot: is not one.") from None
    if version not in (FIRST_VERSION, VERSION):
        raise BadSnapshot(f"Aggregator snapshot: version is not {FIRST_VERSION} or {VERSION}.")
    if checksum != _checksum(body):
        raise BadSnapshot("Aggregator snapshot: checksum does not fit the body.")
    checked: dict[str, Any] = body
    return checked


def _text(data: bytes) -> str:
    return b64encode(data).decode("ascii")


def _checksum(body: object) -> str:
    return hashlib.sha256(canonical_json(body)).hexdigest()
