"""What turns noisy gradients into weights; sees nothing else, so it costs no privacy."""

import math
from collections.abc import Mapping
from typing import Protocol

import torch
from torch import Tensor

from noisefloor.publication.private_sgd.plan import SgdPlan

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
