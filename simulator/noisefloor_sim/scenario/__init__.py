"""Scenarios: one YAML file, one question, read into frozen values.

``load`` reads a file, ``expand`` gives the points of its sweep, ``scenario_text`` writes it back
with every default, ``scenario_hash`` names it. Pipelines bring their own blocks as an argument.
"""

from noisefloor_sim.scenario.blocks import (
    FROZEN,
    Attack,
    Attacks,
    Blocks,
    PipelineBlock,
    PlainText,
    Probability,
    check_source,
    game_of,
    rule_error,
)
from noisefloor_sim.scenario.error_text import count, show_name
from noisefloor_sim.scenario.gates import ClaimGate, Gate, MetricGate, applies, parse_gate
from noisefloor_sim.scenario.hashing import resolved, scenario_hash, scenario_text
from noisefloor_sim.scenario.json_schema import schema_text
from noisefloor_sim.scenario.loading import load, loads
from noisefloor_sim.scenario.model import Scenario, Sweep
from noisefloor_sim.scenario.sections import Behaviour, Devices, Network, Population, Tastes
from noisefloor_sim.scenario.sweep import SweepPoint, expand

__all__ = [
    "FROZEN",
    "Attack",
    "Attacks",
    "Behaviour",
    "Blocks",
    "ClaimGate",
    "Devices",
    "Gate",
    "MetricGate",
    "Network",
    "PipelineBlock",
    "PlainText",
    "Population",
    "Probability",
    "Scenario",
    "Sweep",
    "SweepPoint",
    "Tastes",
    "applies",
    "check_source",
    "count",
    "expand",
    "game_of",
    "load",
    "loads",
    "parse_gate",
    "resolved",
    "rule_error",
    "scenario_hash",
    "scenario_text",
    "schema_text",
    "show_name",
]
