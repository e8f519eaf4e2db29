"""The book of a round of training, and what it tells.

Who answers late in a round: by chance, without a look at what is reported.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from noisefloor.ads.training import RoundReports
from noisefloor.randomness import SeededSource
from noisefloor.roles import TrainingServer
from noisefloor_sim.pipelines.ads.block import TrainingBlock
from noisefloor_sim.pipelines.api import Metric

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
        """Draw the delays of a number of devices."""
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


@dataclass(slots=True)
class TrainingRoundStatistics:
    """What happened in one round, over all cohorts; only scoring reads it.

    Attributes:
        reported: Reports that were paid for and sent.
        late: Those of them that stragglers had not ready before the close; paid all the same.
        absent: Users whose turn it was, and who did not answer.
        refused: Users whose budget did not cover a report.
        fakes: Forged reports.
        clipped: Values that were clipped.
        values: Values there were.
        squares: The sum of their squares, for each cohort.
        drift: How far the model moved.
    """

    reported: int = 0
    late: int = 0
    absent: int = 0
    refused: int = 0
    fakes: int = 0
    clipped: int = 0
    values: int = 0
    squares: list[float] = field(default_factory=list)
    drift: float = 0.0

    def add(self, sent: RoundReports, users: int) -> None:
        """Write down what a cohort's devices did."""
        self.reported += users
        self.clipped += sent.clipped
        self.values += sent.values
        self.squares.append(sent.norm**2 * sent.values)

    @property
    def norm(self) -> float:
        """The root mean square of the values; the order of cohorts does not move a digit."""
        return math.sqrt(math.fsum(self.squares) / max(1, self.values))


def round_metrics(
    statistics: Sequence[TrainingRoundStatistics], learner: TrainingServer | None
) -> list[Metric]:
    """Tell of each round how many reported, how much was clipped, how far the model moved."""
    metrics = []
    for number, stats in enumerate(statistics):
        values = max(1, stats.values)
        metrics += [
            Metric(f"training.reported.round_{number}", float(stats.reported)),
            Metric(f"training.late.round_{number}", float(stats.late), n=stats.reported),
            Metric(f"training.clipped.round_{number}", stats.clipped / values, n=stats.values),
            Metric(f"training.norm.round_{number}", stats.norm, n=stats.values),
            Metric(f"training.drift.round_{number}", stats.drift, n=stats.reported),
        ]
    totals = {
        "training.reports": sum(stats.reported for stats in statistics),
        "training.reports_late": sum(stats.late for stats in statistics),
        "training.reports_refused": sum(stats.refused for stats in statistics),
        "training.absent": sum(stats.absent for stats in statistics),
        "training.fakes": sum(stats.fakes for stats in statistics),
        **_counted(learner, len(statistics)),
    }
    return metrics + [Metric(name, float(count)) for name, count in totals.items()]


def _counted(learner: TrainingServer | None, rounds: int) -> dict[str, int]:
    """Return what the server made of the reports: counted in time, or refused as too late."""
    closed = [] if learner is None else [learner.summary(number) for number in range(rounds)]
    return {
        "training.reports_counted": sum(summary.rows for summary in closed),
        "training.reports_counted_late": sum(summary.late_rows for summary in closed),
    }
