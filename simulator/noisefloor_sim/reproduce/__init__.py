"""Reproductions: a paper's printed figures, run again, with a verdict for each.

``supml`` and ``dnn`` list what a paper prints and how it can be read; ``settings`` and
``dnn_methods`` say what can be run; ``pool`` runs it; ``verdicts`` judges; ``tables`` and the
pages show it; ``writing`` writes the run directory.
"""
