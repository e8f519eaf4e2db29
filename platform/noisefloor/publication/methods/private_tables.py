"""Private tables as a step of a method: which kind, what it costs, what a canary changes in it."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import ReleaseLoss
from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee
from noisefloor.publication import synthesis
from noisefloor.publication.cell_noise import changed_cells
from noisefloor.publication.histogram import MOST_CELLS
from noisefloor.publication.methods.canaries import TableCanary
from noisefloor.publication.methods.model_spec import ModelSpec, ParameterReader
from noisefloor.publication.noised_vectors import NoisedVector, ResidualObserver
from noisefloor.randomness import Source
from noisefloor.tables import OneHot, Records, Schema

KINDS = (synthesis.LABEL_HISTOGRAMS, synthesis.CELLS, synthesis.MARGINAL_TREE)
PARAMETERS = ("tables", "columns", "rows")
HELP = f"""`tables`: `{"`, `".join(KINDS)}` (default {synthesis.MARGINAL_TREE}); `columns`, for
`{synthesis.CELLS}`, those that are counted with the label, chosen without looking at the data;
`rows`, how many synthetic records are drawn (default: `size`, or what the noisy tables tell)"""
MOST_ROWS = 1 << 22
"""Of synthetic records: more tell no more, and have to fit into memory."""

_MOST_COLUMNS = 64


class _Tables(Protocol):
    """What the three kinds have in common."""

    @property
    def budget(self) -> synthesis.NoiseBudget: ...

    @property
    def guarantee(self) -> Guarantee: ...

    def release(self, records: Records, source: Source) -> synthesis.Synthesiser: ...


@dataclass(frozen=True, slots=True)
class PrivateTables:
    """Noisy tables under one budget, and how many synthetic records are made of them.

    Attributes:
        kind: ``label-histograms``, ``cells`` or ``marginal-tree``.
        tables: What is counted, and with which noise.
        changes: What one record changes, by the groups of the budget.
        encoding: Of the synthetic records: the columns that were counted.
        rows: How many are made, or None for as many as the tables tell.
    """

    kind: str
    tables: _Tables
    changes: Mapping[str, synthesis.RecordChange]
    encoding: OneHot
    rows: int | None

    @classmethod
    def of(cls, reader: ParameterReader, spec: ModelSpec) -> "PrivateTables":
        """Read kind, columns and rows, and divide the cost."""
        kind = reader.choice("tables", synthesis.MARGINAL_TREE, *KINDS)
        rows = reader.whole("rows", spec.size or 1, 1, MOST_ROWS)
        if kind != synthesis.CELLS and "columns" in reader:
            raise BadParameter("columns", "<text>", f"left out: only {synthesis.CELLS} takes some")
        if len(spec.encoding.columns) > _MOST_COLUMNS:
            raise BadParameter("label", "<text>", f"to leave at most {_MOST_COLUMNS} columns")
        tables, changes = _tables(kind, reader, spec)
        encoding = OneHot(_made(tables, spec), spec.encoding.label)
        has_rows = "rows" in reader or spec.size is not None
        return cls(kind, tables, MappingProxyType(changes), encoding, rows if has_rows else None)

    @property
    def proved(self) -> Guarantee:
        """Of all tables together, and so of whatever is made of them."""
        return self.tables.guarantee

    @property
    def loss(self) -> ReleaseLoss:
        """Of all tables together."""
        return self.tables.budget.loss

    @property
    def settings(self) -> dict[str, Any]:  # Any: JSON
        """What a card says of them."""
        deviations = {
            name: noise.variance**0.5 for name, noise in self.tables.budget.noises.items()
        }
        return {
            "tables": self.kind,
            "columns": list(self.encoding.columns),
            "rows": self.rows if self.rows is not None else "as many as the noisy tables tell",
            "noise": {
                "law": "discrete Gaussian" if self.proved.delta else "discrete Laplace",
                "standard_deviations": deviations,
            },
        }

    @property
    def canary(self) -> TableCanary:
        """A record that is in every table, or not."""
        noises = self.tables.budget.noises
        return TableCanary([(noises[name], change) for name, change in self.changes.items()])

    def release(
        self,
        records: Records,
        source: Source,
        most: int = MOST_ROWS,
        residuals: ResidualObserver | None = None,
    ) -> tuple[synthesis.Synthesiser, Records]:
        """Return the noisy tables and synthetic records of them.

        Args:
            records: What is counted.
            source: Of all random numbers.
            most: How many synthetic records there may be.
            residuals: Gets the noisy tables; for simulations alone.
        """
        made = self.tables.release(records, source.child("tables"))
        if residuals is not None:
            for name, table in made.tables.items():
                residuals(NoisedVector(name, table.astype(np.float64).ravel()))
        count = min(max(1, round(made.size)), most) if self.rows is None else self.rows
        return made, made.sample(count, source.child("rows"))


def _tables(
    kind: str, reader: ParameterReader, spec: ModelSpec
) -> tuple[_Tables, dict[str, synthesis.RecordChange]]:
    encoding, cost = spec.encoding, spec.cost
    schema, label, count = encoding.schema, encoding.label, len(encoding.columns)
    relation = cost.neighbours
    if kind == synthesis.CELLS:
        columns = _columns(reader, encoding)
        return synthesis.CellHistogram(schema, (*columns, label), cost), {
            "cells": synthesis.table_change(1, relation)
        }
    _check_cells(encoding, pairs=kind == synthesis.MARGINAL_TREE)
    if kind == synthesis.LABEL_HISTOGRAMS:
        changes = {"tables": synthesis.table_change(count, relation)}
        return synthesis.LabelHistograms(schema, label, cost), changes
    changes = {
        "ones": synthesis.table_change(count, relation),
        "scores": synthesis.RecordChange(count * (count - 1) // 2, changed_cells(relation)),
        "twos": synthesis.table_change(count - 1, relation),
    }
    return synthesis.MarginalTree(schema, label, cost), changes


def _columns(reader: ParameterReader, encoding: OneHot) -> tuple[str, ...]:
    columns = reader.names("columns")
    if not columns or not set(columns) <= set(encoding.columns):
        rule = f"one or several of {', '.join(encoding.columns)}"
        raise BadParameter("columns", "<text>", rule)
    return columns


def _check_cells(encoding: OneHot, *, pairs: bool) -> None:
    """Refuse tables that would not fit into memory; each pair may be taken."""
    sizes = np.sort(encoding.sizes)[::-1]
    largest = int(sizes[0]) * (int(sizes[1]) if pairs and len(sizes) > 1 else 1)
    if largest * encoding.classes > MOST_CELLS:
        raise BadParameter("label", "<text>", f"so that a table has at most {MOST_CELLS} cells")


def _made(tables: _Tables, spec: ModelSpec) -> Schema:
    return tables.made if isinstance(tables, synthesis.CellHistogram) else spec.encoding.schema


def release_tensors(made: synthesis.Synthesiser, rows: Records) -> dict[str, NDArray[Any]]:
    """Return noisy tables and synthetic records as tensors: ``tables/NAME`` and ``rows/NAME``."""
    tensors: dict[str, NDArray[Any]] = {f"tables/{it}": one for it, one in made.tables.items()}
    return tensors | {f"rows/{it}": one.astype(np.int32) for it, one in rows.codes.items()}
