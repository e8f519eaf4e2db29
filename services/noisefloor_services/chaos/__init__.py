"""Chaos: kill and pause services and workers under load, and compare every sum with the truth.

For tests and for the command ``chaos``. Runs are seeded so that they can be repeated; no service
imports this package.
"""

from noisefloor_services.chaos.command import run_chaos_program
from noisefloor_services.chaos.plan import ChaosPlan
from noisefloor_services.chaos.stream_faults import run_chaos

__all__ = ["ChaosPlan", "run_chaos", "run_chaos_program"]
