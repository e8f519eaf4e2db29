"""Checks that stop a training which is dead but goes on.

A network of NaN scores exactly the majority, and nobody notices. These gates do. Mind what they
look at: weights are released anyway, so checks of them cost nothing; norms of gradients and
accuracy on private examples are not, so that a run STOPS there is a fact about the data that no
guarantee covers. It is one bit, and one that a healthy run never sends; but do not publish that a
run was aborted, or retry in silence, where somebody may have planted the example that did it.
"""

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from noisefloor.errors import DeadRun, OutOfDomain


def check_weights(weights: Tensor) -> None:
    """Raise DeadRun if a weight is NaN or infinite; looks at released numbers only."""
    if not bool(torch.isfinite(weights).all()):
        raise DeadRun("Weights are NaN or infinite: lower the learning rate.")


def check_moved(before: Tensor, after: Tensor) -> float:
    """Return how far the weights moved, in L2; raises DeadRun if they did not.

    Looks at released numbers only.
    """
    moved = float(torch.linalg.vector_norm(after - before))
    if not moved > 0:
        raise DeadRun("The weights did not move: the learning rate is lost in rounding.")
    return moved


class GradientWatch:
    """Remembers whether any example had a gradient; nothing else of the norms is kept.

    Leaks, if it raises: that all examples of the first steps had no gradient at all.
    """

    PATIENCE = 20
    """Parts of batches without any gradient, after which a run is dead."""

    def __init__(self) -> None:
        self._is_alive = False
        self._parts = 0

    def see(self, squares: Tensor) -> None:
        """Take the squared norms of one part of a batch into account."""
        if not self._is_alive:
            self._is_alive = bool((squares > 0).any())
            self._parts += 1
            if not self._is_alive and self._parts >= self.PATIENCE:
                self.check()

    def check(self) -> None:
        """Raise DeadRun if there were examples, and all gradients were zero."""
        if self._parts and not self._is_alive:
            raise DeadRun("All gradients are zero: the loss does not reach the weights.")


def check_learnt(predicted: ArrayLike, labels: ArrayLike, *, margin: float = 0.0) -> float:
    """Return the accuracy; raises DeadRun if it is not above the majority's.

    At a small epsilon the majority may be all there is to reach: so this is for runs that should
    learn something. Leaks, if it raises, one comparison about these examples: use held-out ones.

    Args:
        predicted: The classes that a model says.
        labels: The true ones.
        margin: By how much the majority has to be passed.
    """
    said, true = np.asarray(predicted), np.asarray(labels)
    if said.shape != true.shape or not true.size:
        raise OutOfDomain("Expected one predicted class for each label, and at least one.")
    accuracy = float(np.mean(said == true))
    majority = float(np.unique(true, return_counts=True)[1].max() / true.size)
    if accuracy <= majority + margin:
        raise DeadRun(
            f"Accuracy {accuracy:.4f} is not above the majority's {majority:.4f} by more than "
            f"{margin:g}."
        )
    return accuracy
