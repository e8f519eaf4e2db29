"""The residuals of one release: what was handed out of it, less what it is without noise."""

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisefloor.adversary.releases import ResidualGroup, ResidualTest, rate_test
from noisefloor.publication import NoisedVector
from noisefloor.randomness import SeededSource
from noisefloor_sim.pipelines.releases.declared_noise import ReleaseNoise
from noisefloor_sim.pipelines.releases.release_plan import AnyPlan

Floats = NDArray[np.float64]

NoiselessReference: TypeAlias = Callable[[NoisedVector, int], tuple[Floats, str]]
"""Takes a vector and how many of its group came before, gives what it is without noise, and what
is wrong with what was handed out as such, in words; empty if nothing."""

_MOST_NUMBERS = 1 << 18
"""Residuals of one release that are kept, evenly spaced; a scale two hundredths off needs two
thirds of them."""

_TOLERANCE = 1e-4
"""How far a norm may pass its bound, relatively: norms are sums of rounded squares."""


def handed_out(vector: NoisedVector, step: int) -> tuple[Floats, str]:
    """Return the vector without noise as the release itself hands it out."""
    if vector.clean is None:
        raise TypeError(f"Nothing without noise is handed out of {vector.part}.")
    return vector.clean, ""


@dataclass(slots=True)
class ReleaseResiduals:
    """The residuals of one release; an observer of its method.

    Attributes:
        plan: By which it is made.
        count: Records that it is made of.
        declared: What the plan declares; None if it has no noise.
        reference: What the vectors are without noise; what was handed out, if left out.
        noise: What was added, by groups of parts, a vector for each draw.
        drawn: How many vectors of each group got noise.
        causes: What is wrong with numbers that no chance explains.
        taken: Records that were sampled in all steps, and of how many.
    """

    plan: AnyPlan
    count: int
    declared: ReleaseNoise | None
    reference: NoiselessReference = handed_out
    noise: dict[str, list[Floats]] = field(default_factory=lambda: defaultdict(list))
    drawn: Counter[str] = field(default_factory=Counter)
    causes: dict[str, str] = field(default_factory=dict)
    taken: tuple[int, int] = (0, 0)

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
            self.taken = self.taken[0] + vector.taken, self.taken[1] + self.count
        clean, cause = self.reference(vector, step)
        if cause:
            self.causes.setdefault(f"clean {part.group}", cause)
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

    def _some(self, vector: NoisedVector, clean: Floats, group: str) -> Floats:
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
