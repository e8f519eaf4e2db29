"""What turns noisy gradients into weights; sees nothing else, so it costs no privacy.

Checks that stop a training which is dead but goes on.

A network of NaN scores exactly the majority, and nobody notices. These gates do. A training only
looks at weights, which are noised and released anyway, so that its checks cost nothing: no value
of an example stops it.
"""

import math
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

    state: dict[str, Tensor]
    """What it remembers, by name; these tensors are changed in place."""

    def move(self, weights: Tensor, gradient: Tensor, step: int) -> None:
        """Move the weights, in place; the gradient may be used up. Steps count from one."""


class Momentum:
    """Gradient descent, with momentum where the plan has it, as torch's SGD.

    Args:
        plan: Its learning rate and momentum are taken.
        like: A vector like the weights.
    """

    def __init__(self, plan: SgdPlan, like: Tensor) -> None:
        self._rate, self._momentum = plan.learning_rate, plan.momentum
        self.state = {"velocity": torch.zeros_like(like)} if plan.momentum else {}

    def move(self, weights: Tensor, gradient: Tensor, step: int) -> None:
        """Take one step."""
        if self._momentum:
            gradient = self.state["velocity"].mul_(self._momentum).add_(gradient)
        weights.sub_(gradient, alpha=self._rate)


class Adam:
    """Adam (Kingma, Ba 2015, arXiv 1412.6980), as torch's.

    Args:
        plan: Its learning rate and decays are taken.
        like: A vector like the weights.
    """

    def __init__(self, plan: SgdPlan, like: Tensor) -> None:
        self._rate = plan.learning_rate
        self._decays = plan.momentum, plan.second_decay
        self.state = {"first": torch.zeros_like(like), "second": torch.zeros_like(like)}

    def move(self, weights: Tensor, gradient: Tensor, step: int) -> None:
        """Take one step."""
        one, two = self._decays
        first, second = self.state["first"], self.state["second"]
        first.lerp_(gradient, 1 - one)
        second.mul_(two).addcmul_(gradient, gradient, value=1 - two)
        # Both corrections in the rate and the stability: two passes fewer.
        root = math.sqrt(1 - two**step)
        spread = torch.sqrt(second, out=gradient).add_(_STABILITY * root)
        weights.addcdiv_(first, spread, value=-self._rate * root / (1 - one**step))


def optimiser_for(plan: SgdPlan, like: Tensor) -> VectorOptimiser:
    """Return a fresh optimiser of the kind that a plan names."""
    return Adam(plan, like) if plan.optimiser == "adam" else Momentum(plan, like)


def restore(optimiser: VectorOptimiser, state: Mapping[str, Tensor]) -> None:
    """Put back what an optimiser of the same kind remembered."""
    for name, tensor in optimiser.state.items():
        tensor.copy_(state[name])
