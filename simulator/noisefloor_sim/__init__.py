"""The world around the platform: scenarios, runs, reports and the command line.

For notebooks, ``import noisefloor_sim as nf``: ``nf.run`` runs a scenario, ``nf.load`` reads a run
folder, and both return a ``FinishedRun``.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from noisefloor_sim.runs import FinishedRun, load, run

__all__ = ["FinishedRun", "load", "run"]


def __getattr__(name: str) -> object:
    """Import what a run needs when it is first used: everything else starts without it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from noisefloor_sim import runs

    return getattr(runs, name)
