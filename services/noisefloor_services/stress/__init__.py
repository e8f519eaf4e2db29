"""Stress: an open-loop load against running services, and the rate at which an objective breaks.

For the command ``stress`` of the simulator. No service imports this package.
"""

from noisefloor_services.stress.command import run_stress_program

__all__ = ["run_stress_program"]
