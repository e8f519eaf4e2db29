"""A missing record from the optimality conditions of a generalised linear model, in closed form.

At the optimum the gradient of the objective is zero. The known records' part of it is computed,
the rest is the missing record's: its features times its residual. With an intercept, whose
feature is 1, the residual stands by itself, and the features follow by a division.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from noisefloor.checks import check_finite
from noisefloor.errors import BadParameter
from noisefloor.mechanisms.base import Floats

Mean = Callable[[Floats], Floats]
"""From scores, a column per output, to the means that the model predicts (canonical link)."""


def linear(scores: Floats) -> Floats:
    """Return the scores: least squares."""
    return scores


def logistic(scores: Floats) -> Floats:
    """Return the probability of the one class, for logistic regression."""
    return np.asarray((1 + np.tanh(scores / 2)) / 2)


def softmax(scores: Floats) -> Floats:
    """Return the probability of each class, for multinomial logistic regression."""
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


@dataclass(frozen=True, slots=True)
class Objective:
    """The sum of the losses plus ``ridge / 2`` times the squared norm of the parameters.

    Attributes:
        mean: Of the model.
        ridge: How much parameters are drawn to zero; 0 for not at all.
        is_intercept_drawn: Whether the intercept is, too.
    """

    mean: Mean
    ridge: float = 0.0
    is_intercept_drawn: bool = False

    def __post_init__(self) -> None:
        if check_finite(self.ridge, "ridge") < 0:
            raise BadParameter("ridge", self.ridge, ">= 0")

    def gradient(self, parameters: Floats, features: Floats, targets: Floats) -> Floats:
        """Return the gradient; the parameters' last row is the intercept."""
        with_one = np.column_stack([features, np.ones(len(features))])
        drawn = self.ridge * parameters
        if not self.is_intercept_drawn:
            drawn[-1] = 0.0
        return np.asarray(with_one.T @ (self.mean(with_one @ parameters) - targets) + drawn)


@dataclass(frozen=True, slots=True, eq=False)
class Recovered:
    """The record that optimality asks for.

    Attributes:
        features: Of the missing record.
        target: What it was to be predicted as, one number per output.
        residual: Mean minus target; near zero, features are lost in rounding.
    """

    features: Floats
    target: Floats
    residual: Floats


def recover(
    parameters: Floats, features: Floats, targets: Floats, objective: Objective
) -> Recovered:
    """Solve the optimality conditions for the one missing record.

    Sees:      the parameters at the optimum, a row per feature and the intercept's last.
    Knows:     all other records (features and targets), and the objective.
    Guesses:   features and target of the missing record: exactly, if the parameters are exact.
    Reference: Balle, Cherubin and Hayes 2022 (generalised linear models), arXiv 2201.04845.
    """
    rest = -objective.gradient(parameters, features, targets)
    residual = rest[-1]
    strength = float(residual @ residual)
    # A record without residual left no trace; zeros stand for "nothing is known".
    found = rest[:-1] @ residual / strength if strength > 0 else np.zeros(len(rest) - 1)
    score = np.append(found, 1.0) @ parameters
    return Recovered(found, objective.mean(score[None])[0] - residual, residual)
