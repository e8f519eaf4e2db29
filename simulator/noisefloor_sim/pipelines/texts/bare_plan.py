"""Chains of counts with next to no noise: what attacks reach where nothing protects a text."""

from dataclasses import replace
from types import MappingProxyType

from noisefloor.publication.methods import TextNgramsPlan

_MULTIPLIERS = {"lengths": 0.5, "pieces": 0.02, "pairs": 0.02}
"""Of noise; a text moves a cell by fifty times as much."""


def bare_plan(plan: TextNgramsPlan) -> TextNgramsPlan:
    """Return the plan with next to no noise, for attacks that have to succeed; never published."""
    counting = replace(plan.counting, multipliers=MappingProxyType(_MULTIPLIERS))
    return replace(plan, counting=counting)
