"""Bits about gradients, as declared.

The cell is uniform, whatever the data are; the bit has a probability linear in the clipped
gradient there.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.ads.training import (
    AdModel,
    BitTraining,
    Broadcast,
)
from noisefloor.adversary.audit import PLANTED_FACTOR as PLANTED
from noisefloor.adversary.fit import (
    Distribution,
    raised_fault,
    raised_uniforms,
)
from noisefloor.checks import Floats
from noisefloor.distributions import ONE
from noisefloor.mechanisms import (
    OneBitMean,
    Reports,
)
from noisefloor.randomness import SeededSource
from noisefloor_sim.pipelines.ads.flows.report_reference import (
    ALL,
    Named,
    RatingInputs,
    Transformed,
    base_ratings,
    ridge_tastes,
)

GRID = 1 << 15
"""Steps from 0 to 1 of the value that a bit is about."""

_STRENGTHS = (
    ("a gradient of zero", 0.0, 0.0),
    ("a weak gradient", 0.0, 0.25),
    ("a gradient below the clip", 0.25, 1.0 - 1e-6),
    ("a clipped gradient", 1.0 - 1e-6, 1.0),
)
"""Values by their size: the larger one is, the more its bit says."""


@dataclass(frozen=True, slots=True)
class BitReference:
    """One bit about one cell of the gradient."""

    training: BitTraining

    @property
    def most(self) -> int:
        """All of them."""
        return ALL

    def tastes(self, model: AdModel, inputs: RatingInputs) -> Floats:
        """Return the tastes that the reports are made with."""
        if inputs.tastes is not None:
            return inputs.tastes
        return ridge_tastes(model, inputs, self.training.ridge, 1.0)

    def values(self, sent: Broadcast, cells: NDArray[np.int64], inputs: RatingInputs) -> Floats:
        """Return the clipped gradient of each report's cell, in units of the clip.

        It is 0 where the ad is not rated: most tastes are not needed.
        """
        ad, place = np.divmod(cells, self.training.width)
        some = np.flatnonzero(inputs.rated[np.arange(len(cells)), ad])
        model = sent.model
        if len(some) < len(cells):
            inputs, ad, place = inputs[some], ad[some], place[some]
        tastes, each = self.tastes(model, inputs), np.arange(len(some))
        predicted = base_ratings(model)[ad] + (tastes * model.factors[ad]).sum(axis=1)
        error = inputs.rating[each, ad].astype(np.float64) - predicted
        # Everybody's taste for an offset is 1.
        with_one = np.concatenate([tastes, np.ones((len(some), 1))], axis=1)
        gradient = -2 * with_one[each, place] * error
        values = np.zeros(len(cells))
        values[some] = np.clip(gradient / self.training.clip, -1.0, 1.0)
        return values

    def _one(self, values: Floats, bit: OneBitMean) -> Floats:
        """Return the probability of a one."""
        return np.asarray(0.5 + np.rint(values * GRID) * (bit.slope / ONE))

    def transformed(
        self, number: int, sent: Broadcast, reports: Reports, inputs: RatingInputs, draws: Floats
    ) -> Transformed:
        """Transform the bit, agreement with the gradient first, and the cell."""
        codes = np.asarray(reports, dtype=np.int64)
        bits, size = self._bits(sent, codes, inputs, draws)
        cells = ((codes >> 1) + draws[:, 1]) / self.training.cells
        named = [("the cell of a report", cells, None), *self._by_strength(bits, size)]
        return Transformed(np.column_stack([bits, cells]), tuple(named))

    def noise(
        self, number: int, sent: Broadcast, reports: Reports, inputs: RatingInputs, draws: Floats
    ) -> Named:
        """Transform the bits about ads that are rated: others say nothing of the noise."""
        codes = np.asarray(reports, dtype=np.int64)
        ads = (codes >> 1) // self.training.width
        some = np.flatnonzero(inputs.rated[np.arange(len(codes)), ads])
        bits, size = self._bits(sent, codes[some], inputs[some], draws[some])
        return tuple(self._by_strength(bits, size))

    def _bits(
        self, sent: Broadcast, codes: NDArray[np.int64], inputs: RatingInputs, draws: Floats
    ) -> tuple[Floats, Floats]:
        """Return the transforms of bits, and how large the values are that they are about."""
        values = self.values(sent, codes >> 1, inputs)
        is_up = (codes & 1).astype(np.bool_)
        size = np.abs(values)
        chance = self._one(size, self.training.bit.one_bit)
        return raised_uniforms(is_up ^ (values < 0), chance, draws[:, 0]), size

    def _by_strength(
        self, bits: Floats, size: Floats
    ) -> Iterator[tuple[str, Floats, Distribution | None]]:
        own = self.training.bit.one_bit
        larger = OneBitMean(PLANTED * own.epsilon)
        for name, low, high in _STRENGTHS:
            some = (size > low) & (size <= high) if high else size == 0
            usual = np.array([size[some].mean() if some.any() and high else 0.0])
            chances = [float(self._one(usual, bit)[0]) for bit in (own, larger)]
            yield f"the bit about {name}", bits[some], raised_fault(*chances) if high else None

    def log_likelihood(
        self, number: int, sent: Broadcast, reports: Reports, inputs: RatingInputs
    ) -> Floats:
        """Return ln P(bit | gradient in the reported cell)."""
        codes = np.asarray(reports, dtype=np.int64)
        one = self._one(self.values(sent, codes >> 1, inputs), self.training.bit.one_bit)
        return np.asarray(np.log(np.where(codes & 1, one, 1 - one)))

    def planted(
        self, number: int, sent: Broadcast, inputs: RatingInputs, source: SeededSource
    ) -> Reports:
        """Draw cells and bits with noise a quarter too small."""
        draw = source.generator()
        cells = draw.integers(0, self.training.cells, len(inputs))
        larger = OneBitMean(PLANTED * self.training.bit.one_bit.epsilon)
        one = self._one(self.values(sent, cells, inputs), larger)
        return np.asarray(2 * cells + (draw.random(len(inputs)) < one))
