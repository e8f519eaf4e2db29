"""What tables of integer weights cost beyond the Gaussian noise that they stand for.

By total variation, cut tails and rounded weights cost ``(1 + e**epsilon)`` times their chance, and
in a ledger epsilon is that of the whole budget: from a budget of about 12 on nothing is left. Here
the cost has no such factor, since what rounding changes is bounded where it is drawn.

Let a cell of a table have whole weights w(k) for |k| <= R, and x(k) before they were rounded:
``w = max(1, floor(x))``, but for 0, which takes up the rest. Two neighbours have the noise P and
Q: in each of at most n cells that a record moves, Q is P shifted by a whole s, and with u for s
over sigma the squares of u add up to at most T = (moved / multiplier)**2.

1. x >= 1 up to the reach, so x / w <= 1 + 1 / w and 1 / w <= 2 / x. Weights off 0 are not above x
   and that of 0 is by at most 2 R: w <= (1 + a) x with a = 2 R / x(0).
2. So where the sum of 1 / w over the moved cells is at most eta, the privacy loss is at most that
   of unrounded noise, plus eta + n log(1 + a).
3. Drawn from w itself, 1 / w has a mean of (2 R + 1) / 2**64: one for every weight. Drawn from w
   shifted by s, its mean is at most 2 (1 + a) (2 R + 1) cosh(R u / sigma) / 2**64, since
   x(k - s) / x(k) <= exp(k u / sigma). As cosh(r sqrt(t)) is convex in t, the sum over the cells
   is largest where one cell has all of T: n - 1 + cosh(r sqrt(T)). By Markov's inequality the sum
   of 1 / w passes eta at either place with a chance of at most that mean over eta.
4. A draw lies beyond the reach of the other table with a chance of at most
   s (1 + a) exp(r u) / 2**64, r = (R + 1) / sigma: s weights, each of which is that much larger at
   most. Over all cells the first powers of u in u exp(r u) add up to at most sqrt(n T), and each
   higher one to at most what it is where one cell has all of T.

But for the chance ``delta`` of 3 and 4, divergences of every order a >= 2 are those of unrounded
noise and at most ``eta + 2 (n log(1 + a) + 2 delta)`` more: conditioning costs a / (a - 1) times
``-log(1 - delta)``. Unrounded noise of a whole shift diverges no more than continuous noise
(Canonne, Kamath, Steinke 2020, arXiv 2004.00010, proposition 5).
"""

import math
from dataclasses import dataclass

from noisefloor.mechanisms import GaussianTable

_ONE = 2.0**64
_MOST_EXPONENT = 600.0
"""Beyond it cosh is no float, and the chance is larger than any delta."""

_HAIR = 1 + 1e-9
"""For the rounding of floats."""


@dataclass(frozen=True, slots=True)
class TableRounding:
    """What rounding costs in the cells of a table that a record moves.

    Attributes:
        mean: Of the sum of 1 / w, at both places together.
        missed: The chance of a draw beyond the reach of the other table.
        excess: The sum of ``log(1 + a)``.
    """

    mean: float
    missed: float
    excess: float

    @classmethod
    def of(cls, least: float, widest: float, cells: int, shift: float) -> "TableRounding":
        """Bound a table whatever its scales and cells turn out to be.

        Args:
            least: Sigma of the narrowest cell, in units of the grid.
            widest: Sigma of the widest cell.
            cells: The most that a record moves.
            shift: The root of T.
        """
        reach = GaussianTable(widest).reach
        # The narrower a table, the farther it reaches in its own sigma.
        farthest = (GaussianTable(least).reach + 1) / least + 1 / least
        power = farthest * shift
        if power > _MOST_EXPONENT:
            return cls(math.inf, math.inf, math.inf)
        above = 2 * reach * widest * math.sqrt(2 * math.pi) * _HAIR / _ONE
        a_cell = (2 * reach + 1) / _ONE
        mean = a_cell * (cells + 2 * (1 + above) * (cells - 1 + math.cosh(power)))
        at_ends = math.sqrt(cells) * shift + shift * math.expm1(power)
        missed = widest * (1 + above) * at_ends / _ONE
        return cls(mean * _HAIR, 2 * missed * _HAIR, cells * math.log1p(above) * _HAIR)

    def delta(self, eta: float) -> float:
        """Return the chance of a draw where 1 / w adds up to more than ``eta``, or beyond."""
        return self.mean / eta + self.missed

    def cost(self, delta: float) -> float:
        """Return what divergences of any order rise by, but for a chance of ``delta``."""
        if self.missed >= delta:
            return math.inf
        return self.mean / (delta - self.missed) + 2 * (self.excess + 2 * delta)

    def __add__(self, other: "TableRounding") -> "TableRounding":
        return TableRounding(
            self.mean + other.mean, self.missed + other.missed, self.excess + other.excess
        )
