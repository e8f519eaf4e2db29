"""Reproductions: a paper's printed figures, run again, with a verdict for each.

``supml`` and ``dnn`` list what a paper prints and how it can be read; ``settings`` and
``dnn_methods`` say what can be run; ``pool`` runs it; ``verdicts`` judges; ``tables`` and the
pages show it; ``writing`` writes the run directory.
"""

from noisefloor_sim.papers.dnn_reproduction import reproduce_dnn
from noisefloor_sim.papers.supml_reproduction import QUICK_SEEDS, SEEDS, reproduce_supml

__all__ = ["QUICK_SEEDS", "SEEDS", "reproduce_dnn", "reproduce_supml"]
