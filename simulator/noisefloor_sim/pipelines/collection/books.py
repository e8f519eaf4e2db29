"""What happened in the phases of a collection, in whole numbers over all cohorts.

Only scoring reads it. Sums of integers do not depend on the order in which cohorts wake.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from noisefloor.roles.protocols import LearningServer
from noisefloor_sim.pipelines.base import Metric


@dataclass(slots=True)
class RoundBook:
    """One round.

    Attributes:
        reported: Reports that were paid for and sent.
        absent: Owners whose device was not in contact, or dropped out.
        refused: Owners whose budget did not cover a report.
    """

    reported: int = 0
    absent: int = 0
    refused: int = 0


@dataclass(slots=True)
class QuestionBook:
    """The protected questions of one day.

    Attributes:
        asked: Questions that were paid for and sent.
        refused: Questions that the budget did not cover.
        absent: Users who would have asked, without contact.
        answered: Questions whose answer came back.
        tested: Answers about records that nobody trained on.
        right: Those of them that name the true label.
    """

    asked: int = 0
    refused: int = 0
    absent: int = 0
    answered: int = 0
    tested: int = 0
    right: int = 0


def round_metrics(books: Sequence[RoundBook], learner: LearningServer | None) -> list[Metric]:
    """Tell how many took part in each round, and how many of their reports were counted."""
    metrics = []
    names = ("training",) if len(books) == 1 else ("selection", "training")
    for number, (name, book) in enumerate(zip(names, books, strict=False)):
        counted = 0 if learner is None else learner.summary(number).rows
        metrics += [
            Metric(f"{name}.reports", float(book.reported)),
            Metric(f"{name}.reports_counted", float(counted), n=book.reported),
            Metric(f"{name}.absent", float(book.absent)),
            Metric(f"{name}.refused", float(book.refused)),
        ]
    return metrics


def question_metrics(books: Sequence[QuestionBook], first: int) -> list[Metric]:
    """Tell how many questions were asked, refused and answered, on each day and in all.

    Args:
        books: Of the days on which questions are asked.
        first: The first of them.
    """
    metrics = [
        Metric(f"questions.{name}.day_{first + place}", float(getattr(book, name)))
        for place, book in enumerate(books)
        for name in ("asked", "refused")
    ]
    return metrics + [
        Metric(f"questions.{name}", float(sum(getattr(book, name) for book in books)))
        for name in ("asked", "refused", "absent", "answered")
        if books
    ]
