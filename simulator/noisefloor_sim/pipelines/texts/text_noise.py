"""What is declared of the noise of published texts, for scoring: apart from the code that adds it.

Every cell of a table has noise in proportion to its own scale, which follows from public figures
and from tables that were released before; noise over scale is Gaussian with the multiplier that
the proof speaks of. Noise is of whole numbers. That of lengths is compared as such; that of the
other tables is some ten times wider than the steps of its grid, and a random point within the
step is added, so that it can be compared with the Gaussian distribution.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from noisefloor.adversary.releases import DeclaredNoise, NoiseShape
from noisefloor.publication import NoisedVector
from noisefloor.publication.text.ngrams import NgramPlan
from noisefloor.randomness import SeededSource
from noisefloor.tables import TextRecords
from noisefloor_sim.pipelines.releases import DeclaredPart, ReleaseNoise

LENGTHS = "lengths"

_WIDTH = 1e-3
"""By how much noise may be wider than declared: the step of the grid, and what tails are cut."""

Floats = NDArray[np.float64]


def declared_noise(plan: NgramPlan) -> ReleaseNoise:
    """Return what is declared of the tables of a release."""
    parts = {}
    for name, multiplier in plan.multipliers.items():
        is_integer = name == LENGTHS  # a document is one of a cell: noise is in documents
        slack = 1e-6 if is_integer else _WIDTH
        noise = DeclaredNoise(NoiseShape.GAUSSIAN, multiplier, slack, is_integer=is_integer)
        parts[name] = DeclaredPart(name, noise)
    return ReleaseNoise(parts, {name: (1, 1) for name in parts})


@dataclass(frozen=True, slots=True)
class WithinSteps:
    """Takes a table without noise at a random point within the steps of its grid.

    Attributes:
        count: Documents that were collected, which lengths have to add up to.
        source: Of the points.
        collected: What the release is made of; only what was counted is compared with it.
        seen: The first table of each name, from which a release can be made again.
    """

    count: int
    source: SeededSource
    collected: TextRecords | None = None
    seen: dict[str, NoisedVector] = field(default_factory=dict)

    def __call__(self, vector: NoisedVector, step: int) -> tuple[Floats, str]:
        """Return the table, and what is wrong with it in words; see ``NoiselessReference``."""
        if vector.clean is None:
            raise TypeError(f"Nothing without noise is handed out of {vector.part}.")
        self.seen.setdefault(vector.part, vector)
        if vector.part == LENGTHS:
            total = int(np.rint(vector.clean.sum()))
            if total == self.count:
                return vector.clean, ""
            return vector.clean, (
                f"lengths: a table has {total} documents without noise, of {self.count} that "
                "were collected"
            )
        steps = self.source.child(vector.part).uniforms(len(vector.clean))
        return vector.clean + (steps - 0.5), ""
