"""Broadcasts and fitted models as bytes: plain data and arrays of numbers.

A head of constant size, then canonical JSON that names the arrays, then their numbers as
little-endian float64. There is one way to write a content, and nothing in it is ever run: bytes
that are anything else are refused.
"""

import json
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from noisefloor.canonical_json import canonical_json
from noisefloor.checks import Floats
from noisefloor.errors import BadFrame

_MAGIC = b"NFRC"
VERSION = 1
_HEAD = struct.Struct("<4sHI")
"""Magic, version, bytes of JSON."""

MOST_BYTES = 1 << 26


@dataclass(frozen=True, slots=True, eq=False)
class RoundContent:
    """Plain data and arrays by name."""

    payload: Mapping[str, Any]  # Any: JSON
    arrays: Mapping[str, Floats]


def write_content(content: RoundContent) -> bytes:
    """Write a content in the one form."""
    names = sorted(content.arrays)
    arrays = [np.asarray(content.arrays[name], dtype="<f8") for name in names]
    shapes = {name: list(array.shape) for name, array in zip(names, arrays, strict=True)}
    text = canonical_json({"told": dict(content.payload), "arrays": shapes}, allow_nan=False)
    body = b"".join(array.tobytes() for array in arrays)
    return _HEAD.pack(_MAGIC, VERSION, len(text)) + text + body


def read_content(data: bytes) -> RoundContent:
    """Read a content, or raise BadFrame, whatever the bytes are."""
    if not isinstance(data, bytes) or not _HEAD.size <= len(data) <= MOST_BYTES:
        raise BadFrame("content", f"is not bytes, too short, or longer than {MOST_BYTES} bytes")
    magic, version, length = _HEAD.unpack_from(data)
    if magic != _MAGIC or version != VERSION:
        raise BadFrame("content", f"is not of version {VERSION}")
    start = _HEAD.size + length
    try:
        outer = json.loads(data[_HEAD.size : start])
        payload, shapes = outer["told"], outer["arrays"]
        content = RoundContent(dict(payload), _arrays(data[start:], shapes))
        is_one_form = set(outer) == {"told", "arrays"} and write_content(content) == data
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        raise BadFrame("content", "cannot be read") from None
    if not is_one_form:
        raise BadFrame("content", "is not written in the one form")
    return content


def _arrays(body: bytes, shapes: Mapping[str, list[int]]) -> dict[str, Floats]:
    """Cut the numbers into arrays; sizes are checked before anything is made of them."""
    numbers = np.frombuffer(body, dtype="<f8").astype(np.float64)
    if not np.isfinite(numbers).all():
        raise BadFrame("content", "has a number that is not finite")
    arrays, start = {}, 0
    for name in sorted(shapes):
        shape = shapes[name]
        if not all(type(size) is int and 0 <= size <= MOST_BYTES for size in shape):
            raise BadFrame("content", "has an array of no shape")
        stop = start + math.prod(shape)
        if len(shape) > 2 or stop > len(numbers):
            raise BadFrame("content", "has fewer numbers than its arrays")
        arrays[name] = numbers[start:stop].reshape(shape)
        start = stop
    if start != len(numbers):
        raise BadFrame("content", "has more numbers than its arrays")
    return arrays
