"""Signs that lean towards a vector, as declared.

Given the draws, the rank of the reported signs among all candidates, by how far they lean, has a
declared distribution. Reports are words of a coset; which coset does not depend on the data. The
lite form leans with a known probability.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.ads.training import (
    Broadcast,
    SpectralTraining,
)
from noisefloor.adversary.audit import PLANTED_FACTOR as PLANTED
from noisefloor.adversary.fit import (
    raised_fault,
    raised_uniforms,
)
from noisefloor.checks import Floats
from noisefloor.distributions import ONE
from noisefloor.mechanisms import (
    AxisSigns,
    BinaryResponse,
    DirectionSigns,
    Reports,
    frame,
    minus_signs,
    raised_weight,
)
from noisefloor.randomness import SeededSource
from noisefloor_sim.pipelines.ads.flows.report_reference import (
    ALL,
    Flags,
    Named,
    RatingInputs,
    Transformed,
    base_ratings,
)

COUNT_WEIGHT = 0.05
"""Length of the place that counts ratings, for a user with as many as expected."""

_LEAST_LENGTH = 2.0**-40


@dataclass(frozen=True, slots=True)
class SpectralReference:
    """Signs that lean towards a vector, or along its axis."""

    training: SpectralTraining

    @property
    def most(self) -> int:
        """All of them."""
        return ALL

    def vectors(self, number: int, sent: Broadcast, inputs: RatingInputs) -> Floats:
        """Return what the reports of a round lean towards."""
        ads = self.training.ads
        if number == 0:
            return np.where(inputs.rated, 1.0, -1.0)
        if number == 2:
            return inputs.above(base_ratings(sent.model))
        rates = np.full(ads, 0.5) if sent.rates is None else sent.rates.astype(np.float64)
        weight = COUNT_WEIGHT / math.sqrt(float(rates.sum()))
        counts = weight * inputs.rated.sum(axis=1, keepdims=True)
        return np.concatenate([inputs.above(np.full(ads, self.training.centre)), counts], axis=1)

    def _is_lite(self, number: int) -> bool:
        return number == 2 and self.training.form == "lite"

    def _mechanism(self, number: int) -> DirectionSigns | AxisSigns:
        both = self.training.rated, self.training.directions
        return both[number] if number < 2 else self.training.axes

    def transformed(
        self, number: int, sent: Broadcast, reports: Reports, inputs: RatingInputs, draws: Floats
    ) -> Transformed:
        """Transform how far the signs lean, and what no data decide of them."""
        bits = np.asarray(reports, dtype=np.bool_)
        if self._is_lite(number):
            return self._lite(bits, self.vectors(number, sent, inputs), draws)
        mechanism = self._mechanism(number)
        low, high = _rank_interval(mechanism, bits, self.vectors(number, sent, inputs))
        ends = [_below_rank(mechanism, end) for end in (low, high)]
        leans = ends[0] + draws[:, 0] * (ends[1] - ends[0])
        drawn = _coset_values(mechanism, bits, draws[:, 1])
        fault = raised_fault(mechanism.hold / ONE, _planted_hold(mechanism) / ONE)
        name = ("rated-ads", "rating-directions", "rating-axes")[number]
        named = ((f"a {name} report", leans, fault), (f"signs of a {name} report", drawn, None))
        return Transformed(np.column_stack([leans, drawn]), named)

    def _lite(self, bits: Flags, vectors: Floats, draws: Floats) -> Transformed:
        leans, is_known = _lite_leans(bits, vectors)
        flip = self.training.bit.flip / ONE
        fault = 1 - BinaryResponse(PLANTED * self.training.epsilon).flip / ONE
        found = raised_uniforms(leans, 1 - flip, draws[:, 0])
        # Where the product is zero, the report says nothing.
        found = np.where(is_known, found, draws[:, 0])
        drawn = _packed_values(bits[:, : bits.shape[1] // 2], draws[:, 1])
        named = (
            ("a lite report", found[is_known], raised_fault(1 - flip, fault)),
            ("signs of a lite report", drawn, None),
        )
        return Transformed(np.column_stack([found, drawn]), named)

    def noise(
        self, number: int, sent: Broadcast, reports: Reports, inputs: RatingInputs, draws: Floats
    ) -> Named:
        """Transform all that is transformed."""
        return self.transformed(number, sent, reports, inputs, draws).named

    def log_likelihood(
        self, number: int, sent: Broadcast, reports: Reports, inputs: RatingInputs
    ) -> Floats:
        """Return ln P(signs | vector) but for the draws, which are the same for all data."""
        bits, vectors = np.asarray(reports, dtype=np.bool_), self.vectors(number, sent, inputs)
        if self._is_lite(number):
            leans, is_known = _lite_leans(bits, vectors)
            flip = self.training.bit.flip / ONE
            chance = np.where(is_known, np.where(leans, 1 - flip, flip), 0.5)
            return np.asarray(np.log(chance))
        mechanism = self._mechanism(number)
        low, high = _rank_interval(mechanism, bits, vectors)
        mass = _below_rank(mechanism, high) - _below_rank(mechanism, low)
        return np.asarray(np.log(mass / (high - low)))

    def planted(
        self, number: int, sent: Broadcast, inputs: RatingInputs, source: SeededSource
    ) -> Reports:
        """Draw signs that lean a third too far, in units of epsilon."""
        epsilon = PLANTED * self.training.epsilon
        if self._is_lite(number):
            vectors = self.vectors(number, sent, inputs)
            draw = source.generator()
            bits = draw.random((len(inputs), 2 * self.training.ads)) < 0.5
            leans, _ = _lite_leans(bits, vectors)
            turned = leans ^ (draw.random(len(inputs)) >= BinaryResponse(epsilon).flip / ONE)
            bits[:, self.training.ads :] ^= turned[:, None]
            return bits
        mechanism = self._mechanism(number)
        larger = type(mechanism)(
            mechanism.dimension, epsilon, mechanism.length, mechanism.rows, mechanism.top
        )
        vectors = self.vectors(number, sent, inputs)
        length = np.sqrt((vectors**2).sum(axis=1, keepdims=True))
        unit = vectors / np.maximum(length, _LEAST_LENGTH)
        return larger.randomise(unit.astype(np.float32), source)


def _candidates(mechanism: DirectionSigns | AxisSigns) -> int:
    return 2 * mechanism.rows if isinstance(mechanism, DirectionSigns) else mechanism.rows


def _planted_hold(mechanism: DirectionSigns | AxisSigns) -> int:
    epsilon = PLANTED * mechanism.epsilon
    return raised_weight(epsilon, mechanism.top, _candidates(mechanism))


def _below_rank(mechanism: DirectionSigns | AxisSigns, rank: NDArray[np.int64]) -> Floats:
    """Return the probability that a candidate of a lower rank is sent; rank 0 leans most."""
    hold, top = mechanism.hold / ONE, mechanism.top
    within, beyond = np.minimum(rank, top), np.maximum(rank - top, 0)
    return np.asarray(hold * within / top + (1 - hold) * beyond / (_candidates(mechanism) - top))


def _rank_interval(
    mechanism: DirectionSigns | AxisSigns, bits: Flags, vectors: Floats
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return between which ranks a report lies among all candidates with the same draws.

    They are the report times every row of the codebook, and for directions the opposites as
    well. Products are whole numbers; candidates that tie share an interval.
    """
    coset = mechanism.coset
    length = np.sqrt((vectors**2).sum(axis=1, keepdims=True))
    unit = np.where(length > _LEAST_LENGTH, vectors / np.maximum(length, _LEAST_LENGTH), 0.0)
    whole = np.rint(unit * coset.grid)
    if coset.is_spread:
        whole = whole @ frame(mechanism.length, mechanism.dimension).T.astype(np.float64)
    signed = np.where(bits, whole, -whole)
    rows = 1.0 - 2.0 * minus_signs(mechanism.rows, mechanism.length)
    # Single precision holds all of these whole numbers, and is faster.
    products = signed.astype(np.float32) @ rows.T.astype(np.float32)
    own, size = products[:, :1], np.abs(products)
    if isinstance(mechanism, AxisSigns):
        above, equal = (size > np.abs(own)).sum(axis=1), (size == np.abs(own)).sum(axis=1)
        return above, above + equal
    above = (products > own).sum(axis=1) + (-products > own).sum(axis=1)
    equal = (products == own).sum(axis=1) + (-products == own).sum(axis=1)
    return above, above + equal


