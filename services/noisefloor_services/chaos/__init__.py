"""Chaos: kill and pause what counts, send everything twice, and compare with the truth.

For tests and for whoever wants to see it on their own machine. It uses seeded coins to repeat a
run; no service imports it.
"""

from noisefloor_services.chaos.harness import run_chaos
from noisefloor_services.chaos.plan import ChaosOutcome, ChaosPlan

__all__ = ["ChaosOutcome", "ChaosPlan", "run_chaos"]
