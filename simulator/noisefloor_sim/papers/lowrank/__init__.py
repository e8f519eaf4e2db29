"""The paper on low rank and sparsity: what it prints, what is run, and the page.

``printed`` has the paper's numbers, ``plans`` the cells of its tables and their settings,
``texts`` the data, ``training`` and ``auditing`` run a cell. ``claims`` are decided by trainings,
``computed`` without any; ``page`` shows all, ``reproduction`` is the command.
"""

from noisefloor_sim.papers.lowrank.reproduction import reproduce_lowrank

__all__ = ["reproduce_lowrank"]
