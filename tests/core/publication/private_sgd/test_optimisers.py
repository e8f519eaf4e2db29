"""Adam as torch has it, and as a paper prints it."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from noisefloor.publication.private_sgd.optimisers import optimiser_for
from noisefloor.randomness import SeededSource
from private_sgd_cases import PLAN


@pytest.mark.parametrize("scale", [1.0, 1e-3])
def test_printed_adam_follows_the_printed_lines(scale: float) -> None:
    """The small scale is where it matters on which side of the root the constant stands."""
    plan = replace(PLAN, optimiser="adam-printed", learning_rate=0.01)
    gradients = scale * SeededSource(1, "printed adam").normals(5 * 4).reshape(5, 4)
    found = torch.zeros(4)
    optimiser = optimiser_for(plan, found)
    first, second, expected = np.zeros(4), np.zeros(4), np.zeros(4)
    for step, gradient in enumerate(gradients.astype(np.float64), start=1):
        optimiser.move(found, torch.from_numpy(gradient).float(), step)
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        correction = np.sqrt(1 - 0.999 ** (step + 1)) / (1 - 0.9 ** (step + 1))
        expected -= 0.01 * first / np.sqrt(second + 1e-8) * correction
    assert np.allclose(found.numpy(), expected, rtol=1e-5)


def test_adam_is_that_of_torch() -> None:
    gradients = SeededSource(1, "adam").normals(5 * 4).reshape(5, 4)
    found, theirs = torch.zeros(4), torch.zeros(4, requires_grad=True)
    optimiser = optimiser_for(replace(PLAN, learning_rate=0.01), found)
    adam = torch.optim.Adam([theirs], lr=0.01)
    for step, gradient in enumerate(gradients, start=1):
        optimiser.move(found, torch.from_numpy(gradient.copy()), step)
        theirs.grad = torch.from_numpy(gradient.copy())
        adam.step()
    assert torch.allclose(found, theirs.detach(), rtol=1e-5)
