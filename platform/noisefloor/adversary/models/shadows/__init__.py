"""Membership inference with shadow models, for any training procedure.

``runs`` holds what is kept of many trainings on random subsets: how sure each model is of each
record. ``attacks`` scores memberships from it, ``audit`` draws curves and turns guesses into a
lower bound on epsilon. ``dense`` and ``private_dense`` train many small networks together; they
alone need torch and are imported on demand.
"""

from noisefloor.adversary.models.shadows.attacks import lira, loss_threshold, rmia
from noisefloor.adversary.models.shadows.audit import (
    ATTACKS,
    Attacked,
    attack_all,
    attacked,
    audit_coins,
    audit_record,
)
from noisefloor.adversary.models.shadows.runs import (
    Procedure,
    ShadowRuns,
    fair_members,
    train_shadows,
)

__all__ = [
    "ATTACKS",
    "Attacked",
    "Procedure",
    "ShadowRuns",
    "attack_all",
    "attacked",
    "audit_coins",
    "audit_record",
    "fair_members",
    "lira",
    "loss_threshold",
    "rmia",
    "train_shadows",
]
