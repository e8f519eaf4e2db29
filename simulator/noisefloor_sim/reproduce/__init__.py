"""Reproductions: a paper's printed figures, run again, with a verdict for each.

``supml`` lists what the paper prints and how it can be read; ``settings`` turns a reading into a
plan that can be run; ``running`` runs them over seeds; ``verdicts`` judges; ``writing`` writes the
run directory.
"""
