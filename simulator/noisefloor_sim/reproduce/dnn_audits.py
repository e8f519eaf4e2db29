"""Audits of the paper's two ways: one record that moves everything, through each form's noise."""

from dataclasses import replace

from noisefloor.adversary.models.plan_audit import audit_canary, games_for
from noisefloor.publication.model_methods.canaries import IncrementCanary, ParameterCanary
from noisefloor.publication.model_methods.noisy_networks import MOST_COORDINATES
from noisefloor.publication.model_methods.plan import WHOLE
from noisefloor.publication.networks import AnonymisedLearning, LearningFirst, NetworkClaim

MOST_GAMES = 20_000
"""On each input: enough to tell the printed epsilon from the claimed one."""


def audited(
    said: NetworkClaim, learning: LearningFirst | AnonymisedLearning, parameters: int
) -> NetworkClaim:
    """Return a claim about the whole model with what an attacker reached; others as they are."""
    if said.about != WHOLE:
        return said
    canary = _canary(learning, parameters)
    bound = audit_canary(
        canary,
        0.0,
        f"reproduce dnn, {said.method}, {said.form}",
        games=min(games_for(canary), MOST_GAMES),
    )
    return replace(said, claim=replace(said.claim, audited=bound))


def _canary(
    learning: LearningFirst | AnonymisedLearning, parameters: int
) -> ParameterCanary | IncrementCanary:
    """Return the record: it fills what every parameter, or the whole norm, may be moved by."""
    if isinstance(learning, LearningFirst):
        return ParameterCanary(learning)
    epochs = learning.training.epochs
    moved = 1 if learning.form == "norm" else min(parameters, MOST_COORDINATES)
    return IncrementCanary(learning.epsilon / epochs, epochs, moved)
