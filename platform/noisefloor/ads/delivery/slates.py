"""Slates: a device asks for several ads at once and shows the best by its own scores.

The server learns the slate and not which of it was shown. A slate around the favourite has it
with a raised probability; a slate of random ads costs nothing and is the bar to pass.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from noisefloor import mechanisms
from noisefloor.checks import Array, Floats, blocks, check_count
from noisefloor.distributions import ONE
from noisefloor.errors import BadParameter, OutOfDomain
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import Source

Slates = NDArray[np.unsignedinteger]
"""One row of ads per user, in the order of their index."""

_LISTABLE = 1 << 20


@dataclass(frozen=True, slots=True)
class FavouriteSlate:
    """Ask for ``slate`` ads, of which the favourite is one with a raised probability.

    Guarantee:  pure DP, that of subset selection on the favourite. Which ad of the slate is shown
                is the device's secret and costs nothing. Per request: requests add up.
    Neighbours: item = user: any row of scores to any other (local model).
    Domain:     rows of ``size`` reals in [low, high]; others are refused. Ties go to the first.
    Reference:  Ye and Barg 2018, arXiv 1702.00610, applied to the argmax.
    """

    size: int
    epsilon: float
    slate: int
    low: float = 0.0
    high: float = 1.0
    selection: mechanisms.SubsetSelection = field(init=False, repr=False)

    def __post_init__(self) -> None:
        slate = check_count(self.slate, "slate", least=1, most=self.scores.size - 1)
        object.__setattr__(
            self, "selection", mechanisms.SubsetSelection(self.size, self.epsilon, slate)
        )

    @property
    def scores(self) -> mechanisms.ScoreGrid:
        """The declared range of the scores."""
        return mechanisms.ScoreGrid(self.size, self.low, self.high)

    def randomise(self, values: object, source: Source) -> Slates:
        """Return one slate per user."""
        favourites = favourites_of(self.scores.check(values))
        return places_of(self.selection.randomise(favourites, source), self.slate)

    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return the guarantee of the selection."""
        return self.selection.guarantee(neighbours)

    def chances(self, value: object) -> Floats:
        """Return the chance of each ad to be in the slate."""
        hold = self.selection.hold / ONE
        result = np.full(self.size, (self.slate - hold) / (self.size - 1))
        result[self._favourite(value)] = hold
        return result

    def rank_chances(self) -> Floats:
        """Return the chance to be shown of the best ad, of the second best, and so on."""
        hold = self.selection.hold / ONE
        # Without the favourite the slate is any set of the others.
        return np.array([hold, *((1 - hold) * _best_of_any(self.size - 1, self.slate))])

    def log_likelihood(self, reports: mechanisms.Reports, value: object) -> Floats:
        """Return ln P(slate | row of scores)."""
        has_favourite = (np.asarray(reports) == self._favourite(value)).any(axis=1)
        # Whether the favourite is in it is all that the selection's distribution depends on.
        return self.selection.log_likelihood(has_favourite[:, None], 0)

    def _favourite(self, value: object) -> int:
        return int(self.scores.check(np.asarray(value, dtype=np.float64)[None]).argmax())

    def tally(self, reports: mechanisms.Reports) -> mechanisms.Tally:
        """Return in how many slates each ad is."""
        return mechanisms.count_symbols(np.asarray(reports).reshape(-1), self.size)

    def estimate(self, tally: mechanisms.Tally, n: int) -> mechanisms.Estimate:
        """Return the share of users whose favourite each ad is."""
        return self.selection.estimate(tally, n)

    def outputs(self) -> mechanisms.Reports:
        """Return every slate; refused when there are too many to list."""
        return all_slates(self.size, self.slate)

    def worst_pairs(
        self, neighbours: Neighbours = Neighbours.USER
    ) -> Sequence[tuple[object, object]]:
        """Return rows with different favourites; by symmetry one pair is enough."""
        first, last = np.full(self.size, self.low), np.full(self.size, self.low)
        first[0], last[-1] = self.high, self.high
        return [(first, last)]


