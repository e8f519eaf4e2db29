"""Mechanisms: what a device does to a value before anybody else sees it.

One family per file. Each mechanism is a frozen value that randomises, guarantees, tells its exact
distribution and estimates; see ``base.Mechanism``. Faulty ones, as printed in papers, are in
``faulty``.
"""

from noisefloor.mechanisms.axis_signs import AxisSigns, pair_agreements
from noisefloor.mechanisms.base import (
    Estimate,
    FiniteMechanism,
    Mechanism,
    Reports,
    Tally,
    check_reports_counted,
    exact_epsilon,
    log_of,
    response_estimate,
    unsupported,
)
from noisefloor.mechanisms.cosets import draw_signs, frame, minus_signs, rows_for
from noisefloor.mechanisms.direction_signs import DirectionSigns
from noisefloor.mechanisms.faulty import (
    PrintedBinning,
    PrintedResponse,
    printed_clicks,
    printed_noisy_max,
)
from noisefloor.mechanisms.gaussian import (
    DiscreteGaussian,
    GaussianTable,
    continuous_sigma,
    excess,
)
from noisefloor.mechanisms.laplace import DiscreteLaplace, TwoSidedGeometric, TwoSidedSampler
from noisefloor.mechanisms.local_hashing import LocalHashing
from noisefloor.mechanisms.noisy_max import NoisyMax
from noisefloor.mechanisms.one_bit import OneBitMean, SampledBit
from noisefloor.mechanisms.piecewise import STEPS, Hybrid, Piecewise, position_of, positions_of
from noisefloor.mechanisms.randomised_response import (
    BinaryResponse,
    KaryResponse,
    KarySampler,
    MemoisedResponse,
    count_symbols,
)
from noisefloor.mechanisms.scores import ScoreGrid, SelectionMechanism, aim_below
from noisefloor.mechanisms.selection import (
    ArgmaxResponse,
    ExponentialMechanism,
    PermuteAndFlip,
    TopSetResponse,
)
from noisefloor.mechanisms.square_wave import SquareWave
from noisefloor.mechanisms.subset_selection import SubsetSelection, raised_weight
from noisefloor.mechanisms.unary import UnaryEncoding

__all__ = [
    "STEPS",
    "ArgmaxResponse",
    "AxisSigns",
    "BinaryResponse",
    "DirectionSigns",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Estimate",
    "ExponentialMechanism",
    "FiniteMechanism",
    "GaussianTable",
    "Hybrid",
    "KaryResponse",
    "KarySampler",
    "LocalHashing",
    "Mechanism",
    "MemoisedResponse",
    "NoisyMax",
    "OneBitMean",
    "PermuteAndFlip",
    "Piecewise",
    "PrintedBinning",
    "PrintedResponse",
    "Reports",
    "SampledBit",
    "ScoreGrid",
    "SelectionMechanism",
    "SquareWave",
    "SubsetSelection",
    "Tally",
    "TopSetResponse",
    "TwoSidedGeometric",
    "TwoSidedSampler",
    "UnaryEncoding",
    "aim_below",
    "check_reports_counted",
    "continuous_sigma",
    "count_symbols",
    "draw_signs",
    "exact_epsilon",
    "excess",
    "frame",
    "log_of",
    "minus_signs",
    "pair_agreements",
    "position_of",
    "positions_of",
    "printed_clicks",
    "printed_noisy_max",
    "raised_weight",
    "response_estimate",
    "rows_for",
    "unsupported",
]
