"""Chaos: kill and pause what counts, send everything twice, and compare with the truth.

For tests and for whoever wants to see it on their own machine. It uses seeded coins to repeat a
run; no service imports it.
"""

from noisefloor_services.chaos.command import run_chaos_program
from noisefloor_services.chaos.plan import ChaosOutcome, ChaosPlan
from noisefloor_services.chaos.stream_faults import run_chaos

__all__ = ["ChaosOutcome", "ChaosPlan", "run_chaos", "run_chaos_program"]