@dataclass(frozen=True, slots=True)
class RandomSlate:
    """Ask for ``slate`` ads that are drawn without looking at anything.

    Guarantee:  pure DP, epsilon = 0: the request does not depend on the user.
    Neighbours: all of them (local model).
    Domain:     rows of ``size`` reals in [low, high]; others are refused.
    Reference:  none needed.
    """

    size: int
    slate: int
    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        check_count(self.slate, "slate", least=1, most=self.scores.size - 1)

    @property
    def scores(self) -> mechanisms.ScoreGrid:
        """The declared range of the scores."""
        return mechanisms.ScoreGrid(self.size, self.low, self.high)

    def randomise(self, values: object, source: Source) -> Slates:
        """Return one slate per user, each set with exactly the same probability."""
        rows, picks = self.scores.check(values), source.stage("favourite")
        drawn = np.empty(len(rows), dtype=np.min_scalar_type(self.size - 1))
        for some in blocks(len(rows)):
            drawn[some] = picks.below(self.size, len(drawn[some]))
        # Around a random ad every set is as likely as any other, whatever the epsilon.
        return places_of(
            mechanisms.SubsetSelection(self.size, 1.0, self.slate).randomise(drawn, source),
            self.slate,
        )

    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return zero."""
        return Guarantee(0.0, neighbours)

    def chances(self, value: object) -> Floats:
        """Return the chance of each ad to be in the slate."""
        return np.full(self.size, self.slate / self.size)

    def rank_chances(self) -> Floats:
        """Return the chance to be shown of the best ad, of the second best, and so on."""
        return _best_of_any(self.size, self.slate)

    def log_likelihood(self, reports: mechanisms.Reports, value: object) -> Floats:
        """Return ln P(slate), the same for all."""
        return np.full(len(reports), -math.log(math.comb(self.size, self.slate)))

    def tally(self, reports: mechanisms.Reports) -> mechanisms.Tally:
        """Return in how many slates each ad is."""
        return mechanisms.count_symbols(np.asarray(reports).reshape(-1), self.size)

    def estimate(self, tally: mechanisms.Tally, n: int) -> mechanisms.Estimate:
        """Return the share of slates that each ad is in: it says nothing of anybody."""
        share = np.asarray(tally) / mechanisms.check_reports_counted(n)
        return mechanisms.Estimate(share, np.sqrt(share * (1 - share) / n))

    def outputs(self) -> mechanisms.Reports:
        """Return every slate; refused when there are too many to list."""
        return all_slates(self.size, self.slate)

    def worst_pairs(
        self, neighbours: Neighbours = Neighbours.USER
    ) -> Sequence[tuple[object, object]]:
        """Return two rows that are as far apart as any."""
        return self.scores.corner_pairs()[:1]


def favourites_of(rows: Array) -> NDArray[np.intp]:
    """Return the place of the largest score of each row; ties go to the first."""
    places = np.empty(len(rows), dtype=np.intp)
    for some in blocks(len(rows), rows.shape[1]):
        places[some] = rows[some].argmax(axis=1)
    return places


def places_of(flags: NDArray[np.bool_], each: int) -> Slates:
    """Return where the flags of each row are set, ``each`` of them in every row."""
    size = flags.shape[1]
    places = np.empty((len(flags), each), dtype=np.min_scalar_type(size - 1))
    for some in blocks(len(flags), size):
        where = np.flatnonzero(flags[some]).reshape(-1, each)
        places[some] = where - np.arange(0, len(where) * size, size)[:, None]
    return places


def all_slates(size: int, slate: int) -> Slates:
    """Return every slate, in order; refused when there are too many to list."""
    if math.comb(size, slate) > _LISTABLE:
        raise BadParameter("size", size, "small enough for the slates to be listed")
    listed = list(combinations(range(size), slate))
    return np.array(listed, dtype=np.min_scalar_type(size - 1))


def best_of(slates: mechanisms.Reports, scores: Array) -> Slates:
    """Return the ad of each slate that its user scores highest; ties go to the first."""
    check_slate_rows(slates, scores)
    best = np.empty(len(slates), dtype=slates.dtype)
    for rows in blocks(len(slates), scores.shape[1]):
        some = slates[rows]
        own = np.take_along_axis(scores[rows], some.astype(np.intp), axis=1)
        best[rows] = some[np.arange(len(some)), own.argmax(axis=1)]
    return best


def ranked_slates(slates: mechanisms.Reports, scores: Array, slots: int) -> Slates:
    """Return the ``slots`` best ads of each slate, the best first."""
    check_slate_rows(slates, scores)
    check_count(slots, "slots", least=1, most=slates.shape[1])
    ranked = np.empty((len(slates), slots), dtype=slates.dtype)
    for rows in blocks(len(slates), scores.shape[1]):
        some = slates[rows]
        own = np.take_along_axis(scores[rows], some.astype(np.intp), axis=1).astype(np.float64)
        order = np.argsort(-own, axis=1, kind="stable")[:, :slots]
        ranked[rows] = np.take_along_axis(some, order, axis=1)
    return ranked


def check_slate_rows(slates: mechanisms.Reports, scores: Array) -> None:
    """Raise OutOfDomain unless there is one slate per row of scores."""
    if slates.ndim != 2 or len(slates) != len(scores):
        raise OutOfDomain(
            f"Expected one slate for each of {len(scores)} rows of scores; "
            f"got shape {slates.shape}."
        )


def _best_of_any(size: int, slate: int) -> Floats:
    """Return, for each rank, the chance that it is the best of a random slate."""
    whole = math.comb(size, slate)
    return np.array([math.comb(size - 1 - rank, slate - 1) / whole for rank in range(size)])
