"""The command line: ``noisefloor``. It parses and calls; slow imports stand in the commands."""

from noisefloor_sim.cli.commands import app, main

__all__ = ["app", "main"]
