"""Private tables first; then whatever one likes: a plain classifier, or the tables themselves."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from noisefloor.accounting import ReleaseLoss
from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee
from noisefloor.publication.methods import noisy_networks, private_tables
from noisefloor.publication.methods.canaries import TableCanary
from noisefloor.publication.methods.model_plan import INTEGER_NOISE, ModelPlan
from noisefloor.publication.methods.model_spec import ModelSpec, ParameterReader
from noisefloor.publication.methods.private_tables import PrivateTables, release_tensors
from noisefloor.publication.networks import DenseNetwork, NetworkTraining, train
from noisefloor.publication.noised_vectors import ResidualObserver
from noisefloor.publication.tensors import read_metadata, read_tensors, write_tensors
from noisefloor.randomness import Source
from noisefloor.tables import Examples, Records, schema_fields

FORM = "tables"
MOST_BYTES = 32 << 20

_ATTEMPTS = 6

_TRAINING = ("hidden", "epochs", "batch", "learning_rate", "decay")


@dataclass(frozen=True, slots=True)
class AnonymisingFirstPlan(ModelPlan):
    """A plain classifier of synthetic records: post-processing of private tables.

    Attributes:
        spec: The request.
        tables: What is counted, with which noise.
        training: How the classifier is trained on what comes of them.
    """

    NAME = "anonymising-first"
    HELP = f"""A classifier that is trained on synthetic records from private tables, as
safetensors. Parameters: `label`, the column that is predicted; {private_tables.HELP}; training:
`hidden`, widths with commas between them or `none` (the default: a linear model), `epochs`,
`batch`, `learning_rate` (lowered where it leads to no numbers), `decay`. With a delta the noise
is Gaussian, without one Laplace."""

    FLOATS = INTEGER_NOISE

    spec: ModelSpec
    tables: PrivateTables
    training: NetworkTraining

    @classmethod
    def of(cls, spec: ModelSpec) -> "AnonymisingFirstPlan":
        """Plan tables for the whole cost, and a training that costs nothing more."""
        reader = ParameterReader(spec.parameters, (*private_tables.PARAMETERS, *_TRAINING))
        tables = PrivateTables.of(reader, spec)
        training = noisy_networks.read_training(reader, spec, hidden="none", epochs=5, rate=0.5)
        return cls(spec, tables, training)

    @property
    def proved(self) -> Guarantee:
        """Of all tables together, and so of the model."""
        return self.tables.proved

    @property
    def loss(self) -> ReleaseLoss:
        """Of all tables together."""
        return self.tables.loss

    @property
    def settings(self) -> Mapping[str, Any]:  # Any: JSON
        """How it is made, with defaults filled in."""
        return {**self.tables.settings, **noisy_networks.training_fields(self.training)}

    @property
    def canary(self) -> TableCanary:
        """A record that is in every table, or not: the model tells no more than the tables."""
        return self.tables.canary

    def release(
        self, records: Records, source: Source, residuals: ResidualObserver | None = None
    ) -> bytes:
        """Return the file that is published; each call is a release of its own."""
        _, rows = self.tables.release(records, source, residuals=residuals)
        examples = self.tables.encoding.examples(rows)
        network = train_until_finite(examples, self.training, source.child("training"))
        return noisy_networks.network_file(self.tables.encoding, network)


def train_until_finite(
    examples: Examples, training: NetworkTraining, source: Source
) -> DenseNetwork:
    """Train until weights are numbers, at an eighth of the learning rate each time.

    The examples are synthetic, so that this is post-processing. A release that failed instead
    would be drawn anew for the same charge, and the requester would have seen something of the
    first draw.
    """
    for attempt in range(_ATTEMPTS):
        slower = replace(training, learning_rate=training.learning_rate / 8**attempt)
        found = train(examples, slower, source.child("attempt", attempt), is_checked=False)
        if np.isfinite(found.vector).all():
            return found
    return DenseNetwork(found.shape, np.zeros_like(found.vector))


@dataclass(frozen=True, slots=True)
class SyntheticTablePlan(ModelPlan):
    """Noisy tables and synthetic records, for a reader who trains a model of their own.

    Attributes:
        spec: The request.
        tables: What is counted, with which noise.
    """

    NAME = "synthetic-table"
    HELP = f"""Noisy tables and synthetic records of them, as safetensors: tensors `tables/NAME` of
64-bit counts (unclipped, they may be negative) and `rows/NAME` of 32-bit places in each column's
domain, which is in the metadata under `noisefloor`. Parameters: `label`, the column that all
others are counted with; {private_tables.HELP}. With a delta the noise is Gaussian, without one
Laplace."""

    FLOATS = INTEGER_NOISE
    IS_CLASSIFIER = False

    spec: ModelSpec
    tables: PrivateTables

    @classmethod
    def of(cls, spec: ModelSpec) -> "SyntheticTablePlan":
        """Plan tables for the whole cost."""
        tables = PrivateTables.of(
            ParameterReader(spec.parameters, private_tables.PARAMETERS), spec
        )
        columns = len(tables.encoding.schema.columns)
        if tables.rows is not None and tables.rows * columns * 4 > MOST_BYTES:
            most = MOST_BYTES // 4 // columns
            raise BadParameter("rows", tables.rows, f"at most {most} for {columns} columns")
        return cls(spec, tables)

    @property
    def proved(self) -> Guarantee:
        """Of all tables together, and so of the records."""
        return self.tables.proved

    @property
    def loss(self) -> ReleaseLoss:
        """Of all tables together."""
        return self.tables.loss

    @property
    def settings(self) -> Mapping[str, Any]:  # Any: JSON
        """How it is made, with defaults filled in."""
        return self.tables.settings

    @property
    def canary(self) -> TableCanary:
        """A record that is in every table, or not."""
        return self.tables.canary

    def release(
        self, records: Records, source: Source, residuals: ResidualObserver | None = None
    ) -> bytes:
        """Return the file that is published; each call is a release of its own."""
        columns = len(self.tables.encoding.schema.columns)
        most = MOST_BYTES // 4 // columns
        made, rows = self.tables.release(records, source, most, residuals)
        encoding = self.tables.encoding
        about = {
            "form": FORM,
            "label": encoding.label,
            "schema": schema_fields(encoding.schema),
            "tables": self.tables.kind,
        }
        metadata = {"noisefloor": json.dumps(about)}
        return write_tensors(release_tensors(made, rows), metadata)

    def describe(self, content: bytes) -> dict[str, Any]:  # Any: JSON
        """Return what a card says beside the guarantee: from the plan and the file alone."""
        about = json.loads(read_metadata(content)["noisefloor"])
        tensors = read_tensors(content)
        return {
            "format": "safetensors",
            "record": about["schema"]["record"],
            "label": about["label"],
            "tensors": {
                name: {"dtype": str(one.dtype), "shape": list(one.shape)}
                for name, one in sorted(tensors.items())
            },
            "training": dict(self.settings),
        }
