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
from noisefloor_sim.scenario.findings import Figure, FigureComparison, Finding
from noisefloor_sim.scenario.formats import (
    FORMATS,
    RUN_FORMAT,
    SCENARIO_FORMAT,
    format_fault,
)
from noisefloor_sim.scenario.gates import (
    ClaimGate,
    Gate,
    MetricGate,
    TrendGate,
    applies,
    parse_gate,
)
from noisefloor_sim.scenario.hashing import resolved, scenario_hash, scenario_text
from noisefloor_sim.scenario.json_schema import schema_text
from noisefloor_sim.scenario.load import RUN_FIGURES, STEP_FIGURES, Load
from noisefloor_sim.scenario.loading import LoadedScenario, load, load_points, loads
from noisefloor_sim.scenario.model import Scenario, Sweep
from noisefloor_sim.scenario.needs import Needs, fetch_line, install_line, is_cached, needs_of
from noisefloor_sim.scenario.result_names import (
    HEAVIEST_USER,
    SPENDING_METRICS,
    WORLD,
    WORLD_METRICS,
    is_declared,
)
from noisefloor_sim.scenario.sections import Behaviour, Devices, Network, Population, Tastes
from noisefloor_sim.scenario.shipped_files import (
    find_scenario,
    shipped_scenario,
    shipped_scenarios,
    takes_s,
)
from noisefloor_sim.scenario.sweep import SweepPoint, expand

__all__ = [
    "FORMATS",
    "FROZEN",
    "HEAVIEST_USER",
    "RUN_FIGURES",
    "RUN_FORMAT",
    "SCENARIO_FORMAT",
    "SPENDING_METRICS",
    "STEP_FIGURES",
    "WORLD",
    "WORLD_METRICS",
    "Attack",
    "Attacks",
    "Behaviour",
    "Blocks",
    "ClaimGate",
    "Devices",
    "Figure",
    "FigureComparison",
    "Finding",
    "Gate",
    "Load",
    "LoadedScenario",
    "MetricGate",
    "Needs",
    "Network",
    "PipelineBlock",
    "PlainText",
    "Population",
    "Probability",
    "Scenario",
    "Sweep",
    "SweepPoint",
    "Tastes",
    "TrendGate",
    "applies",
    "check_source",
    "count",
    "expand",
    "fetch_line",
    "find_scenario",
    "format_fault",
    "game_of",
    "install_line",
    "is_cached",
    "is_declared",
    "load",
    "load_points",
    "loads",
    "needs_of",
    "parse_gate",
    "resolved",
    "rule_error",
    "scenario_hash",
    "scenario_text",
    "schema_text",
    "shipped_scenario",
    "shipped_scenarios",
    "show_name",
    "takes_s",
]
