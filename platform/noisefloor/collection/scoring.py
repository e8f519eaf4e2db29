"""How well an attribute goes with the label, from what was sent of both."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import Floats
from noisefloor.errors import BadParameter

Form = Literal["prod", "cosine", "corr"]
"""How attribute and label go together: the mean of their product, that over its root mean square,
or Pearson's correlation, which needs both apart."""

_LEAST_VARIANCE = 0.01
"""Of a debiased estimate: below it a correlation is a quotient of noises."""


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """Numbers that were sent, one after the other, each with its attribute and its label."""

    attribute: NDArray[np.intp]
    value: Floats
    square: Floats
    label: Floats
    square_label: float | None = None
    """What the square of a label is known to be; from the reports where it is not known."""

    def scores(self, attributes: int, form: Form) -> Floats:
        """Return how well each attribute goes with the label."""
        counts = np.maximum(np.bincount(self.attribute, minlength=attributes), 1)

        def mean(numbers: Floats) -> Floats:
            return np.asarray(np.bincount(self.attribute, numbers, minlength=attributes) / counts)

        product, square = mean(self.value * self.label), mean(self.square)
        if form == "prod":
            return np.abs(product)
        least = 0.0 if self.square_label is None else _LEAST_VARIANCE
        if form == "cosine":
            return _quotient(np.abs(product), np.maximum(square, least))
        first, label = mean(self.value), mean(self.label)
        squares = mean(self.label**2) if self.square_label is None else self.square_label
        spread = np.maximum(square - first**2, least) * np.maximum(squares - label**2, least)
        return _quotient(np.abs(product - first * label), spread)


def _quotient(number: Floats, square: Floats) -> Floats:
    """Divide by a root; what does not vary goes with nothing, and scores 0."""
    # Float dust: the variance of a constant is not always exactly 0.
    root = np.sqrt(np.maximum(square, 0.0))
    return np.divide(number, root, out=np.zeros_like(number), where=root > 1e-6)


def check_form(form: str) -> None:
    """Refuse a form that nobody knows."""
    if form not in get_args(Form):
        raise BadParameter("form", form, f"to be one of {', '.join(get_args(Form))}")
