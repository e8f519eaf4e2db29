"""What a synthesiser publishes: the noisy tables, and records made of them at will."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from noisefloor.errors import BadParameter
from noisefloor.publication.records import Records
from noisefloor.publication.schema import Schema
from noisefloor.randomness import Source


class RecordModel(Protocol):
    """Something that makes records."""

    @property
    def size(self) -> float:
        """How many records there were, as estimated from the noisy tables."""

    def sample(self, count: int, source: Source) -> Records:
        """Return so many records."""


@dataclass(frozen=True, slots=True, eq=False)
class Synthesiser:
    """A release: noisy tables, and the model that was made of them alone.

    Attributes:
        tables: Noisy integers by name. They are what was released.
        model: What follows from them.
    """

    tables: Mapping[str, NDArray[np.int64]]
    model: RecordModel

    @property
    def size(self) -> float:
        """How many records there were, as estimated from the noisy tables."""
        return self.model.size

    def sample(self, count: int, source: Source) -> Records:
        """Return synthetic records: post-processing, as often and as many as one likes.

        Args:
            count: How many, at least 1. The true number is not public where records come and go.
            source: Random bits.
        """
        return self.model.sample(count, source)


def other_columns(schema: Schema, label: str) -> tuple[str, ...]:
    """Return the columns besides the label, at least one."""
    if label not in schema.columns:
        raise BadParameter("label", label, f"one of {', '.join(schema.columns)}")
    others = tuple(name for name in schema.columns if name != label)
    if not others:
        raise BadParameter("label", label, "to leave at least one other column")
    return others


def check_records(records: Records, schema: Schema) -> None:
    """Refuse records of another schema: a domain that was not declared beforehand."""
    if records.schema != schema:
        raise BadParameter("records", "<records>", "of the schema that was planned for")
