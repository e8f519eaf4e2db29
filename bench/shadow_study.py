"""Everything that shadow models say of one training procedure, in one call."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisefloor.adversary.models.shadow_attacks import (
    Attack,
    MembershipCurve,
    attack_all,
    audit_memberships,
    lira,
)
from noisefloor.adversary.models.shadow_runs import ShadowRuns, TrainingProcedure, train_shadows
from noisefloor.privacy import LowerBound, number_or_inf
from noisefloor.randomness import Source


@dataclass(frozen=True, slots=True, eq=False)
class Study:
    """What was found on one procedure.

    Attributes:
        runs: What the models said.
        attacks: How well each attack told members, every model in turn with all others as shadows.
        audited: A lower bound on the epsilon of one training, from half of the models.
        delta: At which it was audited.
    """

    runs: ShadowRuns
    attacks: dict[str, MembershipCurve]
    audited: LowerBound
    delta: float

    def as_json(self) -> dict[str, Any]:  # Any: JSON
        """Return the figures as one JSON object."""
        members, others = self.runs.accuracy
        return {
            "models": self.runs.models,
            "records": self.runs.records,
            "accuracy_on_members": members,
            "accuracy_on_others": others,
            "attacks": {name: one.as_json() for name, one in self.attacks.items()},
            "audited": {
                "epsilon": number_or_inf(self.audited.epsilon),
                "delta": self.delta,
                "confidence": self.audited.confidence,
                "guesses": self.audited.trials,
                "ceiling": number_or_inf(self.audited.ceiling),
            },
        }


def study(
    procedure: TrainingProcedure,
    labels: NDArray[np.integer],
    models: int,
    source: Source,
    *,
    alpha: float = 0.05,
    delta: float = 0.0,
    attack: Attack = lira,
) -> Study:
    """Train a number of models on fair halves, attack all of them, and audit.

    Args:
        procedure: Trains, and returns logits.
        labels: The true class of each audited record.
        models: How many; some thirty are needed for LiRA to have a Gaussian to speak of.
        source: Of all coins.
        alpha: The probability that the audited epsilon is wrong.
        delta: At which it is audited.
        attack: The one that the audit guesses by.
    """
    runs = train_shadows(procedure, labels, models, source)
    audited = audit_memberships(runs, alpha=alpha, delta=delta, attack=attack)
    return Study(runs, attack_all(runs), audited, delta)