def _coset_values(mechanism: DirectionSigns | AxisSigns, bits: Flags, draws: Floats) -> Floats:
    """Return numbers that say which coset a report is of: uniform, whatever the data are.

    The first columns of the codebook are the bits of a row's index: the row that agrees with the
    report there is taken away, and what is left is the same for all candidates of the draws. For
    directions only such columns are read as their opposites leave alone.
    """
    rows, length = mechanism.rows, mechanism.length
    width, codebook = rows.bit_length() - 1, minus_signs(rows, length)
    index = (~bits[:, :width]) @ (1 << np.arange(width))
    left = ~bits ^ codebook[index]
    steady = np.arange(length) >= width
    if isinstance(mechanism, DirectionSigns):
        steady &= codebook[-1]
    return _packed_values(left[:, steady], draws)


def _packed_values(bits: Flags, draws: Floats) -> Floats:
    """Return fair bits, 32 at most, as the leading digits of uniform numbers."""
    count = min(bits.shape[1], 32)
    digits = bits[:, :count] @ (0.5 ** np.arange(1, count + 1))
    return np.asarray(digits + draws * 0.5**count)


def _lite_leans(bits: Flags, vectors: Floats) -> tuple[Flags, Flags]:
    """Return whether the product of two rows of signs is positive, and whether it is any."""
    half = bits.shape[1] // 2
    one, other = (np.where(some, vectors, -vectors) for some in (bits[:, :half], bits[:, half:]))
    product = one.sum(axis=1) * other.sum(axis=1) - (one * other).sum(axis=1)
    scale = np.abs(vectors).sum(axis=1) ** 2
    return product > 0, np.abs(product) > 1e-5 * scale
