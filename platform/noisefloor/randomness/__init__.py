"""The one door for random bits.

A ``Source`` hands out vectorised integers, exact Bernoulli draws, unbiased choices, draws of a
finite distribution, orders and normal numbers. ``SeededSource`` names its streams by path, for
simulation: the same path gives the same draws, whatever else runs. ``SecureSource`` reads the
operating system's entropy, unbuffered, for everything that protects a real person.

How draws stay in place: draws are made for users in order, and whatever depends on chance
(ties, rejections) comes from a stream of its own. So adding users at the end moves nobody.
"""

from noisefloor.randomness.secure import SecureSource
from noisefloor.randomness.seeded import Generator, SeededSource, new_run
from noisefloor.randomness.source import Bits, Source, Words

__all__ = ["Bits", "Generator", "SecureSource", "SeededSource", "Source", "Words", "new_run"]
