"""Noise for several groups of integers under one budget: every table is in one account."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import ReleaseLoss, sequential
from noisefloor.checks import check_epsilon, check_finite
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import DiscreteLaplace, GaussianTable
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.publication.cell_noise import LEAST_DELTA, changed_cells, integer_gaussian
from noisefloor.publication.synthesis.privacy_loss import RecordChange, calibrated, gaussian_table
from noisefloor.randomness import Source

Counts = NDArray[np.int64]

_MOST_COUNT = 1 << 40


class EntryNoise(Protocol):
    """EntryNoise that is drawn for each integer of a group on its own."""

    @property
    def variance(self) -> float:
        """Of one draw."""

    def add(self, values: Counts, source: Source) -> Counts:
        """Return the integers with fresh noise; nothing is clipped."""

    def log_likelihood(self, released: Counts, values: Counts) -> float:
        """Return ln P(released | values) of all together."""


@dataclass(frozen=True, slots=True)
class LaplaceEntries:
    """Discrete Laplace noise on each integer of a group.

    Attributes:
        mechanism: The noise of one integer, and what moving it by a record's step costs.
    """

    mechanism: DiscreteLaplace

    @property
    def variance(self) -> float:
        """Of one draw."""
        return self.mechanism.noise.variance

    def add(self, values: Counts, source: Source) -> Counts:
        """Return the integers with fresh noise; nothing is clipped."""
        return self.mechanism.randomise(values.reshape(-1), source).reshape(values.shape)

    def log_likelihood(self, released: Counts, values: Counts) -> float:
        """Return ln P(released | values) of all together."""
        return float(self.mechanism.noise.log_pmf(released - values).sum())


@dataclass(frozen=True, slots=True)
class GaussianEntries:
    """Discrete Gaussian noise on each integer of a group."""

    table: GaussianTable

    @property
    def variance(self) -> float:
        """Of one draw."""
        return self.table.variance

    def add(self, values: Counts, source: Source) -> Counts:
        """Return the integers with fresh noise; nothing is clipped."""
        drawn = source.stage("noise").draw(self.table.distribution, values.size).astype(np.int64)
        return values + (drawn - self.table.reach).reshape(values.shape)

    def log_likelihood(self, released: Counts, values: Counts) -> float:
        """Return ln P(released | values); beyond the table it is minus infinity."""
        place = (released - values).reshape(-1) + self.table.reach
        if ((place < 0) | (place >= len(self.table.distribution))).any():
            return -math.inf
        return float(np.log(self.table.chances)[place].sum())


@dataclass(frozen=True, slots=True)
class NoiseBudget:
    """The noise of each group of integers by its name, and what all of them cost together.

    Attributes:
        guarantee: From the integer weights as they are used.
        noises: By the name of the group.
        loss: What is known of the loss of all groups together.
    """

    guarantee: Guarantee
    noises: Mapping[str, EntryNoise]
    loss: ReleaseLoss

    @classmethod
    def of(
        cls, cost: Guarantee, changes: Mapping[str, RecordChange], shares: Mapping[str, float]
    ) -> "NoiseBudget":
        """Divide a cost among groups: Laplace noise where it has no delta, Gaussian where it has.

        Args:
            cost: What all groups together may cost, and under which relation.
            changes: What one record does to each group, under that relation.
            shares: Of the cost (of its square, for Gaussian noise) by group; adding up to 1.
        """
        _check_cost(cost)
        if set(shares) != set(changes) or abs(math.fsum(shares.values()) - 1) > 1e-9:
            raise BadParameter("shares", "<shares>", "one for each group, 1 in all")
        if not all(share > 0 for share in shares.values()):
            raise BadParameter("shares", "<shares>", "> 0, each of them")
        return _gaussian(cost, changes, shares) if cost.delta else _laplace(cost, changes, shares)


def table_change(tables: int, neighbours: Neighbours) -> RecordChange:
    """Return what a record does to n tables of counts: each has it in one cell."""
    return RecordChange(tables * changed_cells(neighbours), 1)


def _check_cost(cost: Guarantee) -> None:
    if cost.model is not TrustModel.CENTRAL:
        raise BadParameter("model", cost.model.value, "central: a curator counts")
    check_epsilon(cost.epsilon)
    if cost.delta and not LEAST_DELTA <= check_finite(cost.delta, "delta") < 1:
        raise BadParameter("delta", cost.delta, f"0, or in [{LEAST_DELTA:g}, 1)")


def _laplace(
    cost: Guarantee, changes: Mapping[str, RecordChange], shares: Mapping[str, float]
) -> NoiseBudget:
    noises: dict[str, EntryNoise] = {}
    parts: list[Guarantee] = []
    for name, change in changes.items():
        each = cost.epsilon * shares[name] / change.entries
        check_epsilon(each, "epsilon of each entry")
        made = DiscreteLaplace(
            each, 0, _MOST_COUNT, sensitivity=change.step, neighbours=cost.neighbours
        )
        noises[name] = LaplaceEntries(made)
        parts += [made.guarantee(cost.neighbours)] * change.entries
    whole = sequential(parts)
    # Shares are floats: their parts may add up to a hair above the whole.
    if whole.epsilon > cost.epsilon:
        return _laplace(_less(cost), changes, shares)
    return NoiseBudget(whole, noises, ReleaseLoss.of(whole))


def _less(cost: Guarantee) -> Guarantee:
    return Guarantee(cost.epsilon * (1 - 1e-12), cost.neighbours, model=cost.model)


def _gaussian(
    cost: Guarantee, changes: Mapping[str, RecordChange], shares: Mapping[str, float]
) -> NoiseBudget:
    names = list(changes)
    sigmas, least = calibrated(
        cost.epsilon,
        cost.delta,
        [changes[name] for name in names],
        [shares[name] for name in names],
    )
    noises = {
        name: GaussianEntries(gaussian_table(sigma))
        for name, sigma in zip(names, sigmas, strict=True)
    }
    proved = Guarantee(least, cost.neighbours, delta=cost.delta, model=TrustModel.CENTRAL)
    return NoiseBudget(proved, noises, _loss(dict(zip(names, sigmas, strict=True)), changes, cost))


def _loss(
    sigmas: Mapping[str, float], changes: Mapping[str, RecordChange], cost: Guarantee
) -> ReleaseLoss:
    events = tuple(
        integer_gaussian(sigma, changes[name].length, cost.neighbours)
        for name, sigma in sigmas.items()
    )
    variation = math.fsum(
        changes[name].entries * gaussian_table(sigma).variation for name, sigma in sigmas.items()
    )
    return ReleaseLoss(events, variation=variation)
