"""Cosets of sign vectors: candidates that no data choose, ranked by how far they lean.

A device draws a sign vector s without looking at its data. Its candidates are s times the rows
of a Hadamard matrix, whose columns are cut to the length of s: a coset of a linear code. The rows
are a group, so the same candidates come with every s of the coset, and the distribution of what is
sent can be summed exactly. All products are whole numbers below 2**24, which float32 holds: so
the order does not depend on how a library adds, on the block or on the machine.
"""

import hashlib
import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from noisefloor.distributions import ONE
from noisefloor.randomness import Source

Single = NDArray[np.float32]
Bits = NDArray[np.bool_]
Ranks = NDArray[np.int32]

_LARGEST = 1 << 20
"""Bound of a product: with the ten bits of an index behind it, it stays within 31 bits."""

MOST_ROWS = 1 << 10
"""Rows of the largest Hadamard matrix in use."""


@cache
def minus_signs(rows: int, columns: int) -> Bits:
    """Return where a Hadamard matrix, its columns cut or repeated, is -1.

    The columns of single bits come first: then as many rows differ as possible.
    """
    single = [1 << bit for bit in range(rows.bit_length() - 1)]
    # The others by the reversed bits of their number, so that a cut takes from all over.
    width = rows.bit_length() - 1
    turned = [int(f"{place:0{max(width, 1)}b}"[::-1], 2) for place in range(rows)]
    order = np.array([*single, *(place for place in turned if place not in single)])
    chosen = order[np.arange(columns) % rows]
    return np.asarray(np.bitwise_count(np.arange(rows)[:, None] & chosen) & 1, dtype=np.bool_)


@cache
def _signs(rows: int, columns: int) -> Single:
    """Return the cut Hadamard matrix, one column per row of it, as matrix products take it."""
    return np.ascontiguousarray(1 - 2 * minus_signs(rows, columns).T.astype(np.float32))


@cache
def frame(length: int, dimension: int) -> Single:
    """Return ``dimension`` orthogonal columns of signs, which spread a vector over ``length``.

    Columns of a Hadamard matrix, chosen and turned at random: in their own order they would
    gather a smooth vector in few places. They are public, read off a hash, and the same for all.
    """
    drawn = hashlib.shake_256(f"noisefloor frame {length}".encode()).digest(8 * length)
    order, turn = np.frombuffer(drawn, dtype="<u4").reshape(2, length)
    columns = _signs(length, length)[:, np.argsort(order, kind="stable")]
    columns *= 1 - 2 * (turn & 1).astype(np.float32)
    return np.ascontiguousarray(columns[:, :dimension])


@dataclass(frozen=True, slots=True)
class Coset:
    """How vectors meet their candidates.

    Attributes:
        dimension: Numbers per vector.
        length: Signs per candidate; if more than ``dimension``, vectors are spread first.
        rows: Candidates, up to their signs; a power of two.
    """

    dimension: int
    length: int
    rows: int

    @property
    def is_spread(self) -> bool:
        """Whether vectors are spread over more places than they have."""
        return self.length > self.dimension

    @property
    def grid(self) -> int:
        """Steps in the length of a unit vector: no product passes the bound."""
        # By Cauchy and Schwarz a product is at most sqrt(length) times the length of the vector.
        stretch = self.length if self.is_spread else math.sqrt(self.length)
        return 1 << int(math.log2(_LARGEST / (2 * stretch)))

    def whole(self, vectors: Single) -> Single:
        """Return unit vectors, in place, as whole numbers of grid steps, spread if need be."""
        vectors *= np.float32(self.grid)
        np.rint(vectors, out=vectors)
        return vectors @ frame(self.length, self.dimension).T if self.is_spread else vectors

    def products(self, whole: Single, minus: Bits) -> Single:
        """Return the product with every row's candidate; ``minus`` is where s is -1.

        ``whole`` is overwritten.
        """
        flipped = whole.view(np.uint32)
        flipped ^= minus.astype(np.uint32) << np.uint32(31)
        folded = whole[:, : self.rows]
        for start in range(self.rows, self.length, self.rows):
            part = whole[:, start : start + self.rows]
            folded[:, : part.shape[1]] += part
        return folded @ _signs(self.rows, min(self.rows, self.length))

    def ranked(self, products: Single) -> Ranks:
        """Return numbers that order the rows by size of product, the index in the last bits."""
        ranks = np.abs(products).astype(np.int32)
        ranks *= np.int32(self.rows)
        ranks += np.arange(self.rows, dtype=np.int32)
        return ranks

    def share_on_top(self, reports: Bits, whole: Single, top: int) -> NDArray[np.float64]:
        """Return for how many of the rows that may have led to a report it was in the top set.

        Args:
            reports: Rows of signs, true for +1.
            whole: One vector as whole numbers.
            top: Rows in the top set.

        Returns:
            A share in [0, 1]. It is 0 or 1 unless products tie: ties go by the row's index, and
            which index a report had is not released.
        """
        rows = np.repeat(whole[None], len(reports), axis=0)
        size = np.abs(self.products(rows, ~reports))
        above = (size > size[:, :1]).sum(axis=1)
        ties = (size == size[:, :1]).astype(np.float32)
        # The report's own product is in column 0; had it been row k, column l was row l ^ k.
        place = np.arange(self.rows)
        wins = (place[:, None] ^ place) > place
        behind = above[:, None] + ties @ wins.astype(np.float32)
        return np.asarray((behind < top).mean(axis=1))


def draw_signs(draws: Source, count: int, length: int) -> Bits:
    """Return fair draws, one row of ``length`` for each of ``count`` users."""
    return draws.bernoulli(ONE // 2, count * length).reshape(count, length)


@cache
def expected_tops(rows: int, power: int) -> NDArray[np.float64]:
    """Return the mean sum of the largest 1, 2, ... of n |N|, or of N**2 - 1 for power 2.

    N is standard normal: the products of candidates with a vector spread over many places.
    """
    from scipy.special import bdtr, erfc  # lazy: scipy is slow to import

    size = np.linspace(0.0, 9.0, 4001)
    density = math.sqrt(2 / math.pi) * np.exp(-(size**2) / 2)
    worth = density * (size if power == 1 else size**2 - 1)
    above = erfc(size / math.sqrt(2))
    # One of them is this large, and fewer than ``top`` of the others are larger.
    fewer = np.array([bdtr(top, rows - 1, above) for top in range(rows)])
    return np.asarray(rows * np.trapezoid(fewer * worth, size, axis=1))


@cache
def best_top(epsilon: float, rows: int, candidates: int, power: int) -> tuple[int, float]:
    """Return the size of the top set that gains most, and the gain.

    The gain is the mean product (or squared product less 1) of what is sent with the vector.
    """
    tops = np.arange(1, min(rows, candidates - 1) + 1)
    lie = math.exp(-epsilon)
    gains = expected_tops(rows, power)[: len(tops)] * (1 - lie)
    gains /= tops + (candidates - tops) * lie
    return int(tops[gains.argmax()]), float(gains.max())


def gain_of(epsilon: float, rows: int, candidates: int, power: int, top: int) -> float:
    """Return the gain of a top set of a given size."""
    lie = math.exp(-epsilon)
    whole = top + (candidates - top) * lie
    return float(expected_tops(rows, power)[top - 1]) * (1 - lie) / whole


def rows_for(epsilon: float, length: int) -> int:
    """Return how many rows come within 2 % of what more of them would gain, up to epsilon 8."""
    enough = 64 if epsilon <= 4 else 128 if epsilon <= 6 else 256
    return min(enough, 1 << (length - 1)) if length < 10 else enough
