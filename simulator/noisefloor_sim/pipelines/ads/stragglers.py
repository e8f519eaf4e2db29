"""Who answers late in a round: by chance, without a look at what is reported."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.randomness import SeededSource
from noisefloor_sim.pipelines.ads.block import TrainingBlock

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Stragglers:
    """When the devices of a cohort have their reports ready.

    Attributes:
        slow: Who does not answer at once.
        delay_h: After how many hours each does.
        round_h: How long the round is open.
    """

    slow: Flags
    delay_h: NDArray[np.float64]
    round_h: float

    @classmethod
    def draw(cls, block: TrainingBlock, count: int, source: SeededSource) -> "Stragglers":
        """Draw the delays of so many devices."""
        chance = source.generator()
        slow = chance.random(count) < block.stragglers
        delay_h = np.where(slow, chance.exponential(block.straggler_h, count), 0.0)
        return cls(slow, delay_h, block.round_h)

    @property
    def late(self) -> Flags:
        """Who is ready only when the round is closed."""
        return np.asarray(self.delay_h >= self.round_h)

    def groups(self) -> Iterator[tuple[str, Flags, float]]:
        """Yield who sends together, and after how many hours."""
        yield "prompt", ~self.slow, 0.0
        slow = self.slow & ~self.late
        yield "slow", slow, float(self.delay_h[slow].max(initial=0.0))
        yield "late", self.late, float(self.delay_h[self.late].min(initial=np.inf))
