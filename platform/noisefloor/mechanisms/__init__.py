"""Mechanisms: what a device does to a value before anybody else sees it.

One family per file. Each mechanism is a frozen value that randomises, guarantees, tells its exact
law and estimates; see ``base.Mechanism``. Faulty ones, as printed in papers, are in ``faulty``.
"""

from noisefloor.mechanisms.axis import LeaningAxis
from noisefloor.mechanisms.base import Estimate, Finite, Mechanism, exact_epsilon
from noisefloor.mechanisms.direction import LeaningSigns
from noisefloor.mechanisms.gaussian import DiscreteGaussian
from noisefloor.mechanisms.laplace import DiscreteLaplace
from noisefloor.mechanisms.local_hashing import LocalHashing
from noisefloor.mechanisms.memoised import MemoisedResponse
from noisefloor.mechanisms.noisy_max import NoisyMax
from noisefloor.mechanisms.one_bit import OneBitMean, SampledBit
from noisefloor.mechanisms.piecewise import Hybrid, Piecewise
from noisefloor.mechanisms.randomised_response import BinaryResponse, KaryResponse
from noisefloor.mechanisms.selection import ArgmaxResponse, ExponentialMechanism, PermuteAndFlip
from noisefloor.mechanisms.square_wave import SquareWave
from noisefloor.mechanisms.subset_selection import SubsetSelection
from noisefloor.mechanisms.top_set import TopSetResponse
from noisefloor.mechanisms.unary import UnaryEncoding

__all__ = [
    "ArgmaxResponse",
    "BinaryResponse",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Estimate",
    "ExponentialMechanism",
    "Finite",
    "Hybrid",
    "KaryResponse",
    "LeaningAxis",
    "LeaningSigns",
    "LocalHashing",
    "Mechanism",
    "MemoisedResponse",
    "NoisyMax",
    "OneBitMean",
    "PermuteAndFlip",
    "Piecewise",
    "SampledBit",
    "SquareWave",
    "SubsetSelection",
    "TopSetResponse",
    "UnaryEncoding",
    "exact_epsilon",
]
