"""Whether what was released carries the noise that its plan declares, and was paid for.

In one process the publisher's method hands out what noise was added to; the difference over the
declared scale is tested against the declared distribution. A publisher at a service hands out
nothing: then nothing is tested, and the evidence is blind. The ledger is compared in both cases.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from noisefloor.accounting import NANO, Amount, Ledger, LedgerEntry, LossTotal
from noisefloor.adversary.releases import (
    ResidualFit,
    ResidualGroup,
    ResidualTest,
    finds_quarter_less,
    fit_residuals,
    rate_test,
)
from noisefloor.privacy import FlowEvidence
from noisefloor.publication import NoisedVector, synthesis
from noisefloor.publication.methods import LogisticMethodPlan, ModelPlan
from noisefloor.randomness import SeededSource
from noisefloor.tables import Records
from noisefloor_sim.pipelines.api import Metric
from noisefloor_sim.pipelines.models import noiseless
from noisefloor_sim.pipelines.models.declared_noise import (
    ReleaseNoise,
    declaration_of,
    edge_names,
)
from noisefloor_sim.pipelines.models.publication_request import charged_loss

FLOW = "release"

_MOST_NUMBERS = 1 << 18
"""Residuals of one release that are kept, evenly spaced; a scale two hundredths off needs two
thirds of them."""

_TOLERANCE = 1e-4
"""How far a norm may pass its bound, relatively: norms are sums of rounded squares."""

_COMPARED_STEPS = 3
"""Steps of logistic regression whose gradients are computed again; each takes a step's time."""


