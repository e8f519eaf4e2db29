"""Attacks on trained models: shadow models, and canaries that see the noise."""

from noisefloor.adversary.models.canary_audit import (
    PLANTED_SHARE,
    audit_canary,
    audit_gaussian,
    audit_plan,
    games_for,
)
from noisefloor.adversary.models.shadow_attacks import (
    MembershipCurve,
    lira,
    loss_threshold,
    membership_curve,
)
from noisefloor.adversary.models.shadow_runs import ShadowRuns, fair_members

__all__ = [
    "PLANTED_SHARE",
    "MembershipCurve",
    "ShadowRuns",
    "audit_canary",
    "audit_gaussian",
    "audit_plan",
    "fair_members",
    "games_for",
    "lira",
    "loss_threshold",
    "membership_curve",
]
