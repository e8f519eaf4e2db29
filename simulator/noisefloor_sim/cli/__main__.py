"""Lets ``python -m noisefloor_sim.cli`` work."""

from noisefloor_sim.cli import main

main()
