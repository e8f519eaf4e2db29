"""Batches: how few reports may be released, and what every answer says of itself.

A batch is one epoch of one kind in one collection. It is read when its epoch is closed, and only
if it has at least ``minimum`` reports. A minimum of 1 is none: then an epoch without reports is
read as well, as zeros.

An attacker who may close, read, restore and retire epochs, and deliver honest devices' frames as
often as he likes and wherever he likes, can subtract one answer from another. The pairs of
answers that there are, and why no difference shows fewer reports than the minimum:

==============================  =================================================================
two answers                     why their difference isolates nobody
==============================  =================================================================
an open epoch, then closed      an open epoch is never read
one batch, read twice           the same bytes: a frame that comes after the close is refused and
                                never counted, a close that is repeated changes nothing, and the
                                parameters in an answer are frozen by the first read
before and after a restore of   a snapshot holds epochs, minimum and parameters; a restore can
the newest snapshot             raise the minimum and not lower it. (An older snapshot: below)
before and after retirement     there is no second answer: a retired epoch stays closed for ever,
                                and so do its frames' ids
two epochs of one kind          a frame states its epoch: no report is in both
two kinds of one epoch          a frame states its kind: no report is in both. So it is with
                                impressions and requests, sums and collected rows, and with the
                                rounds of a training. What one person sends in two kinds are two
                                reports, each with its own protection
the model after a round and     the same reports are behind both; a round below the minimum is
the round's own statistics      not trained on
two collections                 a frame counts in one collection: in the one that it names, or,
                                if it names none, in the first (``wire.encode_frame``). That
                                holds where a collection has no minimum as well: what was made
                                for the first is protected by the first one's minimum
==============================  =================================================================

Not covered, because no server can see it: a device that makes a second report of the same data;
a sender who fills a batch with reports of his own, which he knows and can subtract; and a person
who reads frames, since he can also write them anew for another epoch or collection. Nor is
a service that forgets what was read before: one whose store was emptied (in memory, a crash does
it), set back to an older backup or snapshot, or started with another namespace for its first
collection. Counts are not answers: how many frames came can be read exactly, see
``docs/operations.md``.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from noisefloor.canonical_json import canonical_json
from noisefloor.checks import check_count
from noisefloor.errors import BadParameter, BatchTooSmall
from noisefloor.privacy import Guarantee, Neighbours, number_or_inf
from noisefloor.wire import Kind, Tally

MOST_MINIMUM = 1 << 31
"""An epoch takes no more reports than this."""

ANSWER_FORMAT = 1
PARAMETERS = b"batch_parameters"
"""The key of an Arrow schema's metadata that holds the parameters of collected rows."""

UNSTATED = "the collection was registered without stating how reports of this kind are protected"
_MECHANISM = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._:+-]{0,63}", re.ASCII)
_FIELDS = frozenset({"mechanism", "epsilon", "delta", "neighbours", "reason"})


@dataclass(frozen=True, slots=True)
class ReportProtection:
    """How a device protects one report of a kind, before it is sent.

    Attributes:
        mechanism: Its name.
        guarantee: Of one report; an infinite epsilon says why there is none.
    """

    mechanism: str
    guarantee: Guarantee

    def __post_init__(self) -> None:
        if not _MECHANISM.fullmatch(self.mechanism):
            raise BadParameter("mechanism", "<text>", f"to match {_MECHANISM.pattern}")

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> "ReportProtection":  # Any: JSON
        """Read it from a document."""
        if not isinstance(fields, Mapping) or not set(fields) <= _FIELDS:
            raise BadParameter("protections", "<fields>", f"of {', '.join(sorted(_FIELDS))}")
        relations = {one.value: one for one in Neighbours}
        epsilon, delta = fields["epsilon"], fields.get("delta", 0.0)
        if epsilon != "inf" and not _is_number(epsilon):
            raise BadParameter("epsilon", "<value>", 'a number, or "inf"')
        if not _is_number(delta):
            raise BadParameter("delta", "<value>", "a number")
        if fields["neighbours"] not in relations:
            raise BadParameter("neighbours", "<text>", f"one of {', '.join(relations)}")
        guarantee = Guarantee(
            float(epsilon),
            relations[fields["neighbours"]],
            delta=float(delta),
            reason=str(fields.get("reason", "")),
        )
        return cls(str(fields["mechanism"]), guarantee)

    @property
    def fields(self) -> dict[str, object]:
        """It as plain data, as ``read`` takes it."""
        stated = self.guarantee
        return {
            "mechanism": self.mechanism,
            "epsilon": number_or_inf(stated.epsilon),
            "delta": stated.delta,
            "neighbours": stated.neighbours.value,
            "reason": stated.reason,
        }


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_NOTHING_STATED: Mapping[str, object] = {
    "mechanism": None,
    "epsilon": None,
    "delta": None,
    "neighbours": None,
    "reason": UNSTATED,
}


@dataclass(frozen=True, slots=True)
class BatchTerms:
    """On which terms the batches of a collection are released.

    Attributes:
        minimum: Reports that a batch has to have; 1 for any number.
        protections: How reports are protected, by kind; what is not stated is not invented.
    """

    minimum: int = 1
    protections: Mapping[str, ReportProtection] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_count(self.minimum, "minimum_batch", most=MOST_MINIMUM)

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> "BatchTerms":  # Any: JSON
        """Read terms from plain data."""
        stated = {name: ReportProtection.read(one) for name, one in fields["protections"].items()}
        return cls(fields["minimum"], stated)

    @property
    def fields(self) -> dict[str, object]:
        """Them as plain data."""
        stated = {name: one.fields for name, one in self.protections.items()}
        return {"minimum": self.minimum, "protections": stated}

    def has_enough(self, rows: int) -> bool:
        """Whether a closed epoch with that many reports may be released."""
        return self.minimum == 1 or rows >= self.minimum

    def check_rows(self, kind: str, epoch: int, rows: int) -> None:
        """Raise BatchTooSmall if there are too few."""
        if not self.has_enough(rows):
            raise BatchTooSmall(kind, epoch, self.minimum)

    def coarse(self, count: int) -> int:
        """Return a count that may be shown of a batch that is not released: whole minimums."""
        return count - count % self.minimum

    def parameters(self, kind: Kind, rows: int) -> dict[str, object]:
        """Return what an answer says of itself."""
        stated = self.protections.get(kind.name)
        return {
            "format": ANSWER_FORMAT,
            "rows": rows,
            "threshold": self.minimum,
            "sensitivity": kind.sensitivity,
            **(_NOTHING_STATED if stated is None else stated.fields),
        }


def sums_answer(kind: str, epoch: int, cells: Tally, parameters: Mapping[str, object]) -> bytes:
    """Write the answer of a kind that is summed: canonical JSON, one form for one batch."""
    head = {"kind": kind, "epoch": epoch, "rows": parameters["rows"]}
    return canonical_json({**head, "cells": cells.tolist(), "parameters": dict(parameters)})


def rows_answer(batch: pa.RecordBatch, parameters: Mapping[str, object]) -> bytes:
    """Write the answer of a kind that is collected: an Arrow stream of sorted rows."""
    schema = batch.schema.with_metadata({PARAMETERS: canonical_json(dict(parameters))})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(batch.replace_schema_metadata(schema.metadata))
    content: bytes = sink.getvalue().to_pybytes()
    return content


def read_parameters(schema: pa.Schema) -> dict[str, Any]:  # Any: JSON
    """Return the parameters that collected rows carry."""
    found: dict[str, Any] = json.loads((schema.metadata or {})[PARAMETERS])
    return found
