"""What turns noisy gradients into weights; sees nothing else, so it costs no privacy.

Checks that stop a training which is dead but goes on.

A network of NaN scores exactly the majority, and nobody notices. These gates do. A training only
looks at weights, which are noised and released anyway, so that its checks cost nothing: no value
of an example stops it.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Protocol

import torch
from torch import Tensor

from noisefloor.errors import TrainingFailed
from noisefloor.publication.private_sgd.plan import SgdPlan


def check_weights(weights: Tensor) -> None:
    """Raise TrainingFailed if a weight is NaN or infinite; looks at released numbers only."""
    if not bool(torch.isfinite(weights).all()):
        raise TrainingFailed("Weights are NaN or infinite: lower the learning rate.")


def check_moved(before: Tensor, after: Tensor) -> float:
    """Return how far the weights moved, in L2; raises TrainingFailed if they did not.

    Looks at released numbers only.
    """
    moved = float(torch.linalg.vector_norm(after - before))
    if not moved > 0:
        raise TrainingFailed("The weights did not move: the learning rate is lost in rounding.")
    return moved


_STABILITY = 1e-8


class VectorOptimiser(Protocol):
    """Moves one vector of weights."""

    @property
    def state(self) -> dict[str, Tensor]:
        """What it remembers, by name; these tensors may be written to."""

    def move(
        self, weights: Tensor, gradient: Tensor, step: int, moving: Tensor | None = None
    ) -> None:
        """Move the weights, in place; the gradient may be used up. Steps count from one.

        Weights that do not move have no gradient; what is remembered of them stays as it is.

        Args:
            weights: All of them.
            gradient: Of those that move.
            step: Its number.
            moving: The places of the weights that move; None for all.
        """


class _MovingOptimiser(ABC):
    """What optimisers share: a rate for each weight, and weights that do not move.

    Args:
        rates: What the learning rate is multiplied by for each weight; None for one.
        state: What is remembered.
    """

    def __init__(self, rates: Tensor | None, state: dict[str, Tensor]) -> None:
        self._rates, self._state = rates, state
        self._moving: Tensor | None = None
        self._some: dict[str, Tensor] = {}
        self._some_rates = rates

    @property
    def state(self) -> dict[str, Tensor]:
        """What is remembered, of all weights."""
        self._select(None)
        return self._state

    def move(
        self, weights: Tensor, gradient: Tensor, step: int, moving: Tensor | None = None
    ) -> None:
        """Take one step."""
        self._select(moving)
        if moving is None:
            self._take(weights, gradient, step, self._state, self._rates)
            return
        difference = torch.zeros_like(gradient)
        self._take(difference, gradient, step, self._some, self._some_rates)
        weights.index_add_(0, moving, difference)

    def _select(self, moving: Tensor | None) -> None:
        """Bring together what is remembered of the weights that move, while these are the same."""
        if moving is self._moving:
            return
        if self._moving is not None:
            for name, one in self._some.items():
                self._state[name].index_copy_(0, self._moving, one)
        self._moving = moving
        if moving is not None:
            self._some = {name: one[moving] for name, one in self._state.items()}
            self._some_rates = None if self._rates is None else self._rates[moving]

    @abstractmethod
    def _take(
        self,
        weights: Tensor,
        gradient: Tensor,
        step: int,
        state: Mapping[str, Tensor],
        rates: Tensor | None,
    ) -> None:
        """Move weights and state, in place."""


class Momentum(_MovingOptimiser):
    """Gradient descent, with momentum where the plan has it, as torch's SGD.

    Args:
        plan: Its learning rate and momentum are taken.
        like: A vector like the weights.
        rates: Multiples of the learning rate for each weight.
    """

    def __init__(self, plan: SgdPlan, like: Tensor, rates: Tensor | None = None) -> None:
        super().__init__(rates, {"velocity": torch.zeros_like(like)} if plan.momentum else {})
        self._rate, self._momentum = plan.learning_rate, plan.momentum

    def _take(
        self,
        weights: Tensor,
        gradient: Tensor,
        step: int,
        state: Mapping[str, Tensor],
        rates: Tensor | None,
    ) -> None:
        if self._momentum:
            gradient = state["velocity"].mul_(self._momentum).add_(gradient)
        weights.sub_(gradient if rates is None else gradient * rates, alpha=self._rate)


class Adam(_MovingOptimiser):
    """Adam (Kingma, Ba 2015, arXiv 1412.6980), as torch's or as a paper prints it.

    ``adam-printed`` moves by ``alpha m / sqrt(v + phi)`` times the correction: the constant is
    inside the root, so that beside the root of v it counts as 1e-4 and not as 1e-8, and the
    correction factors have the exponent t + 1 where steps count from one.

    Args:
        plan: Its learning rate and decays are taken.
        like: A vector like the weights.
        rates: Multiples of the learning rate for each weight.
    """

    def __init__(self, plan: SgdPlan, like: Tensor, rates: Tensor | None = None) -> None:
        super().__init__(
            rates, {"first": torch.zeros_like(like), "second": torch.zeros_like(like)}
        )
        self._rate = plan.learning_rate
        self._decays = plan.momentum, plan.second_decay
        self._is_printed = plan.optimiser == "adam-printed"

    def _take(
        self,
        weights: Tensor,
        gradient: Tensor,
        step: int,
        state: Mapping[str, Tensor],
        rates: Tensor | None,
    ) -> None:
        one, two = self._decays
        first, second = state["first"], state["second"]
        first.lerp_(gradient, 1 - one)
        second.mul_(two).addcmul_(gradient, gradient, value=1 - two)
        # Both corrections in the rate and the stability: two passes fewer.
        power = step + 1 if self._is_printed else step
        root = math.sqrt(1 - two**power)
        if self._is_printed:
            spread = torch.add(second, _STABILITY, out=gradient).sqrt_()
        else:
            spread = torch.sqrt(second, out=gradient).add_(_STABILITY * root)
        shares = first if rates is None else first * rates
        weights.addcdiv_(shares, spread, value=-self._rate * root / (1 - one**power))


def optimiser_for(plan: SgdPlan, like: Tensor, rates: Tensor | None = None) -> VectorOptimiser:
    """Return a fresh optimiser of the kind that a plan names."""
    kind = Momentum if plan.optimiser == "sgd" else Adam
    return kind(plan, like, rates)


def restore(optimiser: VectorOptimiser, state: Mapping[str, Tensor]) -> None:
    """Put back what an optimiser of the same kind remembered."""
    for name, tensor in optimiser.state.items():
        tensor.copy_(state[name])
