"""A private head that a second training continues from, under one budget.

A head on frozen features is most of what private fine-tuning reaches; a second training, of
adapters and head, starts from it. Both are noisy releases on the same records: the accountant
composes their events, and what they prove together is less than the sum of their epsilons.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from noisefloor.accounting import ReleaseLoss, epsilon_at
from noisefloor.checks import check_finite
from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee
from noisefloor.publication.fine_tuning.methods.encoder_shapes import EncoderShapes
from noisefloor.publication.fine_tuning.methods.method_plan import FineTuningPlan
from noisefloor.publication.fine_tuning.methods.method_settings import MethodSettings
from noisefloor.publication.noised_vectors import ResidualObserver
from noisefloor.publication.private_sgd import SgdPlan
from noisefloor.randomness import Source

if TYPE_CHECKING:
    from torch import Tensor

    from noisefloor.publication.fine_tuning.top_layers import TopLayers
    from noisefloor.publication.private_sgd import PaddedInputs

NAME = "head-then-adapters"
HEAD_PART, ADAPTERS_PART = "head step", "adapters step"

_TOLERANCE = 1e-3
"""The second noise is at most this much (relatively) above the least that is enough."""


@dataclass(frozen=True, slots=True)
class HeadThenAdaptersPlan:
    """Two trainings on the same records and what both prove together.

    Guarantee:  (epsilon, delta) DP of all steps of both trainings, by composing their events.
    Neighbours: as the cost says, of records.
    Domain:     any texts; gradients are clipped.
    Reference:  composition of privacy loss distributions, as in ``accounting``.

    Attributes:
        head: The first training, of the head alone.
        adapters: The second one, which begins with that head and trains it on.
        cost: What both together keep to.
    """

    head: FineTuningPlan
    adapters: FineTuningPlan
    cost: Guarantee

    @classmethod
    def of(
        cls,
        shapes: EncoderShapes,
        cost: Guarantee,
        examples: int,
        *,
        head: MethodSettings,
        adapters: MethodSettings,
        method: str = "ffa-lora",
        head_share: float = 0.7,
    ) -> "HeadThenAdaptersPlan":
        """Plan both trainings with the least noise that keeps to a cost.

        Args:
            shapes: Of the encoder.
            cost: Of both together.
            examples: How many records there are, a public number.
            head: Settings of the first training.
            adapters: Settings of the second one.
            method: Of the second one; a private one.
            head_share: Of epsilon, for the head looked at alone.

        Raises:
            BadParameter: A setting breaks its rule.
        """
        if not 0 < check_finite(head_share, "head_share") < 1:
            raise BadParameter("head_share", head_share, "in (0, 1)")
        if "printed" in (head.clipping, adapters.clipping):
            raise BadParameter("clipping", "printed", "joint, equal or groups")
        part = replace(cost, epsilon=cost.epsilon * head_share)
        first = FineTuningPlan.of("head", shapes, part, examples, head)
        second = FineTuningPlan.of(method, shapes, cost, examples, adapters)
        return cls(first, _with_enough_noise(first, second, cost), cost)

    @property
    def proved(self) -> Guarantee:
        """What is proved of both trainings together."""
        return _together(self.head, self.adapters, self.cost)

    @property
    def claimed(self) -> Guarantee:
        """What is proved."""
        return self.proved

    @property
    def loss(self) -> ReleaseLoss:
        """The noise of every step of both, for a ledger."""
        return ReleaseLoss((*self.head.loss.events, *self.adapters.loss.events))

    @property
    def parts(self) -> dict[str, SgdPlan]:
        """Both trainings, by the names of the vectors that residual observers are handed."""
        return {HEAD_PART: self.head.private, ADAPTERS_PART: self.adapters.private}

    @property
    def in_words(self) -> str:
        """What is trained, for a card."""
        return f"a head first, then {self.adapters.in_words}"

    @property
    def is_experiment(self) -> bool:
        """Whether it may only be published as an experiment."""
        return False

    def as_json(self) -> dict[str, Any]:  # Any: JSON
        """Write the plan for a card."""
        return {"method": NAME, "head": self.head.as_json(), "adapters": self.adapters.as_json()}

    def train(
        self,
        module: "TopLayers",
        inputs: tuple["Tensor", ...],
        labels: "Tensor",
        source: Source,
        *,
        padding: "PaddedInputs | None" = None,
        residuals: ResidualObserver | None = None,
    ) -> None:
        """Train the head, then go on from it; in place."""
        from noisefloor.publication.fine_tuning.methods.method_training import fine_tune

        fine_tune(
            self.head,
            module,
            inputs,
            labels,
            source.child("head"),
            residuals=named_residuals(residuals, HEAD_PART),
        )
        fine_tune(
            self.adapters,
            module,
            inputs,
            labels,
            source.child("adapters"),
            padding=padding,
            residuals=named_residuals(residuals, ADAPTERS_PART),
        )


def named_residuals(residuals: ResidualObserver | None, part: str) -> ResidualObserver | None:
    """Return an observer that gets vectors under a name of their own."""
    return None if residuals is None else lambda vector: residuals(replace(vector, part=part))


def _together(first: FineTuningPlan, second: FineTuningPlan, cost: Guarantee) -> Guarantee:
    events = (*first.private.events, *second.private.events)
    return epsilon_at(events, cost.delta, neighbours=cost.neighbours)


def _with_enough_noise(
    first: FineTuningPlan, second: FineTuningPlan, cost: Guarantee
) -> FineTuningPlan:
    """Return the second plan with about the least noise that both together keep to a cost by."""

    def is_enough(noise: float) -> bool:
        return _together(first, second.with_noise(noise), cost).epsilon <= cost.epsilon

    low = second.private.noise_multiplier  # enough if it were alone, so that it is not now
    high = low * 1.5
    while not is_enough(high):
        low, high = high, high * 1.5
    while high > low * (1 + _TOLERANCE):
        middle = (low * high) ** 0.5
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return second.with_noise(high)
