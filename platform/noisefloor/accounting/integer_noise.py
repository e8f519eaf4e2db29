"""Gaussian noise on integers as continuous Gaussian noise that is rounded at random.

Add continuous noise of variance ``rho**2`` to integers and round each result y to an integer k
with a chance in proportion to ``exp(-(k - y)**2 / (2 tau**2))``. By Poisson's summation formula
the sum of these over k is the same for all y up to factors of ``1 - eta`` and ``1 + eta``, with
``eta = 2 sum exp(-2 pi**2 tau**2 j**2)`` over j from 1 on. So what comes out is integer noise of
variance ``rho**2 + tau**2``, with chances off by such factors. Rounding costs nothing: what is
proved of continuous noise ``rho``, for any number of cells, scales and rounds together, holds for
the integers. No sum over integers in many dimensions is needed, and no Renyi divergence.

Reference: Micciancio and Peikert 2013, theorem 3.1 (sums of discrete Gaussians).
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from noisefloor.accounting.accountant import GaussianNoise, epsilon_at, noise_multiplier_for
from noisefloor.checks import check_finite
from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee, Neighbours

ROUNDING_VARIANCE = 2.5
"""``tau**2``: ``eta`` is 7.4e-22."""

FACTOR_COST = 1e-14
"""More than what the factors of one table add to epsilon, and to delta as a share of it.

Only cells that a record moves count, 2**20 at most: all others are drawn alike, with it or not.
"""

_HAIR = 1 - 1e-12
"""A hair less noise than there is, for the rounding of floats."""


def integer_sigma(continuous: float) -> float:
    """Return the integer noise that continuous noise becomes when it is rounded at random."""
    return math.hypot(continuous, math.sqrt(ROUNDING_VARIANCE))


def continuous_part(sigma: float, step: float) -> GaussianNoise:
    """Return the continuous noise that integer noise of ``sigma`` is a rounding of.

    Cells with more noise than ``sigma`` in which a record moves as much more are covered: the
    share that rounding takes of their variance is smaller.

    Args:
        sigma: Of the cells with the least noise.
        step: By how much a record moves the cells, in L2, in units of that noise.
    """
    rest = check_finite(sigma, "sigma") ** 2 - ROUNDING_VARIANCE
    if rest <= 0:
        raise BadParameter("sigma", sigma, f"above {math.sqrt(ROUNDING_VARIANCE):.2f}")
    return GaussianNoise(math.sqrt(rest) / step * _HAIR)


def integer_guarantee(
    parts: Sequence[GaussianNoise],
    delta: float,
    neighbours: Neighbours = Neighbours.RECORD_ADD_REMOVE,
) -> Guarantee:
    """Return what is proved of integer noise, of tables drawn one after the other.

    Args:
        parts: The continuous noise that each table is a rounding of, each drawn once.
        delta: Of all tables; what their cut tails take is left to the caller.
        neighbours: RECORD_ADD_REMOVE or RECORD_SUBSTITUTE.
    """
    factors = FACTOR_COST * len(parts)
    # Gaussian noise of several tables costs what one of the added squares of 1 / noise does.
    whole = GaussianNoise(1 / math.hypot(*(1 / part.noise_multiplier for part in parts)) * _HAIR)
    found = epsilon_at([whole], delta * (1 - factors), neighbours=neighbours)
    return replace(found, epsilon=found.epsilon + factors, delta=delta)


def continuous_multiplier_for(
    epsilon: float, delta: float, tables: int, neighbours: Neighbours
) -> float:
    """Return the continuous noise that all tables together may be a rounding of."""
    factors = FACTOR_COST * tables
    found = noise_multiplier_for(
        epsilon - 2 * factors, delta * (1 - factors), neighbours=neighbours
    )
    return found * (2 - _HAIR**3)
