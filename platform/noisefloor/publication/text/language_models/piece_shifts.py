"""How a language model draws, and by how much it is to prefer each piece under each label.

Shifts are made of noisy counts alone, and of what the model writes: they cost nothing. What a
piece's share is to be lies between what the model itself writes (strength 0) and the noisy
counts (strength 1), as a geometric mean. The first shift is the logarithm of the ratio of the two.
Whatever is written shifts what comes next, so that shares do not become exactly what they are to
be: a few rounds of writing and correcting bring them closer.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import check_count, check_finite
from noisefloor.errors import BadParameter

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]

_LEAST = 1e-9
"""A share below this is taken for this: a logarithm needs one."""

_MOST_STEP = 2.0
"""By which a round corrects a piece at most, in nats: its shares are those of a sample."""

_DOUBTED = 3.0
"""With this many expected pieces, what a sample says of a share is believed by half."""


@dataclass(frozen=True, slots=True)
class Decoding:
    """How a model writes.

    Attributes:
        prompt: Of the model; public, and the same for all texts.
        temperature: What logits are divided by.
        plausible: Pieces are left out where their chance before the shift is less than this part
            of the largest one; 0 leaves none out.

    Reference: Nguyen and others 2024, arXiv 2407.01082 (min-p, before any shift).
    """

    prompt: str
    temperature: float = 1.0
    plausible: float = 0.0

    def __post_init__(self) -> None:
        if check_finite(self.temperature, "temperature") <= 0:
            raise BadParameter("temperature", self.temperature, "> 0")
        if not 0 <= check_finite(self.plausible, "plausible") <= 1:
            raise BadParameter("plausible", self.plausible, "in [0, 1]")

    @property
    def plain(self) -> "Decoding":
        """The same prompt, and the chances of the model as they are."""
        return Decoding(self.prompt)


@dataclass(frozen=True, slots=True)
class Steering:
    """How a model is led towards noisy counts.

    Attributes:
        strength: 0 leaves the model as it is, 1 aims at the shares of the noisy counts.
        most: The largest shift of a piece, in nats.
        rounds: Of writing and correcting.
        texts: That are written in each round, and before them to see what the model writes by
            itself.
    """

    strength: float = 1.0
    most: float = 3.0
    rounds: int = 2
    texts: int = 128

    def __post_init__(self) -> None:
        if not 0 <= check_finite(self.strength, "strength") <= 1:
            raise BadParameter("strength", self.strength, "in [0, 1]")
        if check_finite(self.most, "most") < 0:
            raise BadParameter("most", self.most, ">= 0")
        check_count(self.rounds, "rounds", least=0, most=16)
        check_count(self.texts, "texts", least=1)

    def targets(self, own: Floats, by_label: Floats) -> Floats:
        """Return the shares that each label's pieces are to have; they add up to 1.

        Args:
            own: The share of each piece in what the model writes by itself.
            by_label: The share of each piece by noisy counts, [labels, vocabulary].
        """
        logs = self.strength * np.log(np.maximum(by_label, _LEAST))
        logs = logs + (1 - self.strength) * np.log(np.maximum(own, _LEAST))
        # A piece that the model never writes is a mark, and stays one.
        shares = np.where(own > 0, np.exp(logs), 0.0)
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def first(self, own: Floats, targets: Floats, counted: Counts, places: float) -> Floats:
        """Return the shifts before any correction: logarithms of ratios, clipped.

        How labels differ follows from the counts alone. How all of them differ from the model is
        believed of a piece as far as the model wrote enough to tell.

        Args:
            own: The share of each piece in what the model writes by itself.
            targets: As ``targets`` returns them.
            counted: The pieces that have noisy counts of their own. All others move together, by
                what they are to have: of one of them nothing is known but what the model says.
            places: How many pieces ``own`` is of.
        """
        pooled = targets.mean(axis=0)
        between = _log_ratio(targets, pooled)
        from_model = _log_ratio(pooled, own) * _trust(pooled, places)
        others = _others(counted, targets.shape[1])
        between[:, others] = _log_ratio(
            targets[:, others].sum(axis=1, keepdims=True), own[others].sum()
        )
        from_model[others] = 0.0
        return np.clip(between + from_model, -self.most, self.most)

    def again(
        self, shifts: Floats, shares: Floats, targets: Floats, counted: Counts, places: Floats
    ) -> Floats:
        """Return shifts that move shares towards their targets.

        Args:
            shifts: So far, [labels, vocabulary].
            shares: Of each piece with these shifts.
            targets: As ``targets`` returns them.
            counted: The pieces that have noisy counts of their own.
            places: How many pieces of each label ``shares`` are of.
        """
        change = _log_ratio(targets, shares) * _trust(targets, places[:, None])
        others = _others(counted, targets.shape[1])
        change[:, others] = _log_ratio(
            targets[:, others].sum(axis=1, keepdims=True),
            shares[:, others].sum(axis=1, keepdims=True),
        )
        change[places == 0] = 0.0
        moved = shifts + np.clip(change, -_MOST_STEP, _MOST_STEP)
        return np.clip(moved, -self.most, self.most)


def _trust(shares: Floats, places: Floats | float) -> Floats:
    """Return how far a sampled share is believed, by its expected pieces: half, where few are."""
    expected = shares * places
    return np.asarray(expected / (expected + _DOUBTED))


def _others(counted: Counts, size: int) -> NDArray[np.bool_]:
    found = np.ones(size, dtype=np.bool_)
    found[counted] = False
    return found


def _log_ratio(aim: Floats, has: Floats | float) -> Floats:
    return np.asarray(np.log(np.maximum(aim, _LEAST) / np.maximum(has, _LEAST)))
