"""What is kept of many trainings on random subsets: how sure each model is of each record.

A training procedure is anything that takes a subset of the audited records for each model and
gives back the models' logits on all of them. Networks, fine-tuning and text models differ in that
function alone; every attack here starts from ``ShadowRuns``.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import check_count
from noisefloor.distributions import ONE
from noisefloor.errors import BadParameter
from noisefloor.randomness import Source

Bits = NDArray[np.bool_]
Floats = NDArray[np.float64]


class TrainingProcedure(Protocol):
    """Trains one model on each subset and returns what the models say of every record."""

    def __call__(self, members: Bits, source: Source) -> NDArray[np.float32]:
        """Return logits, models by records by classes.

        Args:
            members: Which records each model learns from, models by records.
            source: Of all draws of the trainings.
        """
        ...


@dataclass(frozen=True, slots=True, eq=False)
class ShadowRuns:
    """Models trained on known subsets of the audited records.

    Attributes:
        members: Which records each model was trained on, models by records.
        log_odds: ln p / (1 - p) of the true label's probability p by each model on each record.
        correct: Whether the true label was the most probable one, where that is known.
        is_fair: Whether each membership was drawn by a fair coin of its own, apart from all else.
    """

    members: Bits
    log_odds: Floats
    correct: Bits | None = None
    is_fair: bool = False

    def __post_init__(self) -> None:
        shape = np.shape(self.members)
        if len(shape) != 2 or 0 in shape or self.members.dtype != np.bool_:
            raise BadParameter("members", shape, "to be booleans, models by records")
        if np.shape(self.log_odds) != shape:
            raise BadParameter("log_odds", np.shape(self.log_odds), f"of the shape {shape}")
        if not np.isfinite(self.log_odds).all():
            raise BadParameter("log_odds", "<array>", "to be finite: a training has failed")

    @classmethod
    def of_logits(
        cls,
        members: Bits,
        logits: NDArray[np.floating],
        labels: NDArray[np.integer],
        *,
        is_fair: bool = False,
    ) -> "ShadowRuns":
        """Keep the log-odds of the true labels: models by records by classes become two axes."""
        shape = (*np.shape(members), np.shape(logits)[-1])
        if np.shape(logits) != shape or shape[-1] < 2:
            raise BadParameter("logits", np.shape(logits), "models by records by two classes up")
        if np.shape(labels) != shape[1:2]:
            raise BadParameter("labels", np.shape(labels), f"one for each of {shape[1]} records")
        odds, correct = np.empty(shape[:2]), np.empty(shape[:2], dtype=np.bool_)
        for model, rows in enumerate(logits):
            odds[model], correct[model] = _log_odds(rows.astype(np.float64), labels)
        return cls(members, odds, correct, is_fair)

    @property
    def models(self) -> int:
        """How many models were trained."""
        return len(self.members)

    @property
    def records(self) -> int:
        """How many records are audited."""
        return int(self.members.shape[1])

    @property
    def log_likelihood(self) -> Floats:
        """Return ln p of the true labels; minus the loss."""
        return np.asarray(-np.logaddexp(0.0, -self.log_odds))

    @property
    def accuracy(self) -> tuple[float, float]:
        """The share of right labels on members, and on all other records."""
        if self.correct is None:
            raise BadParameter("correct", None, "to be known: these runs keep losses only")
        if self.members.all() or not self.members.any():
            raise BadParameter("members", "<array>", "to hold both members and others")
        return float(self.correct[self.members].mean()), float(self.correct[~self.members].mean())

    def __getitem__(self, models: slice) -> "ShadowRuns":
        correct = None if self.correct is None else self.correct[models]
        return ShadowRuns(self.members[models], self.log_odds[models], correct, self.is_fair)


def fair_members(models: int, records: int, source: Source) -> Bits:
    """Toss a fair coin for each record of each model.

    Not exact halves, and not each record in exactly half of the models: then the memberships of
    the other models would give away the target's, and no audit of many records would hold.
    """
    shape = (check_count(models, "models"), check_count(records, "records"))
    return source.bernoulli(ONE // 2, shape[0] * shape[1]).reshape(shape)


def train_shadows(
    procedure: TrainingProcedure, labels: NDArray[np.integer], models: int, source: Source
) -> ShadowRuns:
    """Train n models on fair subsets, and keep how sure each is of each record.

    Args:
        procedure: Trains, and returns logits.
        labels: The true class of each audited record.
        models: How many.
        source: Of memberships ("members") and of the trainings ("training").
    """
    members = fair_members(models, len(labels), source.child("members"))
    logits = procedure(members, source.child("training"))
    return ShadowRuns.of_logits(members, logits, labels, is_fair=True)


def _log_odds(logits: Floats, labels: NDArray[np.integer]) -> tuple[Floats, Bits]:
    """Return the true logit minus the log-sum of the others, and whether it is above each."""
    rows = np.arange(len(labels))
    true = logits[rows, labels]
    others = logits.copy()
    others[rows, labels] = -np.inf
    # The first of equals counts as said, as with argmax.
    return true - np.logaddexp.reduce(others, axis=1), logits.argmax(axis=1) == labels
