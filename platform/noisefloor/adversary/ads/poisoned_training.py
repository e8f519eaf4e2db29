"""Poisoned training: fake devices that pull one ad's gradient in the V2 protocol.

A message names a coordinate and a bit, and stands for dimension * size at that coordinate, size
being coth(epsilon / 2). Who chooses the coordinate itself gains dimension times as much as who
draws it honestly; who also runs the bit honestly gains another factor size less.
All gains are in units of the clipped value, on the averaged gradient.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from noisefloor.adversary.ads.poisoning import Poison
from noisefloor.checks import check_count, check_integers
from noisefloor.errors import BadParameter
from noisefloor.laws import ONE
from noisefloor.mechanisms.one_bit import SampledBit
from noisefloor.randomness import Source

Messages = NDArray[np.uint32]


def crowd(
    mechanism: SampledBit, coordinates: Sequence[int], fakes: int, *, is_upwards: bool = True
) -> Messages:
    """Write messages about the target's coordinates alone, in turn, all with the same bit.

    Sees:      nothing.
    Knows:     the mechanism and which coordinates are the target's.
    Guesses:   nothing; wants the averaged gradient at these coordinates as large as can be.
    Reference: our own; gain in ``crowd_bias``, detector: ``detectors.uneven_coordinates``.
    """
    places = _check_coordinates(mechanism, coordinates)
    chosen = places[np.arange(check_count(fakes, "fakes", least=0)) % len(places)]
    return (2 * chosen + int(is_upwards)).astype(np.uint32)


def spread(
    mechanism: SampledBit,
    coordinates: Sequence[int],
    fakes: int,
    source: Source,
    *,
    is_upwards: bool = True,
) -> Messages:
    """Draw coordinates as the honest do, lie about the target's and toss a coin on the others.

    Sees:      nothing.
    Knows:     the mechanism and which coordinates are the target's.
    Guesses:   nothing; evades any detector that looks at how often each coordinate comes.
    Reference: our own; gain in ``spread_bias``, detector: ``detectors.biased_bits``.
    """
    places = _check_coordinates(mechanism, coordinates)
    chosen = mechanism.choose(fakes, source)
    bits = source.stage("coin").bernoulli(ONE // 2, fakes)
    bits[np.isin(chosen, places)] = is_upwards
    return np.asarray(2 * chosen + bits, dtype=np.uint32)


def crowd_bias(
    mechanism: SampledBit, *, fakes: float, honest: float = 0.0, coordinates: int = 1
) -> float:
    """Return the bias at each of the target's coordinates when only these are named.

    Formula: ``beta (dimension / coordinates * coth(epsilon / 2) - g)``.
    """
    gain = mechanism.dimension / coordinates * mechanism.one_bit.size
    return fakes * (gain - honest)


def spread_bias(mechanism: SampledBit, *, fakes: float, honest: float = 0.0) -> float:
    """Return the bias at each of the target's coordinates when coordinates are drawn honestly.

    Formula: ``beta (coth(epsilon / 2) - g)``.
    """
    return fakes * (mechanism.one_bit.size - honest)


def input_gradient_bias(*, fakes: float, honest: float = 0.0) -> float:
    """Return the bias when fakes only lie about their values.

    Formula: ``beta (1 - g)``, whatever epsilon and the number of coordinates are.
    """
    return fakes * (1 - honest)


def push_gradient(
    mechanism: SampledBit,
    coordinates: Sequence[int],
    fakes: int,
    *,
    honest: int,
    gradient: float = 0.0,
) -> Poison:
    """Write the messages that raise the target's averaged gradient most (``crowd``).

    Args:
        mechanism: Of one round.
        coordinates: The target's.
        fakes: How many fake devices.
        honest: How many honest ones.
        gradient: The honest mean at these coordinates.
    """
    part = fakes / (fakes + honest)
    bias = crowd_bias(mechanism, fakes=part, honest=gradient, coordinates=len(coordinates))
    reports = crowd(mechanism, coordinates, fakes)
    return Poison(reports, bias, input_gradient_bias(fakes=part, honest=gradient))


def _check_coordinates(mechanism: SampledBit, coordinates: Sequence[int]) -> NDArray[np.int64]:
    if not len(coordinates):
        raise BadParameter("coordinates", coordinates, "at least one")
    return check_integers(coordinates, 0, mechanism.dimension - 1).astype(np.int64)
