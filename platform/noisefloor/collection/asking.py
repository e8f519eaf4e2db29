"""Asking each owner for some attributes: who is asked for what, and the answers as rows.

What an owner sends in a selection are the attributes that were asked for, an integer for each of
them and, mostly, one for the label; what the integers mean is the selection's business.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import Array, blocks, check_count
from noisefloor.collection.schema import Records
from noisefloor.errors import BadParameter
from noisefloor.randomness import Source
from noisefloor.wire.columns import Column, Integers, Symbols
from noisefloor.wire.kinds import Kind, record_kind

ASKED_VALUES = "asked-values"
"""The kind's name."""


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """What owners sent, a row for each.

    Attributes:
        asked: The attributes that each was asked for.
        told: An integer for each of these.
        labels: One for the label, or nothing where it is not sent by itself.
    """

    asked: NDArray[np.intp]
    told: NDArray[np.int64]
    labels: NDArray[np.int64] | None = None

    def columns(self) -> dict[str, Array]:
        """Return the answers as the columns of their kind."""
        parts = {f"attribute_{place}": one for place, one in _numbered(self.asked)}
        parts |= {f"value_{place}": one for place, one in _numbered(self.told)}
        return parts if self.labels is None else {**parts, "label": self.labels}

    @classmethod
    def of(cls, columns: Mapping[str, Array]) -> "Answers":
        """Return what ``columns`` was called on."""
        count, labels = len(columns) // 2, columns.get("label")
        asked, told = (
            np.column_stack([columns[f"{name}_{place + 1}"] for place in range(count)])
            for name in ("attribute", "value")
        )
        numbers = None if labels is None else labels.astype(np.int64)
        return cls(asked.astype(np.intp), told.astype(np.int64), numbers)

    def where(self, kept: NDArray[np.bool_]) -> "Answers":
        """Return some of the owners' answers."""
        labels = None if self.labels is None else self.labels[kept]
        return Answers(self.asked[kept], self.told[kept], labels)


def asked_values_kind(attributes: int, chosen: int, values: int, labels: int) -> Kind:
    """Make the kind of answers to a selection.

    Args:
        attributes: How many there are to be asked for.
        chosen: How many an owner is asked for.
        values: How many integers an answer is one of.
        labels: How many the label is one of; 0 where it is not sent by itself.
    """
    check_count(chosen, "chosen", most=attributes)
    places = range(1, chosen + 1)
    columns: dict[str, Column] = {f"attribute_{one}": Symbols(attributes) for one in places}
    columns |= {f"value_{one}": Integers(0, values - 1) for one in places}
    return record_kind(
        ASKED_VALUES, columns | ({"label": Integers(0, labels - 1)} if labels else {})
    )


def draw_asked(records: Records, per_owner: int, source: Source) -> NDArray[np.intp]:
    """Return the attributes that each owner is asked for, drawn without replacement."""
    attributes = check_width(records, per_owner)
    words = source.stage("asked")
    asked = np.empty((len(records), per_owner), dtype=np.intp)
    for rows in blocks(len(records), attributes):
        drawn = words.words((rows.stop - rows.start) * attributes).reshape(-1, attributes)
        if per_owner == attributes:
            asked[rows] = np.arange(attributes)
        else:
            asked[rows] = np.argpartition(drawn, per_owner - 1, axis=1)[:, :per_owner]
    return asked


def check_width(records: Records, count: int) -> int:
    """Return how many attributes records have, if these are enough."""
    attributes = int(records.values.shape[1])
    if count > attributes:
        raise BadParameter("count", count, f"at most the number of attributes, {attributes}")
    return attributes


def _numbered(rows: Array) -> list[tuple[int, Array]]:
    return [(place + 1, rows[:, place]) for place in range(rows.shape[1])]
