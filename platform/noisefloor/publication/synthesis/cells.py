"""Synthetic records of a few columns, from one histogram of all their cells."""

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import check_count
from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee
from noisefloor.publication.histogram import MOST_CELLS
from noisefloor.publication.synthesis import record_model
from noisefloor.publication.synthesis.noise_budget import NoiseBudget, table_change
from noisefloor.randomness import Source
from noisefloor.tables import MOST_ROWS, Records, Schema

CELLS = "cells"


@dataclass(frozen=True, slots=True, eq=False)
class CellRecordModel:
    """Records drawn cell by cell.

    Attributes:
        schema: Of the records that it makes: the counted columns.
        counts: Of every cell, not negative.
    """

    schema: Schema
    counts: NDArray[np.float64]

    @property
    def size(self) -> float:
        """How many records there were, as estimated from the noisy table."""
        return float(self.counts.sum())

    def sample(self, count: int, source: Source) -> Records:
        """Return ``count`` records."""
        check_count(count, "count", most=MOST_ROWS)
        uniforms = source.stage("sample").uniforms(count)
        cells = record_model.sample_rows(
            self.counts.reshape(1, -1), np.zeros(count, dtype=np.int64), uniforms
        )
        places = np.unravel_index(cells, self.counts.shape)
        named = zip(self.schema.columns, places, strict=True)
        return record_model.decode_records(
            self.schema, {name: one.astype(np.int64) for name, one in named}
        )


@dataclass(frozen=True)
class CellHistogram:
    """All cells of a few columns and the label.

    Guarantee:  epsilon (Laplace) or (epsilon, delta) (Gaussian) of all cells together, from the
                integer weights that are drawn from. Per release.
    Neighbours: one record added or removed (one cell changes by one), or one substituted (two).
    Domain:     records of the schema, whose domains are public; nothing is clipped.
    Reference:  Dwork and Roth 2014, section 3.3 (histograms), doi 10.1561/0400000042.

    Attributes:
        schema: What is public of the records.
        columns: Those that are counted, chosen without looking at the records.
        cost: What the table may cost.
    """

    schema: Schema
    columns: tuple[str, ...]
    cost: Guarantee

    def __post_init__(self) -> None:
        if not self.columns or len(set(self.columns)) < len(self.columns):
            raise BadParameter("columns", "<text>", "at least one, each named once")
        sizes = [self.schema.column(name).size for name in self.columns]
        if prod(sizes) > MOST_CELLS:
            raise BadParameter("columns", "<text>", f"of at most {MOST_CELLS} cells together")
        self.budget  # noqa: B018  # a cost that cannot be met is refused here

    @cached_property
    def budget(self) -> NoiseBudget:
        """The noise of the table."""
        return NoiseBudget.of(
            self.cost, {"cells": table_change(1, self.cost.neighbours)}, {"cells": 1.0}
        )

    @property
    def guarantee(self) -> Guarantee:
        """What is proved of a release."""
        return self.budget.guarantee

    @property
    def made(self) -> Schema:
        """The schema of the records that are made: of the counted columns."""
        kept = {name: self.schema.column(name) for name in self.columns}
        return Schema(self.schema.record, kept)

    def release(self, records: Records, source: Source) -> record_model.Synthesiser:
        """Return the noisy table and the model of it; each call is a release of its own."""
        record_model.check_records(records, self.schema)
        table = self.budget.noises["cells"].add(records.counts(self.columns), source)
        whole = max(float(table.sum()), 1.0)
        counts = record_model.projected(table.reshape(-1).astype(np.float64), whole).reshape(
            table.shape
        )
        return record_model.Synthesiser({"cells": table}, CellRecordModel(self.made, counts))

    def log_likelihood(self, released: record_model.Synthesiser, records: Records) -> float:
        """Return ln P(table | records), exactly."""
        record_model.check_records(records, self.schema)
        counts = records.counts(self.columns)
        return self.budget.noises["cells"].log_likelihood(released.tables["cells"], counts)
