"""Reproductions: a paper's printed figures, run again, with a verdict for each.

``supml``, ``dnn``, ``lowrank`` and ``text`` are a room for each paper: what it prints, how that
can be read, what is run and the page. Shared are ``intervals`` of what runs estimate, ``verdicts``
that judge, ``verdict_table`` for the terminal, ``cell_store``, which keeps what is finished, and
``output``, which writes the run directory.
"""

from noisefloor_sim.papers.dnn import reproduce_dnn
from noisefloor_sim.papers.lowrank import reproduce_lowrank
from noisefloor_sim.papers.supml import QUICK_SEEDS, SEEDS, reproduce_supml
from noisefloor_sim.papers.text import reproduce_text

__all__ = [
    "QUICK_SEEDS",
    "SEEDS",
    "reproduce_dnn",
    "reproduce_lowrank",
    "reproduce_supml",
    "reproduce_text",
]
