"""The book of a round of training, and what it tells."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from noisefloor.ads.training import Sent
from noisefloor.roles.protocols import LearningServer
from noisefloor_sim.pipelines.base import Metric


@dataclass(slots=True)
class RoundBook:
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

    def add(self, sent: Sent, users: int) -> None:
        """Write down what a cohort's devices did."""
        self.reported += users
        self.clipped += sent.clipped
        self.values += sent.values
        self.squares.append(sent.norm**2 * sent.values)

    @property
    def norm(self) -> float:
        """The root mean square of the values; the order of cohorts does not move a digit."""
        return math.sqrt(math.fsum(self.squares) / max(1, self.values))


def round_metrics(books: Sequence[RoundBook], learner: LearningServer | None) -> list[Metric]:
    """Tell of each round how many reported, how much was clipped, how far the model moved."""
    metrics = []
    for number, book in enumerate(books):
        values = max(1, book.values)
        metrics += [
            Metric(f"training.reported.round_{number}", float(book.reported)),
            Metric(f"training.late.round_{number}", float(book.late), n=book.reported),
            Metric(f"training.clipped.round_{number}", book.clipped / values, n=book.values),
            Metric(f"training.norm.round_{number}", book.norm, n=book.values),
            Metric(f"training.drift.round_{number}", book.drift, n=book.reported),
        ]
    totals = {
        "training.reports": sum(book.reported for book in books),
        "training.reports_late": sum(book.late for book in books),
        "training.reports_refused": sum(book.refused for book in books),
        "training.absent": sum(book.absent for book in books),
        "training.fakes": sum(book.fakes for book in books),
        **_counted(learner, len(books)),
    }
    return metrics + [Metric(name, float(count)) for name, count in totals.items()]


def _counted(learner: LearningServer | None, rounds: int) -> dict[str, int]:
    """Return what the server made of the reports: counted in time, or refused as too late."""
    closed = [] if learner is None else [learner.summary(number) for number in range(rounds)]
    return {
        "training.reports_counted": sum(summary.rows for summary in closed),
        "training.reports_counted_late": sum(summary.late_rows for summary in closed),
    }
