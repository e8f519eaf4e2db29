"""The SUP.ML paper: what it prints, what is run, and the page.

``figures`` lists the claims and how they can be read, ``runs`` runs their settings, ``page`` shows
what came out, ``reproduction`` is the command.
"""

from noisefloor_sim.papers.supml.reproduction import QUICK_SEEDS, SEEDS, reproduce_supml

__all__ = ["QUICK_SEEDS", "SEEDS", "reproduce_supml"]
