"""What an adversary believes of records before it sees reports: candidates and their shares."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.adversary.audit import check_prior
from noisefloor.checks import Floats
from noisefloor.collection.encoding import Codes
from noisefloor.errors import BadParameter


@dataclass(frozen=True, slots=True, eq=False)
class RecordPrior:
    """Records that an owner may hold.

    Attributes:
        rows: Classes of each candidate, the label last where there is one.
        shares: Of the candidates.
    """

    rows: Codes
    shares: Floats

    def __post_init__(self) -> None:
        if self.rows.ndim != 2 or not len(self.rows):
            raise BadParameter("rows", self.rows.shape, "to have at least one row of classes")
        check_prior(len(self.rows), self.shares)

    def marginal(self, place: int, size: int) -> Floats:
        """Return the shares of the classes of one value."""
        counts = np.bincount(self.rows[:, place], self.shares, minlength=size)
        return counts.astype(np.float64)


def shares_of(codes: NDArray[np.integer] | NDArray[np.bool_], size: int) -> Floats:
    """Return how often each of n classes comes."""
    if not len(codes):
        raise BadParameter("codes", "<0>", "at least one")
    counts = np.bincount(np.asarray(codes, dtype=np.int64), minlength=size)
    return np.asarray(counts / counts.sum())


def empirical_prior(codes: Codes) -> RecordPrior:
    """Return the different rows of a population with their shares: all correlations known."""
    rows, counts = np.unique(np.asarray(codes, dtype=np.uint16), axis=0, return_counts=True)
    return RecordPrior(rows, counts / counts.sum())
