"""A broadcast as bytes: the one form in which the server sends its model to devices.

A header of constant size, then little-endian float32: offsets, factors row by row, and the rates
where there are any. Equal broadcasts have equal bytes, so that a hash of them is a tag.
"""

import math
import struct

import numpy as np
from numpy.typing import NDArray

from noisefloor.ads.factors import AdModel, Single
from noisefloor.ads.training import Broadcast
from noisefloor.errors import BadFrame

_MAGIC = b"NFBC"
VERSION = 1
_HEADER = struct.Struct("<4sHHIIId")
"""Magic, version, whether there are rates, round, ads, dimension, centre."""

MOST_NUMBERS = 1 << 24


def write_broadcast(number: int, sent: Broadcast) -> bytes:
    """Write the broadcast of a round."""
    model, rates = sent.model, sent.rates
    has_rates = int(rates is not None)
    size = (number, model.ads, model.dimension, model.centre)
    parts = [model.offsets, model.factors, *([] if rates is None else [rates])]
    body = b"".join(part.astype("<f4").tobytes() for part in parts)
    return _HEADER.pack(_MAGIC, VERSION, has_rates, *size) + body


def read_broadcast(data: bytes) -> tuple[int, Broadcast]:
    """Return the round and its broadcast, or raise BadFrame, whatever the bytes are."""
    if len(data) < _HEADER.size:
        raise BadFrame("broadcast", "is too short")
    magic, version, has_rates, number, ads, dimension, centre = _HEADER.unpack_from(data)
    if magic != _MAGIC or version != VERSION or has_rates > 1:
        raise BadFrame("broadcast", f"is not of version {VERSION}")
    count = ads * (1 + dimension + has_rates)
    if not (ads and dimension) or count > MOST_NUMBERS or len(data) != _HEADER.size + 4 * count:
        raise BadFrame("broadcast", "does not have the length that it states")
    numbers = np.frombuffer(data, dtype="<f4", offset=_HEADER.size).astype(np.float32)
    if not (math.isfinite(centre) and np.isfinite(numbers).all()):
        raise BadFrame("broadcast", "has a number that is not finite")
    offsets, factors, rates = _cut(numbers, ads, dimension)
    model = AdModel(centre, offsets, factors.reshape(ads, dimension))
    return number, Broadcast(model, rates if has_rates else None)


def _cut(numbers: NDArray[np.float32], ads: int, dimension: int) -> tuple[Single, Single, Single]:
    end = ads * (1 + dimension)
    return numbers[:ads], numbers[ads:end], numbers[end:]
