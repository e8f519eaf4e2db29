"""Inspection: what a run really sent, read where it arrives and compared with the truth.

``flow`` declares what a flow of reports carries and costs, ``tap`` reads and matches frames,
``witnesses`` are users whose secret is a random bit, ``transcript`` is what shows of connections.
"""

from noisefloor_sim.inspection.flow import (
    DeviceFrame,
    Flow,
    LedgerPrice,
    SeenFrame,
    device_frames,
)
from noisefloor_sim.inspection.plain_flow import PlainFlow
from noisefloor_sim.inspection.symbol_flow import SymbolFlow, SymbolTruth
from noisefloor_sim.inspection.tap import FrameTap
from noisefloor_sim.inspection.transcript import MOST_CONNECTIONS, Transcript
from noisefloor_sim.inspection.witnesses import (
    WitnessPairs,
    WitnessScores,
    draw_pairs,
    most_pairs,
    no_pairs,
    pairs_alike,
    summed_bounds,
    with_bits,
)

__all__ = [
    "MOST_CONNECTIONS",
    "DeviceFrame",
    "Flow",
    "FrameTap",
    "LedgerPrice",
    "PlainFlow",
    "SeenFrame",
    "SymbolFlow",
    "SymbolTruth",
    "Transcript",
    "WitnessPairs",
    "WitnessScores",
    "device_frames",
    "draw_pairs",
    "most_pairs",
    "no_pairs",
    "pairs_alike",
    "summed_bounds",
    "with_bits",
]
