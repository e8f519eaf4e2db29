"""Attribute inference: a target's missing value, from all its other values and a release.

A model of the population imputes values of people whom it has never seen. That is what models are
for, and no leak. So what is measured is how much more often the guess is right for members than
for people of the same population who were left out.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import advantage
from noisefloor.adversary.audit import AttackOutcome, Guess, Indices, lower_limit, upper_limit
from noisefloor.adversary.releases.nearest_records import Codes
from noisefloor.adversary.releases.reconstruction_bounds import as_substitution
from noisefloor.checks import Floats
from noisefloor.privacy import Guarantee

_MISSED = 0.05
"""The probability that an interval misses the true advantage, at most."""

Confidence = Callable[[NDArray[np.int64]], Floats]
"""From whole rows of codes to the probability that a model gives to each row's own label."""

Guesser = Callable[[NDArray[np.int64]], Guess]
"""From rows whose sensitive value is blanked to guesses of it."""


def population_prior(
    sample: Codes, rows: Codes, column: int, size: int, given: Sequence[int] = ()
) -> Floats:
    """Return what a disjoint sample says of each row's sensitive value, before any release.

    Args:
        sample: Rows of the population.
        rows: The targets.
        column: Of the sensitive value.
        size: How many values it may have.
        given: Columns to condition on. Where the sample has few rows like it, the shares lean to
            those of the whole sample, which count as one row.
    """
    shares = (np.bincount(sample[:, column], minlength=size) + 1) / (len(sample) + size)
    counted = np.zeros((len(rows), size))
    if len(given):
        both = np.concatenate([sample[:, list(given)], rows[:, list(given)]])
        _, kinds = np.unique(both, axis=0, return_inverse=True)
        mine, theirs = kinds.reshape(-1)[: len(sample)], kinds.reshape(-1)[len(sample) :]
        tally = np.zeros((int(kinds.max()) + 1, size))
        np.add.at(tally, (mine, sample[:, column]), 1)
        counted = tally[theirs]
    return np.asarray((counted + shares) / (counted.sum(axis=1, keepdims=True) + 1))


def guess_by_confidence(confidence: Confidence, rows: Codes, column: int, prior: Floats) -> Guess:
    """Name the value under which the model is most sure of the target's label.

    Sees:      the model: its probability of a label, for any row.
    Knows:     all columns of the target but one, its label too; a prior of the missing value.
    Guesses:   the value with the largest prior times probability of the label.
    Reference: Yeom, Giacomelli, Fredrikson and Jha 2018, arXiv 1709.01604 (attribute inference).
    """
    filled = np.array(rows, dtype=np.int64)
    weights = np.array(prior, dtype=np.float64)
    for value in range(weights.shape[1]):
        filled[:, column] = value
        weights[:, value] *= confidence(filled)
    return _top(weights, prior)


def _top(weights: Floats, prior: Floats) -> Guess:
    """Return the value of the largest weight; where nothing has any, that of the prior."""
    total = weights.sum(axis=1, keepdims=True)
    chances = np.where(total > 0, weights / np.where(total > 0, total, 1.0), prior)
    best = chances.argmax(axis=1)
    return Guess(best, np.take_along_axis(chances, best[:, None], axis=1)[:, 0])


@dataclass(frozen=True, slots=True)
class AttributeInference:
    """How often the missing value was named, for members and for those who were left out.

    Attributes:
        members: Of those whose records the release was made from.
        others: Of those who were left out: imputation, no leak.
        bound: What the mean advantage over releases cannot pass if the guarantee holds.
    """

    members: AttackOutcome
    others: AttackOutcome
    bound: float

    @property
    def advantage(self) -> float:
        """Success on members minus success on others."""
        return self.members.success - self.others.success

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the advantage: two exact binomial limits for each end."""
        return self.limits(_MISSED)

    def limits(self, alpha: float) -> tuple[float, float]:
        """Return the interval that misses the advantage with probability alpha at most."""
        sides = [(some.right, some.n, alpha / 4) for some in (self.members, self.others)]
        low, high = (
            [float(limit(*side)) for side in sides] for limit in (lower_limit, upper_limit)
        )
        return low[0] - high[1], high[0] - low[1]


def attack_attribute(
    guesser: Guesser, members: Codes, others: Codes, column: int, guarantee: Guarantee
) -> AttributeInference:
    """Guess the sensitive value of members and of others; the guesser never sees it.

    A member and somebody who was left out change places by one substitution: that sets the bound.

    Args:
        guesser: One of the guesses above, or any other.
        members: Rows that the release was made from.
        others: Rows of the same population that it was not made from.
        column: Of the sensitive value.
        guarantee: Of the release.
    """
    both = as_substitution(guarantee)
    common = float(np.bincount(others[:, column]).max() / len(others))
    played = [_right(guesser, rows, column) for rows in (members, others)]
    ours, theirs = (
        AttackOutcome(int(np.count_nonzero(right)), len(right), common, 1.0) for right in played
    )
    return AttributeInference(ours, theirs, float(advantage(both.epsilon, both.delta)))


def _right(guesser: Guesser, rows: Codes, column: int) -> NDArray[np.bool_]:
    blanked = np.array(rows, dtype=np.int64)
    truth: Indices = blanked[:, column].astype(np.intp)
    blanked[:, column] = 0
    return np.asarray(guesser(blanked).candidate == truth)
