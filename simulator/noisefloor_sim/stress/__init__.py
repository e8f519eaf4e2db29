"""Stress: the load of a scenario against running services, and its run directory and report.

Nothing of the services is imported here: the program that sends is started by its name.
"""

from noisefloor_sim.stress.execution import LoadOptions, LoadRun, stress

__all__ = ["LoadOptions", "LoadRun", "stress"]
