"""Checks that stop a training which is dead but goes on.

A network of NaN scores exactly the majority, and nobody notices. These gates do. A training only
looks at weights, which are noised and released anyway, so that its checks cost nothing: no value
of an example stops it. ``check_learnt`` looks at the examples that it is given; that it raises is
a fact about them which no guarantee covers, so give it public or held-out ones.
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
