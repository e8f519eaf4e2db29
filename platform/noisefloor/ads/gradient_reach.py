"""How far apart two users' gradients can lie, if tastes and factors stay in unit balls.

The gradient of an ad is -2 u (r - u.v), r being the rating less the centre, |r| <= h. For two
users with tastes u and -w, and a sign vector sqrt(d) e, the L1 distance is at most the largest
2 sqrt(d) [(r - u.v)(e.u) + (r' + w.v)(e.w)]. It is linear in v, and v best lies along
(e.w) w - (e.u) u, which leaves 2 sqrt(d) [h (e.u + e.w) + |(e.w) w - (e.u) u|]. That grows with
the lengths of u and w; with both at angle a from e, on opposite sides, it is
2 sqrt(d) (2 h cos a + sin 2a), largest where sin a = (sqrt(h h + 8) - h) / 4. For h = 1 it is
3 sqrt(3 d). All ads can have the same v, so that for all of them it is as many times as much.
"""

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def gradient_reach(dimension: int, spread: float = 1.0) -> float:
    """Return the largest L1 distance of two users' gradients of one ad.

    Args:
        dimension: Latent factors.
        spread: The largest distance h of a rating from the centre, in [0.5, 1].
    """
    first, second = farthest_gradients(dimension, spread)
    return float(np.abs(first - second).sum())


def farthest_gradients(dimension: int, spread: float = 1.0) -> tuple[Floats, Floats]:
    """Return the two gradients of one ad that lie farthest apart."""
    if dimension == 1:
        # No room for an angle: u = 1 and v = -1, and the other taste is -h / 2.
        return np.array([-2 * (spread + 1)]), np.array([spread**2 / 2])
    sine = (math.sqrt(spread**2 + 8) - spread) / 4
    along = np.full(dimension, 1 / math.sqrt(dimension))
    across = np.zeros(dimension)
    across[:2] = math.sqrt(0.5), -math.sqrt(0.5)
    one = math.sqrt(1 - sine**2) * along + sine * across
    other = math.sqrt(1 - sine**2) * along - sine * across
    # v = -across: both users' predictions are -sine.
    return -2 * (spread + sine) * one, 2 * (spread + sine) * other
