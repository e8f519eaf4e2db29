"""A private linear head on frozen features: the smallest thing that can be fine-tuned.

Features are means over pieces of chosen layers, centred and scaled by public figures, so that one
record's gradient has a norm of about 1 at the start. Steps take the whole batch by default: for a
small head that is the best use of a budget, and there is no sampling to account for.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.privacy import Guarantee
from noisefloor.publication.noised_vectors import ResidualObserver
from noisefloor.publication.private_sgd import Flat, SgdPlan
from noisefloor.randomness import Source

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class HeadSettings:
    """How a head is trained.

    The defaults were fixed on IMDB reviews alone, at epsilon 2 and delta 1e-5, with 6,824 of them
    to train on: one of several settings that were best within the noise of the search
    (``bench/fine_tuning.py`` says how, and searches again by ``head --choose``).

    Attributes:
        steps: Of gradient descent.
        learning_rate: Of a step.
        clip: The norm of one record's gradient.
        momentum: Of the steps.
        averaging: The share of last steps whose weights are averaged.
    """

    steps: int = 60
    learning_rate: float = 3.0
    clip: float = 1.0
    momentum: float = 0.9
    averaging: float = 0.5

    def plan(self, cost: Guarantee, examples: int, batch: float | None = None) -> SgdPlan:
        """Return the training with the least noise that keeps to a cost.

        Args:
            cost: With a positive delta.
            examples: A public number of records.
            batch: Records in a step, on average, by Poisson sampling; all of them if left out.
        """
        return SgdPlan.for_budget(
            cost,
            examples=examples,
            expected_batch=examples if batch is None else batch,
            steps=self.steps,
            clipping=Flat(self.clip),
            optimiser="sgd",
            learning_rate=self.learning_rate,
            momentum=self.momentum,
            averaging=self.averaging,
        )


def train_head(
    features: Floats,
    labels: NDArray[np.int64],
    classes: int,
    plan: SgdPlan,
    source: Source,
    *,
    residuals: ResidualObserver | None = None,
) -> tuple[Floats, Floats]:
    """Train a linear head from zero by private SGD, and return its weights and biases.

    Args:
        features: Scaled by public figures, a row for each record.
        labels: The class of each.
        classes: How many there are.
        plan: What the training does.
        source: Draws.
        residuals: For simulations alone; see ``PrivateTraining``.
    """
    from torch import nn

    from noisefloor.publication.private_sgd import train

    module = nn.Linear(features.shape[1], classes)
    nn.init.zeros_(module.weight)
    nn.init.zeros_(module.bias)
    # Copies: torch takes no array that it may not write to.
    train(module, features.copy(), labels.copy(), plan, source, residuals=residuals)
    return module.weight.detach().numpy().copy(), module.bias.detach().numpy().copy()
