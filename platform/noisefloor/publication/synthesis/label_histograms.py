"""Synthetic records from one histogram of each column given the label."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from noisefloor.privacy import Guarantee
from noisefloor.publication.synthesis import record_model
from noisefloor.publication.synthesis.noise_budget import NoiseBudget, table_change
from noisefloor.randomness import Source
from noisefloor.tables import Records, Schema

LABEL_HISTOGRAMS = "label-histograms"


@dataclass(frozen=True)
class LabelHistograms:
    """Columns that are independent given the label.

    Guarantee:  epsilon (Laplace) or (epsilon, delta) (Gaussian) of all tables together, from the
                integer weights that are drawn from. Per release.
    Neighbours: one record added or removed (a cell of every table changes by one), or one
                substituted (two cells of every table).
    Domain:     records of the schema, whose domains are public; nothing is clipped.
    Reference:  Zhang et al. 2017 (PrivBayes, of degree 0 given the label),
                doi 10.1145/3134428.

    Attributes:
        schema: What is public of the records.
        label: The column that all others are counted with.
        cost: What all tables may cost.
        printed: Whether the label is counted apart as well, and paid for. Its counts follow from
            any of the other tables, so that the corrected form leaves it out.
    """

    schema: Schema
    label: str
    cost: Guarantee
    printed: bool = False

    def __post_init__(self) -> None:
        record_model.other_columns(self.schema, self.label)
        self.budget  # noqa: B018  # a cost that cannot be met is refused here

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns besides the label."""
        return record_model.other_columns(self.schema, self.label)

    @cached_property
    def budget(self) -> NoiseBudget:
        """The noise, equal in all tables."""
        tables = len(self.columns) + self.printed
        return NoiseBudget.of(
            self.cost, {"tables": table_change(tables, self.cost.neighbours)}, {"tables": 1.0}
        )

    @property
    def guarantee(self) -> Guarantee:
        """What is proved of a release."""
        return self.budget.guarantee

    def release(self, records: Records, source: Source) -> record_model.Synthesiser:
        """Return noisy tables and the model of them; each call is a release of its own."""
        noise = self.budget.noises["tables"]
        counts = self._counts(records)
        tables = {name: noise.add(one, source.child(name)) for name, one in counts.items()}
        noisy = {
            name: record_model.NoisyTable(one, noise.variance) for name, one in tables.items()
        }
        labels = noisy.pop(self.label, None)
        return record_model.Synthesiser(
            tables, record_model.fit_forest(self.schema, self.label, noisy, {}, labels)
        )

    def log_likelihood(self, released: record_model.Synthesiser, records: Records) -> float:
        """Return ln P(tables | records), exactly."""
        noise = self.budget.noises["tables"]
        counts = self._counts(records)
        return sum(
            noise.log_likelihood(released.tables[name], one) for name, one in counts.items()
        )

    def _counts(self, records: Records) -> dict[str, NDArray[np.int64]]:
        record_model.check_records(records, self.schema)
        counts = {name: records.counts((self.label, name)) for name in self.columns}
        return {self.label: records.counts((self.label,)), **counts} if self.printed else counts
