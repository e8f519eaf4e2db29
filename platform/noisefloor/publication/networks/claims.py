"""What the two ways of putting noise into a network are claimed to cost, and what is proved.

The paper claims epsilon for each parameter, looked at alone. A published model contains them all,
and one record may move them all.
"""

from dataclasses import dataclass

from noisefloor.accounting import LaplaceNoise, epsilon_at
from noisefloor.privacy import Claim, Guarantee, Neighbours, TrustModel
from noisefloor.publication.networks.anonymised_learning import AnonymisedLearning
from noisefloor.publication.networks.learning_first import LearningFirst

DELTA = 1e-5

_MOST_TIGHT = 1 << 18
"""Up to this many losses, their distribution takes seconds; beyond, Renyi divergences answer."""

_SUBSTITUTE = Neighbours.RECORD_SUBSTITUTE


@dataclass(frozen=True, slots=True)
class NetworkClaim:
    """A claim, and what it is about.

    Attributes:
        method: LearningFirst or AnonymizedLearning, as the paper spells them.
        form: Of the method: as printed, or which correction.
        about: ``one parameter`` or ``whole model``.
        claim: Claimed and proved, without delta.
        approximate: What the accountant proves of the same noise if a delta is allowed.
    """

    method: str
    form: str
    about: str
    claim: Claim
    approximate: Guarantee | None = None


def claims_of(
    learning: LearningFirst | AnonymisedLearning, parameters: int, delta: float = DELTA
) -> tuple[NetworkClaim, NetworkClaim]:
    """Return what is claimed and proved of one parameter, and of the model.

    Args:
        learning: The method, in one of its forms.
        parameters: How many the network has.
        delta: For what the accountant says.
    """
    said = Guarantee(learning.epsilon, _SUBSTITUTE, model=TrustModel.CENTRAL)
    if isinstance(learning, LearningFirst):
        method, one, whole = "LearningFirst", learning.parameter_guarantee, learning.guarantee
        each, count = one.epsilon, parameters
    else:
        # A parameter of the last step follows from all parameters of the steps before.
        method = "AnonymizedLearning"
        one = whole = learning.guarantee(parameters)
        epochs = learning.training.epochs
        each, count = learning.epsilon / epochs, parameters * epochs
    is_per_parameter = learning.form in ("clamped", "clipped")
    loose = laplace_guarantee(each, count, delta) if is_per_parameter else None
    return (
        NetworkClaim(method, learning.form, "one parameter", Claim(said, one)),
        NetworkClaim(method, learning.form, "whole model", Claim(said, whole), loose),
    )


def laplace_guarantee(epsilon: float, count: int, delta: float = DELTA) -> Guarantee:
    """Return what many Laplace releases cost together, at a given delta.

    Args:
        epsilon: Of each, under substitution.
        count: How many.
        delta: What is allowed.
    """
    # The accountant's scale is over the sensitivity to adding a record: half of that to
    # substituting one.
    events = [LaplaceNoise(2 / epsilon, count)]
    return epsilon_at(events, delta, "pld" if count <= _MOST_TIGHT else "rdp", _SUBSTITUTE)
