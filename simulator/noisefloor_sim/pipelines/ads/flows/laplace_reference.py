"""Gradients with two-sided geometric noise, as declared.

Each number less the clipped gradient on the grid is two-sided geometric; each bit that says
whether an ad is rated is flipped with a known probability.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from noisefloor.ads.training import (
    AdModel,
    Broadcast,
    GradientBound,
    LaplaceTraining,
)
from noisefloor.adversary.audit import PLANTED_FACTOR as PLANTED
from noisefloor.adversary.fit import (
    FitTable,
    laplace_fault,
)
from noisefloor.checks import Floats
from noisefloor.distributions import ONE
from noisefloor.mechanisms import (
    BinaryResponse,
    Reports,
    TwoSidedGeometric,
)
from noisefloor.randomness import SeededSource
from noisefloor_sim.pipelines.ads.flows.report_reference import (
    Flags,
    Named,
    RatingInputs,
    Transformed,
    base_ratings,
    ridge_tastes,
)

PAIRED_NUMBERS = 8
"""Numbers of a report that are compared with those of others."""

MOST_NUMBERS = 1 << 15
"""Numbers of a cohort's round whose noise is transformed at most: they are alike."""


@dataclass(frozen=True)
class LaplaceReference:
    """Noise on whole gradients, and a protected bit for each ad."""

    training: LaplaceTraining

    @property
    def most(self) -> int:
        """As many as have enough numbers."""
        return max(1, MOST_NUMBERS // (self.training.ads * self.training.dimension))

    @cached_property
    def larger(self) -> TwoSidedGeometric:
        """The noise, a quarter too small."""
        return TwoSidedGeometric(self.training.noise.distribution.rate * 4 / 3)

    def tastes(self, model: AdModel, inputs: RatingInputs) -> Floats:
        """Return the tastes that the reports are made with."""
        if inputs.tastes is not None:
            return inputs.tastes
        radius = 1.0 if self.training.bounded else math.inf
        return ridge_tastes(model, inputs, self.training.ridge, radius)

    def grid(self, sent: Broadcast, inputs: RatingInputs) -> NDArray[np.int64]:
        """Return bounded gradients of all ads in grid steps: shape (n, ads, dimension)."""
        model, noise = sent.model, self.training.noise
        tastes = self.tastes(model, inputs)
        predicted = tastes @ model.factors.astype(np.float64).T
        error = np.where(inputs.rated, inputs.above(base_ratings(model)) - predicted, 0.0)
        gradient = -2 * error[:, :, None] * tastes[:, None, :]
        if noise.form is GradientBound.PRINTED:
            return np.asarray(np.rint(gradient * noise.steps), dtype=np.int64)
        if noise.form is GradientBound.COORDINATE:
            bounded = np.clip(gradient, -noise.clip, noise.clip) / noise.clip
            return np.asarray(np.rint(bounded * noise.steps), dtype=np.int64)
        length = np.abs(gradient).sum(axis=(1, 2), keepdims=True)
        bounded = gradient / np.maximum(length, noise.clip)
        return np.asarray(np.trunc(bounded * noise.steps), dtype=np.int64)

    def transformed(
        self, number: int, sent: Broadcast, reports: Reports, inputs: RatingInputs, draws: Floats
    ) -> Transformed:
        """Transform the noise of the first reports' numbers; others are left out."""
        most = self.most
        rows = np.asarray(reports[:most], dtype=np.int64)
        noise = rows[:, :, 1:] - self.grid(sent, inputs[:most])
        noise = noise.reshape(len(noise), -1)
        survival = np.exp(self.training.noise.distribution.log_survival(noise))
        mass = np.exp(self.training.noise.distribution.log_pmf(noise))
        # One draw a report is enough: the noise is wide, and one step of it has hardly any mass.
        values = np.clip(survival - draws[:most, :1] * mass, 0.0, 1.0 - 2.0**-53)
        named = (("a gradient's number", values, laplace_fault(PLANTED)),)
        return Transformed(values[:, :PAIRED_NUMBERS], named)

    def see_bits(self, table: FitTable, reports: Reports, rated: Flags) -> None:
        """Count the bits that are flipped, ad by ad and all together."""
        flips = np.asarray(reports)[:, :, 0].astype(np.bool_) ^ rated
        lie, fault = self._flip(1.0), self._flip(PLANTED)
        counts, tried = flips.sum(axis=0), np.full(flips.shape[1], len(flips))
        table.add("rated ads reported as others", counts, tried, lie, fault)
        table.add("all rated ads reported as others", counts.sum(), flips.size, lie, fault)

    def _flip(self, times: float) -> float:
        response = self.training.noise.response
        return BinaryResponse(times * response.epsilon).flip / ONE

    def noise(
        self, number: int, sent: Broadcast, reports: Reports, inputs: RatingInputs, draws: Floats
    ) -> Named:
        """Transform all that is transformed."""
        return self.transformed(number, sent, reports, inputs, draws).named

    def log_likelihood(
        self, number: int, sent: Broadcast, reports: Reports, inputs: RatingInputs
    ) -> Floats:
        """Return ln P(bits and numbers | gradients)."""
        rows, lie = np.asarray(reports, dtype=np.int64), self._flip(1.0)
        flips = (rows[:, :, 0].astype(np.bool_) ^ inputs.rated).sum(axis=1)
        noise = rows[:, :, 1:] - self.grid(sent, inputs)
        logs = self.training.noise.distribution.log_pmf(noise).sum(axis=(1, 2))
        return np.asarray(logs + flips * math.log(lie / (1 - lie)))

    def planted(
        self, number: int, sent: Broadcast, inputs: RatingInputs, source: SeededSource
    ) -> Reports:
        """Draw bits and noise with noise a quarter too small."""
        grid = self.grid(sent, inputs)
        noise = self.larger.sampler(source.child("noise"))(grid.size)
        reports = np.empty((*inputs.rated.shape, 1 + grid.shape[2]), dtype=np.int64)
        flips = source.child("flips").generator().random(inputs.rated.shape) < self._flip(PLANTED)
        reports[:, :, 0] = inputs.rated ^ flips
        reports[:, :, 1:] = grid + noise.reshape(grid.shape)
        return reports
