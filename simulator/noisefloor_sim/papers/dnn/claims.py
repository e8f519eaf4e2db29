"""What is claimed, proved and audited of the paper's two ways to noise a network, in every form.

An audit is one record that moves everything, through each form's noise.
"""

from dataclasses import replace

from noisefloor.adversary.models import audit_canary, games_for
from noisefloor.publication import methods
from noisefloor.publication.networks import (
    AnonymisedLearning,
    LearningFirst,
    NetworkClaim,
    claims_of,
)
from noisefloor.randomness import new_run
from noisefloor_sim.papers.dnn.methods import DELTA, DnnPlan

MOST_GAMES = 20_000
"""On each input: enough to tell the printed epsilon from the claimed one."""


def audited(
    said: NetworkClaim, learning: LearningFirst | AnonymisedLearning, parameters: int
) -> NetworkClaim:
    """Return a claim about the whole model with what an attacker reached; others as they are."""
    if said.about != methods.WHOLE_MODEL:
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
) -> methods.ParameterCanary | methods.IncrementCanary:
    """Return the record: it fills what every parameter, or the whole norm, may be moved by."""
    if isinstance(learning, LearningFirst):
        return methods.ParameterCanary(learning)
    epochs = learning.training.epochs
    moved = 1 if learning.form == "norm" else min(parameters, methods.MOST_COORDINATES)
    return methods.IncrementCanary(learning.epsilon / epochs, epochs, moved)


def claims(plan: DnnPlan, count: int, epsilon: float = 1.0) -> list[NetworkClaim]:
    """Return what is claimed, proved and audited of a network with a number of parameters."""
    learnings = (
        LearningFirst(epsilon, count, "printed"),
        LearningFirst(epsilon, count, "clamped"),
        LearningFirst(epsilon, count, "corrected"),
        AnonymisedLearning(epsilon, plan.training, "printed"),
        AnonymisedLearning(epsilon, plan.training, "clipped"),
        AnonymisedLearning(epsilon, plan.training, "norm"),
    )
    with new_run():
        return [
            audited(claim, learning, count)
            for learning in learnings
            for claim in claims_of(learning, count, DELTA)
        ]
