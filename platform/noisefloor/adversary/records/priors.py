"""What an adversary believes of records before it sees reports: candidates and their shares."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.adversary.audit import check_prior
from noisefloor.checks import Floats, check_bits, check_count
from noisefloor.collection.encoding import Codes, check_codes, listed_rows
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
    """Return how often each of so many classes comes."""
    if not len(codes):
        raise BadParameter("codes", "<0>", "at least one")
    counts = np.bincount(np.asarray(codes, dtype=np.int64), minlength=size)
    return np.asarray(counts / counts.sum())


def empirical_prior(codes: Codes) -> RecordPrior:
    """Return the different rows of a population with their shares: all correlations known."""
    rows, counts = np.unique(np.asarray(codes, dtype=np.uint16), axis=0, return_counts=True)
    return RecordPrior(rows, counts / counts.sum())


def independent_prior(codes: Codes, sizes: Sequence[int]) -> RecordPrior:
    """Return every row by the product of the population's marginals: no correlation known."""
    columns = check_codes(codes, sizes)
    rows = listed_rows([range(size) for size in sizes])
    shares = np.ones(len(rows))
    for place, size in enumerate(sizes):
        shares *= shares_of(columns[:, place], size)[rows[:, place]]
    return RecordPrior(rows, shares / shares.sum())


def naive_bayes_prior(
    codes: Codes, labels: NDArray[np.bool_], sizes: Sequence[int], *, labelled: bool = True
) -> RecordPrior:
    """Return every row as if its values were independent given the label.

    Args:
        codes: Of the attributes of a population, without the label.
        labels: As many.
        sizes: Classes of each attribute.
        labelled: Whether candidates end with the label; if not, it is averaged over.
    """
    columns, positive = check_codes(codes, sizes), check_bits(labels)
    check_count(len(positive), "labels", least=len(columns), most=len(columns))
    rows = listed_rows([range(size) for size in sizes])
    parts = [_given(columns[positive == bool(label)], rows, sizes) for label in range(2)]
    weights = shares_of(positive, 2)
    if not labelled:
        return RecordPrior(rows, weights[0] * parts[0] + weights[1] * parts[1])
    both = [np.column_stack([rows, np.full(len(rows), label)]) for label in range(2)]
    shares = np.concatenate([weights[label] * parts[label] for label in range(2)])
    return RecordPrior(np.concatenate(both).astype(np.uint16), shares)


def _given(codes: NDArray[np.integer], rows: Codes, sizes: Sequence[int]) -> Floats:
    """Return the probability of each row for the owners of one label; 0 if there are none."""
    if not len(codes):
        return np.zeros(len(rows))
    shares = np.ones(len(rows))
    for place, size in enumerate(sizes):
        shares *= shares_of(codes[:, place], size)[rows[:, place]]
    return shares
