"""The residuals of a release of a table: noise against a recomputation from the records."""

from dataclasses import dataclass, field

import numpy as np

from noisefloor.publication import NoisedVector, synthesis
from noisefloor.publication.methods import LogisticMethodPlan, ModelPlan
from noisefloor.tables import Records
from noisefloor_sim.pipelines.models import noiseless
from noisefloor_sim.pipelines.models.declared_noise import declaration_of, edge_names
from noisefloor_sim.pipelines.releases import ReleaseResiduals

_COMPARED_STEPS = 3
"""Steps of logistic regression whose gradients are computed again; each takes a step's time."""


def residuals_of(plan: ModelPlan, records: Records) -> ReleaseResiduals:
    """Return an observer of a release of some records."""
    declared = declaration_of(plan, records.count)
    return ReleaseResiduals(plan, records.count, declared, RecordsReference(plan, records))


@dataclass(slots=True)
class RecordsReference:
    """What the vectors of a release are without noise, from its records where that is cheap.

    Attributes:
        plan: By which it is made.
        records: What it is made of.
    """

    plan: ModelPlan
    records: Records
    _released: dict[str, noiseless.Floats] = field(default_factory=dict)
    _logistic: noiseless.LogisticReference | None = None

    def __call__(self, vector: NoisedVector, step: int) -> tuple[noiseless.Floats, str]:
        """Return the vector without noise: from the records where that is cheap."""
        if isinstance(self.plan, LogisticMethodPlan):
            return self._of_logistic(self.plan, vector, step)
        if vector.clean is not None:
            return vector.clean, ""
        self._released[vector.part] = vector.noised
        return self._of_tables(vector.part), ""

    def _of_tables(self, part: str) -> noiseless.Floats:
        tables = self.plan.tables.tables  # type: ignore[attr-defined]  # only plans with tables
        if isinstance(tables, synthesis.CellHistogram):
            return noiseless.counted(self.records, tables.columns)
        if part == tables.label:
            return noiseless.counted(self.records, (part,))
        if isinstance(tables, synthesis.MarginalTree):
            if part == "scores":
                return self._scores(tables)
            pairs = edge_names(tables)
            if part in pairs:
                return noiseless.counted(self.records, (tables.label, *pairs[part]))
        return noiseless.counted(self.records, (tables.label, part))

    def _scores(self, tables: synthesis.MarginalTree) -> noiseless.Floats:
        """Return the exact scores of pairs, from the noisy counts that were released before."""
        sizes = {name: self.records.schema.column(name).size for name in tables.schema.columns}
        ones = {
            name: np.rint(self._released[name])
            .astype(np.int64)
            .reshape(sizes[tables.label], sizes[name])
            for name in tables.columns
        }
        return tables.scores(self.records, ones).astype(np.float64)

    def _of_logistic(
        self, plan: LogisticMethodPlan, vector: NoisedVector, step: int
    ) -> tuple[noiseless.Floats, str]:
        encoding = plan.spec.encoding
        if vector.part == "feature sums":
            self._logistic = noiseless.LogisticReference.of(
                plan.plan, self.records, encoding, vector.noised
            )
            return noiseless.feature_sums(self.records, encoding), ""
        if vector.clean is None or vector.at is None:
            raise TypeError("A step of logistic regression hands out its sum and its parameters.")
        every = max(1, plan.plan.steps // _COMPARED_STEPS)
        if self._logistic is not None and step % every == 0:
            expected, allowed = self._logistic.gradient(vector.at)
            apart = float(np.linalg.norm(vector.clean - expected))
            if not apart <= allowed:
                return vector.clean, (
                    f"step: the sum of gradients lies {apart:.4g} from a recomputation from the "
                    f"records, where rounding explains {allowed:.4g}"
                )
        return vector.clean, ""
