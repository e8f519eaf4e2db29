"""How well guesses of classes are: F1 of each class, and their mean."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisefloor.errors import BadParameter


@dataclass(frozen=True, slots=True)
class ClassScores:
    """What a classifier reached on texts that it had not seen.

    Attributes:
        f1: Of each class, in the order of the classes.
        trained: Documents that it was trained on.
        tested: Documents that it was tested on.
        note: What was done differently to keep it affordable, in words.
    """

    f1: tuple[float, ...]
    trained: int
    tested: int
    note: str = ""

    @property
    def macro_f1(self) -> float:
        """The mean F1 of the classes."""
        return float(np.mean(self.f1))

    def as_json(self) -> dict[str, Any]:  # Any: JSON
        """Return the figures as one JSON object."""
        found = {"macro_f1": self.macro_f1, "f1": list(self.f1)}
        return {**found, "trained": self.trained, "tested": self.tested, "note": self.note}


def class_f1(
    guessed: NDArray[np.integer], truth: NDArray[np.integer], classes: int
) -> tuple[float, ...]:
    """Return the F1 of each class: 0 where a class is neither guessed nor there.

    Formula: ``2 TP / (2 TP + FP + FN)``.
    """
    if guessed.shape != truth.shape or not len(truth):
        raise BadParameter("guessed", guessed.shape, f"a guess for each truth, {truth.shape}")
    hits = np.bincount(truth[guessed == truth], minlength=classes)
    both = np.bincount(guessed, minlength=classes) + np.bincount(truth, minlength=classes)
    return tuple((2 * hits / np.maximum(both, 1)).tolist())
