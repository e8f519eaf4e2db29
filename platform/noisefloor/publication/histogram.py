"""A private histogram of one or several columns: noisy counts of every cell of a public grid."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee, TrustModel
from noisefloor.publication.cell_noise import CellNoise, GaussianCells, LaplaceCells
from noisefloor.publication.tensors import write_tensors
from noisefloor.randomness import Source
from noisefloor.tables import Records, Schema

HISTOGRAM = "histogram"
HISTOGRAM_HELP = """\
Noisy counts of every cell of some columns. Parameters: `columns`, names of columns with
commas between them; `noise`, `laplace` (exact epsilon, no delta) or `gaussian` (takes a delta), by
default the one that fits the cost. The file has one tensor `counts` of 64-bit integers with an
axis for each column; what the places of an axis mean is in its metadata under `noisefloor`.
Counts may be negative: nothing is clipped."""
MOST_CELLS = 1 << 20

_PARAMETERS = frozenset({"columns", "noise"})


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts of all cells of some columns, with noise of its own in every cell.

    Guarantee:  epsilon (Laplace) or (epsilon, delta) (Gaussian) of all cells together, from the
                integer weights that are drawn from. Per release.
    Neighbours: one record added or removed (one cell changes by one), or one record substituted
                (two cells do); the columns and their domains are public.
    Domain:     records whose values all lie in the schema; nothing is clipped.
    Reference:  Dwork and Roth 2014, section 3.3 (histograms), doi 10.1561/0400000042.
    """

    schema: Schema
    columns: tuple[str, ...]
    noise: CellNoise

    def __post_init__(self) -> None:
        if not self.columns or len(set(self.columns)) < len(self.columns):
            raise BadParameter("columns", "<text>", "at least one, each named once")
        if prod(self.shape) > MOST_CELLS:
            raise BadParameter("columns", "<text>", f"of at most {MOST_CELLS} cells together")

    @classmethod
    def of(
        cls, schema: Schema, parameters: Mapping[str, str | int | float | bool], cost: Guarantee
    ) -> "Histogram":
        """Plan a histogram for a request; no data are looked at.

        Args:
            schema: What is public of the data set.
            parameters: ``columns`` and perhaps ``noise``.
            cost: What it may cost, and under which relation.
        """
        unknown = set(parameters) - _PARAMETERS
        if unknown:
            raise BadParameter("parameters", "<name>", f"some of {', '.join(sorted(_PARAMETERS))}")
        names = parameters.get("columns", "")
        if not isinstance(names, str):
            raise BadParameter("columns", names, "names with commas between them")
        listed = tuple(name.strip() for name in names.split(","))
        return cls(schema, listed, _noise(parameters, cost))

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each column's domain."""
        return tuple(self.schema.column(name).size for name in self.columns)

    @property
    def guarantee(self) -> Guarantee:
        """What is proved of a release."""
        return self.noise.guarantee

    @property
    def facts(self) -> dict[str, Any]:  # Any: JSON
        """What a card says beside the guarantee; it follows from the request alone."""
        return {
            "format": "safetensors",
            "tensors": {"counts": {"dtype": "int64", "shape": list(self.shape)}},
            "columns": list(self.columns),
            "record": self.schema.record,
            "noise": self.noise.facts,
        }

    def draw(self, records: Records, source: Source) -> NDArray[np.int64]:
        """Return noisy counts; each call is a release of its own."""
        return self.noise.add(records.counts(self.columns), source)

    def release(self, records: Records, source: Source) -> bytes:
        """Return noisy counts as a file, with the meaning of its axes in the metadata."""
        axes = [{"name": name, **self.schema.column(name).fields} for name in self.columns]
        about = {"method": HISTOGRAM, "record": self.schema.record, "axes": axes}
        metadata = {"noisefloor": json.dumps(about, sort_keys=True)}
        return write_tensors({"counts": self.draw(records, source)}, metadata)

    def log_likelihood(self, released: NDArray[np.int64], records: Records) -> float:
        """Return ln P(released | records), exactly."""
        return self.noise.log_likelihood(released, records.counts(self.columns))


def _noise(parameters: Mapping[str, str | int | float | bool], cost: Guarantee) -> CellNoise:
    if cost.model is not TrustModel.CENTRAL:
        raise BadParameter("model", cost.model.value, "central: a curator counts")
    noise = parameters.get("noise", "gaussian" if cost.delta else "laplace")
    if noise == "laplace":
        if cost.delta:
            raise BadParameter("delta", cost.delta, "0 with Laplace noise, which needs none")
        return LaplaceCells(cost.epsilon, cost.neighbours)
    if noise == "gaussian":
        return GaussianCells(cost.epsilon, cost.delta, cost.neighbours)
    raise BadParameter("noise", "<text>", "laplace or gaussian")
