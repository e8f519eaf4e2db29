"""What every source of random bits can draw."""

import sys
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from noisefloor.distributions import ONE, STRADDLES, FiniteDistribution
from noisefloor.errors import BadParameter, NoisefloorError

Words = NDArray[np.uint64]
Bits = NDArray[np.bool_]

_HIGH = 1 if sys.byteorder == "little" else 0
"""Where the high half of a 64-bit word lies in memory."""

_MOST_RETRIES = 256
"""A rejection round fails with probability of about 1/2 at most: 256 in a row do not happen."""

_MOST_TIES = 8
"""65,536 words have a tie with probability 2**-33: eight times in a row does not happen."""

_TURN = 2 * np.pi


class Source(ABC):
    """Random bits, and the exact draws that are made of them."""

    __slots__ = ()

    @abstractmethod
    def words(self, count: int) -> Words:
        """Return ``count`` uniform 64-bit words."""

    def child(self, *path: str | int) -> "Source":
        """Return the source of another release; one whose streams have no names returns itself."""
        return self

    @abstractmethod
    def stage(self, *name: str | int) -> "Source":
        """Open the stream of one step of a release; each name opens once."""

    @abstractmethod
    def _spare(self, *name: str | int) -> "Source":
        """Return the stream that serves ties or rejections, the same one at each call."""

    def bytes_of(self, count: int) -> NDArray[np.uint8]:
        """Return at least ``count`` uniform bytes, padded to whole words."""
        return self.words(-(-count // 8)).view(np.uint8)

    def halves_of(self, count: int) -> NDArray[np.uint32]:
        """Return at least ``count`` uniform 32-bit integers, padded to whole words."""
        return self.words(-(-count // 2)).view(np.uint32)

    def bernoulli(self, threshold: int, count: int, out: Bits | None = None) -> Bits:
        """Return ``count`` draws, each true with probability exactly ``threshold / 2**64``.

        Eight bits settle 255 draws of 256; the others take 56 more from a stream of ties. The
        draws are written to ``out`` if it is given.
        """
        hits = np.empty(count, dtype=np.bool_) if out is None else out
        if not 0 <= threshold <= ONE:
            raise BadParameter("threshold", threshold, "in [0, 2**64]")
        if threshold in (0, ONE):
            hits[...] = threshold == ONE
            return hits
        coarse, fine = threshold >> 56, threshold & ((1 << 56) - 1)
        drawn = self.bytes_of(count)[:count]
        np.less(drawn, coarse, out=hits)
        if fine:
            ties = np.flatnonzero(drawn == coarse)
            hits[ties] = self._spare("ties").words(ties.size) >> np.uint64(8) < np.uint64(fine)
        return hits

    def bernoulli_each(self, thresholds: Words) -> Bits:
        """Return one draw per threshold, true with probability exactly threshold / 2**64."""
        shape, flat = thresholds.shape, thresholds.reshape(-1)
        drawn = self.words(-(-flat.size // 4)).view(np.uint16)[: flat.size]
        coarse = (flat >> np.uint64(48)).astype(np.uint16)
        hits = drawn < coarse
        ties = np.flatnonzero(drawn == coarse)
        fine = flat[ties] & np.uint64((1 << 48) - 1)
        hits[ties] = self._spare("ties").words(ties.size) >> np.uint64(16) < fine
        return hits.reshape(shape)

    def draw(self, distribution: FiniteDistribution, count: int) -> NDArray[np.signedinteger]:
        """Return ``count`` outcomes of a finite distribution, exactly by its integer weights."""
        drawn = self.words(-(-count // 4)).view(np.uint16)[:count]
        outcomes: NDArray[np.signedinteger] = distribution.guide.take(drawn)
        open_ = np.flatnonzero(outcomes == STRADDLES)
        rest = self._spare("ties").words(open_.size) >> np.uint64(16)
        full = (drawn[open_].astype(np.uint64) << np.uint64(48)) | rest
        outcomes[open_] = np.searchsorted(distribution.bounds, full, side="right")
        return outcomes

    def below(self, bound: int | NDArray[np.unsignedinteger], count: int) -> NDArray[np.uint32]:
        """Return ``count`` integers, each uniform below ``bound`` with no modulo bias.

        ``bound`` is one integer in [1, 2**32], or one per draw. Multiply and shift; the few low
        products that would be one too many are drawn again.
        """
        if isinstance(bound, np.ndarray):
            if bound.size and not (1 <= int(bound.min()) and int(bound.max()) <= 1 << 32):
                raise BadParameter("bound", "<array>", "in [1, 2**32]")
        else:
            if not 1 <= bound <= 1 << 32:
                raise BadParameter("bound", bound, "in [1, 2**32]")
            if bound & (bound - 1) == 0:
                shift = 33 - int(bound).bit_length()
                whole = self.halves_of(count)[:count]
                return np.zeros_like(whole) if shift == 32 else whole >> np.uint32(shift)
        bounds = bound.astype(np.uint64) if isinstance(bound, np.ndarray) else np.uint64(bound)
        surplus = np.uint64(1 << 32) % bounds
        chosen, low = _product(self.halves_of(count)[:count], bounds)
        rejected = np.flatnonzero(low < surplus)
        for retry in range(1, _MOST_RETRIES):
            if not rejected.size:
                return chosen
            some = bounds[rejected] if isinstance(bounds, np.ndarray) else bounds
            limit = surplus[rejected] if isinstance(surplus, np.ndarray) else surplus
            halves = self._spare("retry", retry).halves_of(rejected.size)[: rejected.size]
            chosen[rejected], low = _product(halves, some)
            rejected = rejected[low < limit]
        raise NoisefloorError(f"{_MOST_RETRIES} rejections in a row: the source is not random.")

    def below_wide(self, bounds: Words) -> Words:
        """Return one integer per bound, uniform below it, for bounds up to 2**63."""
        if bounds.size and not (1 <= int(bounds.min()) and int(bounds.max()) <= 1 << 63):
            raise BadParameter("bounds", "<array>", "in [1, 2**63]")
        # frexp may round a bound up to the next power of two: that only rejects more often.
        spare_bits = (64 - np.frexp(bounds.astype(np.float64))[1]).astype(np.uint64)
        chosen = self.words(bounds.size) >> spare_bits
        rejected = np.flatnonzero(chosen >= bounds)
        for retry in range(1, _MOST_RETRIES):
            if not rejected.size:
                return chosen
            again = self._spare("retry", retry).words(rejected.size) >> spare_bits[rejected]
            chosen[rejected] = again
            rejected = rejected[again >= bounds[rejected]]
        raise NoisefloorError(f"{_MOST_RETRIES} rejections in a row: the source is not random.")

    def permutation(self, count: int) -> NDArray[np.int64]:
        """Return a random order of ``count`` rows, each with exactly the same probability.

        Rows are sorted by 64-bit words. A tie would favour one of two orders, so all words are
        drawn again: words that all differ are in any order with equal probability.
        """
        for _ in range(_MOST_TIES):
            words = self.words(count)
            order = np.argsort(words)
            placed = words[order]
            if not np.any(placed[1:] == placed[:-1]):
                return order.astype(np.int64, copy=False)
        raise NoisefloorError(f"{_MOST_TIES} ties in a row: the source is not random.")

    def uniforms(self, count: int) -> NDArray[np.float64]:
        """Return ``count`` numbers in [0, 1), each one of 2**53 equal steps.

        For what is made of numbers that are released already: no guarantee rests on them.
        """
        return np.asarray((self.words(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53)

    def normals(self, count: int) -> NDArray[np.float32]:
        """Return ``count`` standard normal numbers, none of them NaN or infinite.

        Box and Muller's pairs. The radius comes from the middle of one of 2**53 steps, so its
        logarithm is finite for every word: no number is above 8.66 in size, and what is cut off
        has probability 5e-18. The distribution is that of real numbers up to the rounding of
        floats.
        """
        pairs = -(-count // 2)
        steps = (self.words(pairs) >> np.uint64(11)).astype(np.float64)
        radius = np.sqrt(-2.0 * np.log((steps + 0.5) * 2.0**-53)).astype(np.float32)
        angle = self.halves_of(pairs)[:pairs].astype(np.float32) * np.float32(_TURN / 2**32)
        drawn = np.empty(2 * pairs, dtype=np.float32)
        np.multiply(radius, np.cos(angle), out=drawn[:pairs])
        np.multiply(radius, np.sin(angle), out=drawn[pairs:])
        return drawn[:count]

    def laplaces(self, count: int) -> NDArray[np.float32]:
        """Return ``count`` standard Laplace numbers (scale 1), none of them NaN or infinite.

        A word is one of 2**63 steps on one side of 0; the logarithm of the middle of a step is
        finite. No number is above 44.4 in size, and what is cut off has probability 6e-20. The
        distribution is that of real numbers up to the rounding of floats; for exact proofs there
        is discrete Laplace noise.
        """
        drawn = self.words(count).view(np.int64).astype(np.float32)
        drawn += np.float32(0.5)
        bits = drawn.view(np.uint32)
        signs = bits & np.uint32(1 << 31)
        np.abs(drawn, out=drawn)
        drawn *= np.float32(2.0**-63)
        np.log(drawn, out=drawn)
        bits ^= signs
        return drawn


def _product(
    halves: NDArray[np.uint32], bounds: Words | np.uint64
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the high and the low half of the 64-bit products, without shifting them apart."""
    product = (halves * bounds).view(np.uint32)
    return product[_HIGH::2].copy(), product[1 - _HIGH :: 2]
