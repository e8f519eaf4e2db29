"""Scenarios: one YAML file, one question, read into frozen values.

``load`` reads a file, ``expand`` gives the points of its sweep, ``scenario_text`` writes it back
with every default, ``scenario_hash`` names it. Pipelines bring their own blocks as an argument.
"""

from noisefloor_sim.scenario.blocks import AttackBlock, Attacks, Blocks, PipelineBlock
from noisefloor_sim.scenario.gates import ClaimGate, Gate, MetricGate, applies, parse_gate
from noisefloor_sim.scenario.hashing import resolved, scenario_hash, scenario_text
from noisefloor_sim.scenario.loading import load, loads
from noisefloor_sim.scenario.model import Scenario, Sweep
from noisefloor_sim.scenario.schema import schema_text
from noisefloor_sim.scenario.section import FROZEN, PlainText, Probability, broken
from noisefloor_sim.scenario.sweep import Point, expand

__all__ = [
    "FROZEN",
    "AttackBlock",
    "Attacks",
    "Blocks",
    "ClaimGate",
    "Gate",
    "MetricGate",
    "PipelineBlock",
    "PlainText",
    "Point",
    "Probability",
    "Scenario",
    "Sweep",
    "applies",
    "broken",
    "expand",
    "load",
    "loads",
    "parse_gate",
    "resolved",
    "scenario_hash",
    "scenario_text",
    "schema_text",
]
