"""Public scales of features: a mean and a factor for each, from public texts alone.

Mean-pooled features of an encoder lie around a common point, and some coordinates are many times
as large as others; gradients of a head on them are clipped to noise. So features are centred and
scaled by figures that are public. They never come from the records that are protected.

A head on scaled features is a head on plain features with other weights, so a published head has
the scales folded in.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.errors import BadParameter
from noisefloor.publication.fine_tuning import published_text_model as form

Floats = NDArray[np.float32]
Moments = NDArray[np.floating]

SMALLEST_DEVIATION = 1e-6
"""A feature that moves less is left out: MiniLM has some that are the same for every text."""


@dataclass(frozen=True, slots=True, eq=False)
class FeatureScaling:
    """What is subtracted from features, and what they are multiplied by.

    Attributes:
        mean: Of each feature.
        factor: Of each feature; so that their common norm is about 1.
        source: Where the figures are from, in words, for a card.
    """

    mean: Floats
    factor: Floats
    source: str

    @classmethod
    def of(cls, features: Floats, source: str) -> "FeatureScaling":
        """Take means and deviations of the features of PUBLIC texts.

        Args:
            features: A row for each text.
            source: What the texts are.
        """
        if features.ndim != 2 or len(features) < 2:
            raise BadParameter("features", features.shape, "of two public texts at least")
        mean = features.mean(axis=0, dtype=np.float64)
        return cls.from_moments(mean, features.std(axis=0, dtype=np.float64), source)

    @classmethod
    def from_moments(cls, mean: Moments, deviation: Moments, source: str) -> "FeatureScaling":
        """Take means and deviations of features that were computed of PUBLIC texts."""
        moves = deviation > SMALLEST_DEVIATION
        factor = np.zeros(len(deviation))
        factor[moves] = 1 / (deviation[moves] * np.sqrt(moves.sum()))
        return cls(mean.astype(np.float32), factor.astype(np.float32), source)

    @property
    def sha256(self) -> str:
        """Of the figures."""
        return hashlib.sha256(self.mean.tobytes() + self.factor.tobytes()).hexdigest()

    def scaled(self, features: Floats) -> Floats:
        """Return features that are centred and have a norm of about 1."""
        return np.asarray((features - self.mean) * self.factor)

    def folded(self, weight: Floats, bias: Floats) -> Mapping[str, Floats]:
        """Return the head on plain features that equals a head on scaled ones."""
        plain = (weight * self.factor).astype(np.float32)
        moved = bias - (plain.astype(np.float64) @ self.mean.astype(np.float64))
        return {form.HEAD_WEIGHT: plain, form.HEAD_BIAS: moved.astype(np.float32)}
