"""A training of the ads' model as a task: its content is the broadcast as bytes.

A broadcast as bytes: the one form in which the server sends its model to devices.

A header of constant size, then little-endian float32: offsets, factors row by row, and the rates
where there are any. Equal broadcasts have equal bytes, so that a hash of them is a tag.

Every way of training that a server may run, listed in one place, as plain data.

A way of training is a frozen value; its parameters are public, the seed of the untrained model
included. So server and devices can agree on one by a description.
"""

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import Enum
from types import MappingProxyType
from typing import Any, NoReturn, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from noisefloor.ads.training import (
    AdModel,
    AdTraining,
    BitTraining,
    Broadcast,
    GradientBound,
    LaplaceTraining,
    Single,
    SpectralTraining,
    with_fallback,
)
from noisefloor.checks import check_types
from noisefloor.errors import BadFrame, BadParameter
from noisefloor.tasks.training_task import RoundRelease
from noisefloor.wire import Kind

_Type: TypeAlias = type[BitTraining] | type[LaplaceTraining] | type[SpectralTraining]

AD_TRAININGS: Mapping[str, _Type] = MappingProxyType(
    {"bits": BitTraining, "laplace": LaplaceTraining, "spectral": SpectralTraining}
)


def ad_training_from_description(payload: Mapping[str, Any]) -> AdTraining:  # Any: JSON
    """Make the training that was requested: ``{"method": "bits", "ads": 20, ...}``.

    With ``users``, the number of users that are expected, protected means are learned in its place
    where the predicted noise exceeds the signal. Devices that read the same description come to
    the same training.
    """
    given = dict(payload)
    method, users = given.pop("method", None), given.pop("users", None)
    if method not in AD_TRAININGS:
        raise BadParameter("method", method, f"one of {', '.join(AD_TRAININGS)}")
    if "form" in given and method == "laplace":
        forms = {form.value: form for form in GradientBound}
        if given["form"] not in forms:
            raise BadParameter("form", given["form"], f"one of {', '.join(forms)}")
        given["form"] = forms[given["form"]]
    if "shares" in given:
        given["shares"] = tuple(given["shares"])
    check_types(AD_TRAININGS[method], given)
    try:
        made = AD_TRAININGS[method](**given)
    except TypeError:
        raise BadParameter(
            method, sorted(given), "the parameters that this method takes"
        ) from None
    return made if users is None else with_fallback(made, users)


def training_description(training: AdTraining) -> dict[str, Any]:  # Any: JSON
    """Describe a training as plain data that ``training_of`` reads."""
    names: dict[type, str] = {made: name for name, made in AD_TRAININGS.items()}
    payload: dict[str, Any] = {"method": names[type(training)]}
    for one in fields(training):  # type: ignore[arg-type]  # each of them is a dataclass
        if one.init:
            value = getattr(training, one.name)
            payload[one.name] = value.value if isinstance(value, Enum) else value
    return payload


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


@dataclass(frozen=True, slots=True)
class AdTask:
    """One training.

    Attributes:
        training: How devices report and how the server learns from it.
    """

    training: AdTraining

    @property
    def rounds(self) -> int:
        """How often the server broadcasts and devices answer."""
        return self.training.rounds

    @property
    def query_kind(self) -> Kind | None:
        """None: devices predict by themselves, from the broadcast."""
        return None

    def kind(self, number: int) -> Kind:
        """Return the kind of frame of a round."""
        return self.training.kind(number)

    def first(self) -> bytes:
        """Return the first broadcast."""
        return write_broadcast(0, self.training.start())

    def round_of(self, content: bytes) -> int:
        """Return the round of a broadcast, or raise BadFrame if it is of another training."""
        return self._read(content)[0]

    def next(self, number: int, content: bytes, released: RoundRelease) -> bytes:
        """Return the next broadcast, from the sums of a round."""
        _, sent = self._read(content)
        if released.count:
            if released.tally is None:
                raise BadParameter("released", released.rows, "sums")
            sent = self.training.update(number, sent, released.tally, released.count)
        return write_broadcast(number + 1, sent)

    def answers(self, content: bytes, queries: pa.RecordBatch) -> NoReturn:
        """Refuse: nobody asks."""
        raise BadParameter("course", "ads", "one that answers queries")

    def _read(self, content: bytes) -> tuple[int, Broadcast]:
        number, sent = read_broadcast(content)
        shape = self.training.start().model.factors.shape
        if number > self.rounds or sent.model.factors.shape != shape:
            raise BadFrame("broadcast", "is of another training")
        return number, sent
