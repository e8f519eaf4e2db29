"""Membership in noisy tables: was the target's record counted, by the exact likelihood ratio?

A record adds one to one cell of each table (of the label-conditional histogram of each column,
say). Who knows all other records knows what these cells hold without it. No other cell matters.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from noisefloor.adversary.releases.informed import InformedGame, pair_closed_form
from noisefloor.adversary.releases.noise_laws import Density, NoiseLaw
from noisefloor.errors import BadParameter
from noisefloor.mechanisms.base import Floats
from noisefloor.privacy import Guarantee, Neighbours

Counts = NDArray[np.int64]


def at_cells(tables: Sequence[Counts], cells: NDArray[np.integer]) -> Counts:
    """Return what each target's cells hold, a row per target and a column per table.

    Args:
        tables: Counts, with any number of axes each.
        cells: The flat place of each target in each table.
    """
    if cells.ndim != 2 or cells.shape[1] != len(tables):
        raise BadParameter("cells", cells.shape, f"a column for each of {len(tables)} tables")
    held = [table.reshape(-1)[places] for table, places in zip(tables, cells.T, strict=True)]
    return np.stack(held, axis=1)


def table_log_ratios(released: Counts, others: Counts, noise: Density) -> Floats:
    """Return ln P(release | the target was counted) / P(release | it was not), a row per target.

    Sees:      the noisy tables.
    Knows:     all other records, so what the target's cells hold without it.
    Guesses:   that the target was counted where the ratio is above 0.
    Reference: Neyman and Pearson 1933; no test is better.

    Args:
        released: What the target's cells hold in the release, a column per table.
        others: What they hold of the other records.
        noise: The law of every cell, or of all columns side by side.
    """
    apart = released - others
    with_it, without = noise.log_density(apart - 1), noise.log_density(apart)
    return np.asarray(with_it.sum(axis=1) - without.sum(axis=1))


def membership_game(others: Counts, noise: NoiseLaw, guarantee: Guarantee) -> InformedGame:
    """Return the game of a fair coin: the target is counted in all tables, or in none.

    Args:
        others: What the target's cells hold of the other records, one number per table.
        noise: As ``table_log_ratios`` takes it.
        guarantee: Of all tables together, for a record added or removed.
    """
    if guarantee.neighbours is not Neighbours.RECORD_ADD_REMOVE:
        raise BadParameter("neighbours", guarantee.neighbours.value, "record-add-remove")
    centres = np.stack([others, others + 1])
    closed = pair_closed_form(centres, noise, np.full(2, 0.5))
    return InformedGame(centres, noise, guarantee, closed_form=closed)
