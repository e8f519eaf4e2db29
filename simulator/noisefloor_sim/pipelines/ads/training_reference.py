"""What training reports are about, and how likely each is, computed apart from the devices.

Tastes, gradients, clipping, grids and ranks are worked out here anew, in double precision and by
formulas of their own; of the mechanisms only public constants are read: weights, grids and the
codebook. Devices compute in single precision, so that a value may be off by one step of its grid,
which moves no probability by more than 1e-4.

Every form says of a report: the transformed values that are uniform if it follows its declared
distribution, and its log-likelihood, up to what does not depend on the data.

- Bits: the cell is uniform, whatever the data are; the bit has a probability linear in the clipped
  gradient there.
- Laplace: each number less the clipped gradient on the grid is two-sided geometric; each bit that
  says whether an ad is rated is flipped with a known probability.
- Spectral: given the draws, the rank of the reported signs among all candidates, by how far they
  lean, has a declared distribution. Reports are words of a coset; which coset does not depend on
  the data. The lite form leans with a known probability.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from noisefloor.ads.training import (
    AdModel,
    AdTraining,
    BitTraining,
    Broadcast,
    GradientBound,
    LaplaceTraining,
    SpectralTraining,
)
from noisefloor.adversary.audit import PLANTED_FACTOR as PLANTED
from noisefloor.adversary.fit import (
    Distribution,
    FitTable,
    laplace_fault,
    raised_fault,
    raised_uniforms,
)
from noisefloor.checks import Floats
from noisefloor.distributions import ONE
from noisefloor.mechanisms import (
    AxisSigns,
    BinaryResponse,
    DirectionSigns,
    OneBitMean,
    Reports,
    TwoSidedGeometric,
    frame,
    minus_signs,
    raised_weight,
)
from noisefloor.randomness import SeededSource

GRID = 1 << 15
"""Steps from 0 to 1 of the value that a bit is about."""

ALL = 1 << 62
"""More reports than there are."""

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class RatingInputs:
    """What some reports are about.

    Attributes:
        rated: Whether an ad is rated.
        rating: How, where it is.
        tastes: The tastes that the reports are made with, where they are remembered over rounds.
    """

    rated: Flags
    rating: NDArray[np.float32]
    tastes: Floats | None = None

    def __len__(self) -> int:
        return len(self.rated)

    def __getitem__(self, rows: NDArray[np.int64] | slice) -> "RatingInputs":
        tastes = None if self.tastes is None else self.tastes[rows]
        return RatingInputs(self.rated[rows], self.rating[rows], tastes)

    @classmethod
    def joined(cls, parts: Sequence["RatingInputs"]) -> "RatingInputs":
        """Return several one after the other; all have tastes, or none has."""
        tastes = [part.tastes for part in parts if part.tastes is not None]
        return cls(
            np.concatenate([part.rated for part in parts]),
            np.concatenate([part.rating for part in parts]),
            np.concatenate(tastes) if tastes else None,
        )

    def above(self, base: Floats) -> Floats:
        """Return ratings less a base, and 0 where there are none."""
        return np.where(self.rated, self.rating.astype(np.float64) - base, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Transformed:
    """Some reports, transformed.

    Attributes:
        values: Uniform, one row for each of the first reports; columns are independent.
        named: Values to be counted by themselves: what they are, and how the planted fault would
            distribute them.
    """

    values: Floats
    named: "Named"


Named = tuple[tuple[str, Floats, Distribution | None], ...]
"""Transformed values, what they are, and how the planted fault would distribute them."""


class ReportReference(Protocol):
    """What is declared of the reports of one way of training."""

    @property
    def most(self) -> int:
        """Reports of a cohort's round that are transformed, the first of them."""
        ...

    def noise(
        self, number: int, sent: Broadcast, reports: Reports, inputs: RatingInputs, draws: Floats
    ) -> Named:
        """Return only what says how much noise there is."""
        ...

    def transformed(
        self, number: int, sent: Broadcast, reports: Reports, inputs: RatingInputs, draws: Floats
    ) -> Transformed:
        """Return what is uniform if reports follow their distribution; two draws each."""
        ...

    def log_likelihood(
        self, number: int, sent: Broadcast, reports: Reports, inputs: RatingInputs
    ) -> Floats:
        """Return ln P(report | ratings), up to what no data change."""
        ...

    def planted(
        self, number: int, sent: Broadcast, inputs: RatingInputs, source: SeededSource
    ) -> Reports:
        """Return reports with noise a quarter too small."""
        ...


def reference_of(training: AdTraining) -> ReportReference:
    """Return what is declared of a way of training."""
    if isinstance(training, BitTraining):
        return BitReference(training)
    if isinstance(training, LaplaceTraining):
        return LaplaceReference(training)
    if isinstance(training, SpectralTraining):
        return SpectralReference(training)
    raise TypeError(f"{type(training).__name__} has no declared distribution.")


def ridge_tastes(model: AdModel, inputs: RatingInputs, ridge: float, radius: float) -> Floats:
    """Return the tastes that fit ratings best, by the normal equations, within a ball."""
    factors = model.factors.astype(np.float64)
    ads, wide = factors.shape
    products = (factors[:, :, None] * factors[:, None, :]).reshape(ads, wide * wide)
    gram = (inputs.rated.astype(np.float64) @ products).reshape(-1, wide, wide)
    gram += ridge * np.eye(wide)
    right = inputs.above(_base(model)) @ factors
    found = np.linalg.solve(gram, right[:, :, None])[:, :, 0]
    return _within(np.asarray(found, dtype=np.float64), radius)


def stepped_tastes(
    model: AdModel,
    inputs: RatingInputs,
    before: Floats,
    *,
    rate: float,
    weight: float,
    radius: float,
) -> Floats:
    """Return tastes after one gradient step from those before."""
    factors = model.factors.astype(np.float64)
    error = np.where(inputs.rated, inputs.above(_base(model)) - before @ factors.T, 0.0)
    moved = before + 2 * rate * (error @ factors - weight * before)
    return _within(moved, radius)


def _base(model: AdModel) -> Floats:
    return model.offsets.astype(np.float64) + model.centre


def _within(rows: Floats, radius: float) -> Floats:
    if math.isinf(radius):
        return rows
    norm = np.sqrt((rows**2).sum(axis=1, keepdims=True))
    return np.asarray(rows / np.maximum(norm / radius, 1.0))


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
        predicted = _base(model)[ad] + (tastes * model.factors[ad]).sum(axis=1)
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
        error = np.where(inputs.rated, inputs.above(_base(model)) - predicted, 0.0)
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
            return inputs.above(_base(sent.model))
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
