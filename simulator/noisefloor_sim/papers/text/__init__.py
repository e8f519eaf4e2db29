"""The paper on generated texts with generalised names: what it prints, what is run, and the page.

``printed`` has the paper's numbers, ``plans`` the cells and their settings, ``corpora`` the texts
and their mentions, ``systems`` what writes, ``measuring`` what is measured of it. ``claims`` are
decided by what was measured, ``computed`` by accountants and printed numbers; ``page`` shows all,
``reproduction`` is the command.
"""

from noisefloor_sim.papers.text.reproduction import reproduce_text

__all__ = ["reproduce_text"]
