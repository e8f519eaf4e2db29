"""Reproductions: a paper's printed figures, run again, with a verdict for each.

``supml``, ``dnn`` and ``lowrank`` are a room for each paper: what it prints, how that can be read,
what is run and the page. Shared are ``intervals`` of what runs estimate, ``verdicts`` that judge,
``verdict_table`` for the terminal, and ``output``, which writes the run directory.
"""

from noisefloor_sim.papers.dnn import reproduce_dnn
from noisefloor_sim.papers.lowrank import reproduce_lowrank
from noisefloor_sim.papers.supml import QUICK_SEEDS, SEEDS, reproduce_supml

__all__ = ["QUICK_SEEDS", "SEEDS", "reproduce_dnn", "reproduce_lowrank", "reproduce_supml"]