@dataclass(slots=True)
class ReleaseResiduals:
    """The residuals of one release; an observer of its method.

    Attributes:
        plan: By which it is made.
        records: What it is made of.
        declared: What the plan declares.
        noise: What was added, by groups of parts, a vector for each draw.
        drawn: How many vectors of each group got noise.
        causes: What is wrong with numbers that no chance explains.
        taken: Records that were sampled in all steps, and of how many.
    """

    plan: ModelPlan
    records: Records
    declared: ReleaseNoise | None = field(init=False)
    noise: dict[str, list[noiseless.Floats]] = field(default_factory=lambda: defaultdict(list))
    drawn: Counter[str] = field(default_factory=Counter)
    causes: dict[str, str] = field(default_factory=dict)
    taken: tuple[int, int] = (0, 0)
    _released: dict[str, noiseless.Floats] = field(default_factory=dict)
    _logistic: noiseless.LogisticReference | None = None

    def __post_init__(self) -> None:
        self.declared = declaration_of(self.plan, self.records.count)

    def __call__(self, vector: NoisedVector) -> None:
        """Take a vector to which noise was added."""
        if self.declared is None:
            return
        part = self.declared.parts.get(vector.part)
        if part is None:
            self.drawn[f"undeclared {vector.part}"] += 1
            return
        step = self.drawn[part.group]
        self.drawn[part.group] += 1
        if vector.longest is not None and part.bound is not None:
            self._check_bound(part.group, vector.longest, part.bound)
        if vector.taken is not None and part.rate is not None:
            self.taken = self.taken[0] + vector.taken, self.taken[1] + self.records.count
        clean = self._clean(vector, step)
        self.noise[part.group].append(self._some(vector, clean, part.group))

    @property
    def is_seen(self) -> bool:
        """Whether anything was handed out."""
        return bool(self.drawn)

    @property
    def faults(self) -> list[str]:
        """Where more, or fewer, vectors got noise than the plan accounts for."""
        if self.declared is None or not self.is_seen:
            return []
        found = []
        for group, (least, most) in self.declared.vectors.items():
            if not least <= self.drawn[group] <= most:
                accounted = f"{most}" if least == most else f"{least} to {most}"
                found.append(
                    f"{self.drawn[group]} noisy vectors of {group} were made, and {accounted} "
                    "are accounted for"
                )
        unknown = sorted(set(self.drawn) - set(self.declared.vectors))
        return [*found, *(f"{self.drawn[name]} vectors: {name}" for name in unknown)]

    def groups(self, name: str, source: SeededSource) -> list[ResidualGroup]:
        """Return the residuals on the standard scale, by group."""
        if self.declared is None:
            return []
        noises = {part.group: part.noise for part in self.declared.parts.values()}
        return [
            ResidualGroup.of(f"{name}, {group}", noises[group], rows, source.child(group))
            for group, rows in self.noise.items()
        ]

    def tests(self, name: str) -> list[ResidualTest]:
        """Return the test of how many records were sampled, if any were to be."""
        if self.declared is None or not self.taken[1]:
            return []
        rate = next(part.rate for part in self.declared.parts.values() if part.rate is not None)
        return [rate_test(f"{name}: the share of sampled records", *self.taken, rate)]

    def _check_bound(self, group: str, longest: float, bound: float) -> None:
        if not longest <= bound * (1 + _TOLERANCE):
            self.causes.setdefault(
                f"bound {group}",
                f"{group}: a contribution of norm {longest:.4g} passes the clipping bound "
                f"{bound:.4g}",
            )

    def _some(self, vector: NoisedVector, clean: noiseless.Floats, group: str) -> noiseless.Floats:
        """Return the noise of some coordinates, evenly spaced, in multiples of its unit."""
        most = self.declared.vectors[group][1] if self.declared else 1
        kept = max(64, _MOST_NUMBERS // max(1, most))
        some = slice(None, None, -(-len(clean) // kept) or 1)
        noise = vector.noised[some] - clean[some]
        if vector.unit is None:
            return noise
        unit = vector.unit[some]
        # A coordinate that no record can move gets no noise, and one that is no number has none.
        is_noised = (unit > 0) & np.isfinite(noise)
        return np.asarray(noise[is_noised] / unit[is_noised])

    def _clean(self, vector: NoisedVector, step: int) -> noiseless.Floats:
        """Return the vector without noise: from the records where that is cheap."""
        if isinstance(self.plan, LogisticMethodPlan):
            return self._of_logistic(self.plan, vector, step)
        if vector.clean is not None:
            return vector.clean
        self._released[vector.part] = vector.noised
        return self._of_tables(vector.part)

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
    ) -> noiseless.Floats:
        encoding = plan.spec.encoding
        if vector.part == "feature sums":
            self._logistic = noiseless.LogisticReference.of(
                plan.plan, self.records, encoding, vector.noised
            )
            return noiseless.feature_sums(self.records, encoding)
        if vector.clean is None or vector.at is None:
            raise TypeError("A step of logistic regression hands out its sum and its parameters.")
        every = max(1, plan.plan.steps // _COMPARED_STEPS)
        if self._logistic is not None and step % every == 0:
            expected, allowed = self._logistic.gradient(vector.at)
            apart = float(np.linalg.norm(vector.clean - expected))
            if not apart <= allowed:
                self.causes.setdefault(
                    "gradient",
                    f"step: the sum of gradients lies {apart:.4g} from a recomputation from the "
                    f"records, where rounding explains {allowed:.4g}",
                )
        return vector.clean


@dataclass(frozen=True, slots=True)
class ReleaseFit:
    """What was found about the noise of all releases of a run.

    Attributes:
        evidence: For the claims of a release.
        found: What the tests found; None where nothing was handed out.
        planted_found: Whether noise that is a quarter too small would have been found.
    """

    evidence: FlowEvidence
    found: ResidualFit | None
    planted_found: bool

    def metrics(self) -> list[Metric]:
        """Tell draws, tests and p-value; of a service there is nothing to be told."""
        if self.found is None:
            return []
        return [
            Metric("residuals.draws", float(self.found.draws)),
            Metric("residuals.tests", float(self.found.tests), n=self.found.draws),
            Metric("residuals.p_value", self.found.p_value, n=self.found.draws),
            Metric("residuals.planted_found", float(self.planted_found), n=self.found.draws),
        ]


def fit_releases(
    releases: Sequence[ReleaseResiduals], accounted: Iterable[str], source: SeededSource
) -> ReleaseFit:
    """Test the noise of all releases: each on its own, and all together.

    Args:
        releases: In their order.
        accounted: Where releases and ledger disagree, in words.
        source: Of the random points within the steps of integer noise.
    """
    faults = [*accounted]
    more, causes = [], []
    groups: list[list[ResidualGroup]] = []
    for number, one in enumerate(releases):
        name = f"release {number}"
        faults += [f"{name}: {text}" for text in one.faults]
        causes += [f"{name}, {text}" for text in one.causes.values()]
        more += one.tests(name)
        groups.append(one.groups(name, source.child(number)))
    if not any(one.is_seen for one in releases):
        return ReleaseFit(FlowEvidence(FLOW, faults=tuple(faults), is_blind=True), None, False)
    every = [group for some in groups for group in some]
    seen = [some for some in groups if some]
    pooled = [ResidualGroup.pooled("all releases", seen)] if len(every) > 1 else []
    found = fit_residuals(every, more, pooled)
    planted = finds_quarter_less([*every, *pooled])
    misfit = "; ".join([*causes, *((found.text,) if found.rejects else ())])
    evidence = FlowEvidence(
        FLOW, found.draws, found.tests, found.p_value, misfit, tuple(faults), is_blind=not planted
    )
    return ReleaseFit(evidence, found, planted)


def _entry_faults(
    name: str, plan: ModelPlan, entry: LedgerEntry, account: Ledger
) -> Iterator[str]:
    """Compare what was charged with the plan, by the plain sum and by the filter."""
    cost = Amount.cost(plan.spec.cost)
    if entry.debited != cost:
        yield f"{name} was charged {entry.debited}, and its plan costs {cost}"
    loss = charged_loss(plan)
    renyi, failure = account.terms.filter(LossTotal()).cost(loss, account.neighbours)
    if (entry.renyi, entry.failure) != (renyi, failure):
        yield (
            f"{name} was charged a Renyi divergence of {entry.renyi / NANO:.9f}, and its plan "
            f"costs {renyi / NANO:.9f}"
        )


def ledger_faults(
    stored: Mapping[str, ModelPlan], account: Ledger, subject: str
) -> tuple[str, ...]:
    """Say where the entries of a data set's ledger are not those of the releases that were made.

    Args:
        stored: The plans of the releases that are stored, by the id of the publication.
        account: The ledger.
        subject: The data set.
    """
    entries: Mapping[str, LedgerEntry] = {one.spend_id: one for one in account.entries(subject)}
    found = [
        f"{name} is stored and was not charged" for name in sorted(set(stored) - set(entries))
    ]
    found += [
        f"{name} was charged and is not stored" for name in sorted(set(entries) - set(stored))
    ]
    for name in sorted(set(stored) & set(entries)):
        found += _entry_faults(name, stored[name], entries[name], account)
    costs = sum((Amount.cost(plan.spec.cost) for plan in stored.values()), Amount(0))
    debited = account.debited(subject)
    if debited != costs:
        found.append(f"the ledger says {debited} debited, and the releases made cost {costs}")
    return tuple(found)
