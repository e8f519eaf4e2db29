"""One response over the whole tuple: a few sampled attributes and the label, answered as one.

Splitting epsilon over K values and the label makes each of them nearly random. Here each owner
draws k of the d attributes, and answers for the tuple (classes of the k, label) at once, with
the whole epsilon. The truth of a tuple is the truth of each of its parts, so what is estimated of
one attribute has the full epsilon behind it; what grows is the number of symbols that a lie
spreads over.

Tuples of sampled attributes: which are drawn, how many symbols they have, and the answers.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from noisefloor import mechanisms
from noisefloor.checks import Array, Floats, blocks, check_count, check_epsilon, check_integers
from noisefloor.collection.encoding.discretisation import MOST_CLASSES
from noisefloor.distributions import ONE
from noisefloor.errors import BadParameter, OutOfDomain
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import Source
from noisefloor.tables import MOST_ATTRIBUTES, MOST_LABELS

MOST_SYMBOLS = 1 << 31
_MOST_SPACES = 1 << 10

IntegerArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Responders:
    """A response for each number of symbols, each with streams of its own.

    Attributes:
        epsilon: Of each response.
        source: Of all draws.
        opened: Those that have answered.
    """

    epsilon: float
    source: Source
    opened: dict[int, mechanisms.KarySampler] = field(default_factory=dict)

    def __call__(self, symbols: IntegerArray, spaces: IntegerArray) -> IntegerArray:
        """Answer for a block of owners; those of one space keep their order."""
        answers = np.empty_like(symbols)
        for space in np.unique(spaces).tolist():
            some = np.flatnonzero(spaces == space)
            answers[some] = self._responder(space)(symbols[some])
        return answers

    def _responder(self, space: int) -> mechanisms.KarySampler:
        if space not in self.opened:
            stage = self.source.stage("response", space)
            self.opened[space] = response_over(space, self.epsilon).sampler(stage)
        return self.opened[space]


@lru_cache(maxsize=256)
def response_over(space: int, epsilon: float) -> mechanisms.KaryResponse:
    """Return the response over n symbols; its distribution is a table, so it is kept."""
    return mechanisms.KaryResponse(space, epsilon)


def kept_share(response: mechanisms.KaryResponse) -> float:
    """Return keep - lie: a report is the truth with this share, and even noise with the rest."""
    others = response.size - 1
    return (response.keep * others - (ONE - response.keep)) / (ONE * others)


def spaces_of(sizes: tuple[int, ...], chosen: int, labels: int) -> tuple[int, ...]:
    """Return every number of symbols that a draw of attributes can lead to."""
    reached: list[set[int]] = [{labels}, *(set() for _ in range(chosen))]
    for size, times in Counter(sizes).items():
        for taken in reversed(range(chosen)):
            for more in range(1, min(times, chosen - taken) + 1):
                reached[taken + more] |= {space * size**more for space in reached[taken]}
        if len(reached[chosen]) > _MOST_SPACES:
            raise BadParameter("chosen", chosen, "fewer: too many different numbers of symbols")
    if max(reached[chosen]) > MOST_SYMBOLS:
        rule = f"fewer: a tuple may be one of {MOST_SYMBOLS} symbols at most"
        raise BadParameter("chosen", chosen, rule)
    return tuple(sorted(reached[chosen]))


def subsets(draw: Sequence[Source], attributes: int, count: int) -> NDArray[np.uint16]:
    """Draw subsets, each equally likely, in increasing order (Floyd's way).

    The i-th draw is below ``attributes - chosen + i + 1``; what was drawn before becomes the
    largest number that this draw could give, which cannot have come before.
    """
    chosen = len(draw)
    subsets = np.empty((count, chosen), dtype=np.uint16)
    for place, stage in enumerate(draw):
        last = attributes - chosen + place
        drawn = stage.below(last + 1, count).astype(np.uint16)
        again = (subsets[:, :place] == drawn[:, None]).any(axis=1)
        subsets[:, place] = np.where(again, last, drawn)
    subsets.sort(axis=1)
    return subsets


_MOST_OUTPUTS = 1 << 20


@dataclass(frozen=True, slots=True)
class JointResponse:
    """Draw some attributes, and answer for their classes and the label as for one symbol.

    The proof: which attributes are drawn does not depend on the record, so it tells nothing.
    Given the draw, the report is the true one of M symbols with weight ``keep`` and each other
    with weight ``lie``; so for any two records and any report the probabilities differ by at most
    ``keep / lie``, and by exactly that where they disagree on a drawn value.

    Guarantee:  pure DP, epsilon = the largest ln(keep / lie) over the sizes M that a draw can
                have, per report.
    Neighbours: item = user: any record to any other; one owner holds one record (local model).
    Domain:     rows of classes, one for each attribute and below its size, and then the class of
                the label where there is one; anything else is refused.
    Reference:  Kairouz, Oh, Viswanath 2014, arXiv 1407.1338 (randomised response); sampling of
                attributes: Wang et al. 2019 (collecting multidimensional data).

    Attributes:
        sizes: How many classes each attribute has.
        chosen: How many attributes an owner draws.
        epsilon: As requested.
        labelled: Whether a label is part of the tuple; not so for a query.
        label_classes: How many classes the label has where there is one.
        spaces: How many symbols a tuple can be one of, each number that occurs.
    """

    sizes: tuple[int, ...]
    chosen: int
    epsilon: float
    labelled: bool = True
    label_classes: int = 2
    spaces: tuple[int, ...] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_count(len(self.sizes), "attributes", most=MOST_ATTRIBUTES)
        for size in self.sizes:
            check_count(size, "size", least=2, most=MOST_CLASSES)
        check_count(self.chosen, "chosen", most=len(self.sizes))
        check_count(self.label_classes, "label_classes", least=2, most=MOST_LABELS)
        object.__setattr__(self, "spaces", spaces_of(self.sizes, self.chosen, self.labels))

    @property
    def labels(self) -> int:
        """How many values the label has: its classes, or 1 where there is none."""
        return self.label_classes if self.labelled else 1

    @property
    def width(self) -> int:
        """Columns of a report: the attributes, their classes, and the label if there is one."""
        return 2 * self.chosen + self.labelled

    def randomise(self, values: object, source: Source) -> NDArray[np.uint16]:
        """Return the drawn attributes in order, a class for each of them, and a label."""
        rows = self._check_rows(values)
        draw = [source.stage("attribute", place) for place in range(self.chosen)]
        respond = Responders(self.epsilon, source)
        reports = np.empty((len(rows), self.width), dtype=np.uint16)
        for some in blocks(len(rows), rows.shape[1]):
            attributes = subsets(draw, len(self.sizes), len(rows[some]))
            symbols, spaces = self._symbols(rows[some], attributes)
            reports[some, : self.chosen] = attributes
            reports[some, self.chosen :] = self._digits(respond(symbols, spaces), attributes)
        return reports

    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return the largest guarantee of the responses as rounded."""
        if neighbours not in (Neighbours.ITEM, Neighbours.USER):
            return mechanisms.unsupported(self, neighbours)
        each = (response_over(space, self.epsilon).guarantee() for space in self.spaces)
        return Guarantee(max(one.epsilon for one in each), neighbours)

    def log_likelihood(self, reports: mechanisms.Reports, value: object) -> Floats:
        """Return ln P(report | record), the record being its classes and its label."""
        reported = self.check_reports(reports)
        record = self._check_rows(np.asarray(value).reshape(1, -1))
        attributes = reported[:, : self.chosen]
        true, spaces = self._symbols(
            np.broadcast_to(record, (len(reported), record.size)), attributes
        )
        said = self._packed(reported[:, self.chosen :], attributes)
        draws = math.log(math.comb(len(self.sizes), self.chosen))
        likelihoods = np.empty(len(reported))
        for space in np.unique(spaces).tolist():
            some, response = spaces == space, response_over(space, self.epsilon)
            same = mechanisms.log_of(response.keep, ONE)
            other = mechanisms.log_of(ONE - response.keep, ONE * (space - 1))
            likelihoods[some] = np.where(said[some] == true[some], same, other) - draws
        return likelihoods

    def tally(self, reports: mechanisms.Reports) -> mechanisms.Tally:
        """Count each (attribute, class, label), for each number of symbols by itself."""
        cells, counts = self.cells, np.zeros(len(self.spaces) * self.cells, dtype=np.int64)
        for some in blocks(len(reports), self.width):
            reported = self.check_reports(reports[some])
            places = self.cells_of(reported) + cells * self.groups_of(reported)[:, None]
            counts += np.bincount(places.reshape(-1), minlength=len(counts))
        return counts

    def estimate(self, tally: mechanisms.Tally, n: int) -> mechanisms.Estimate:
        """Return the share of owners with each (attribute, class, label), in that order.

        Owners whose tuple had few symbols lied less: reports count by their ``kept_shares``.
        An attribute that nobody drew has even shares of infinite standard error.
        """
        mechanisms.check_reports_counted(n)
        counts = np.asarray(tally, dtype=np.float64).reshape(len(self.spaces), self.cells)
        starts = np.array(self.starts)
        drawn = np.repeat(np.add.reduceat(counts, starts, axis=1), self._widths, axis=1)
        kept, even = self.kept_shares[:, None], 1 / np.repeat(self._widths, self._widths)
        weight = (drawn * kept**2).sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            value = (kept * (counts - drawn * (1 - kept) * even)).sum(axis=0) / weight
            share = np.where(drawn > 0, counts / drawn, 0.0)
            error = np.sqrt((kept**2 * drawn * share * (1 - share)).sum(axis=0)) / weight
        unknown = weight == 0
        return mechanisms.Estimate(
            np.where(unknown, even, value), np.where(unknown, np.inf, error)
        )

    def outputs(self) -> mechanisms.Reports:
        """Return every report, or raise BadParameter where there are too many to list."""
        if math.comb(len(self.sizes), self.chosen) * max(self.spaces) > _MOST_OUTPUTS:
            raise BadParameter("sizes", "<sizes>", f"to have at most {_MOST_OUTPUTS} reports")
        return np.array(list(self._listed()), dtype=np.uint16)

    def worst_pairs(
        self, neighbours: Neighbours = Neighbours.USER
    ) -> Sequence[tuple[object, object]]:
        """Return two records that disagree on everything."""
        last = [size - 1 for size in self.sizes] + [self.labels - 1] * self.labelled
        return [(np.zeros(len(last), dtype=np.int64), np.array(last))]

    @property
    def kept_shares(self) -> Floats:
        """How much of each space's reports is the truth beyond chance: keep - lie."""
        return np.array([kept_share(response_over(one, self.epsilon)) for one in self.spaces])

    @property
    def starts(self) -> tuple[int, ...]:
        """The first cell of each attribute."""
        return tuple(int(end) for end in np.cumsum([0, *self._widths[:-1]]))

    @property
    def cells(self) -> int:
        """How many pairs of class and label there are, over all attributes."""
        return self.labels * sum(self.sizes)

    def cells_of(self, reports: mechanisms.Reports) -> IntegerArray:
        """Return the cell of each (attribute, class, label) of checked reports."""
        reported = np.asarray(reports, dtype=np.int64)
        starts, chosen = np.array(self.starts), self.chosen
        cells = starts[reported[:, :chosen]] + self.labels * reported[:, chosen : 2 * chosen]
        return np.asarray(cells + reported[:, -1:] if self.labelled else cells)

    def groups_of(self, reports: mechanisms.Reports) -> IntegerArray:
        """Return for each checked report which of ``spaces`` its tuple was one of."""
        if len(self.spaces) == 1:
            return np.zeros(len(reports), dtype=np.int64)
        drawn = np.array(self.sizes)[np.asarray(reports)[:, : self.chosen]]
        found = np.searchsorted(np.array(self.spaces), self.labels * drawn.prod(axis=1))
        return np.asarray(found, dtype=np.int64)

    def check_reports(self, reports: mechanisms.Reports) -> mechanisms.Reports:
        """Return reports in the domain, or raise OutOfDomain."""
        reported = check_integers(reports, 0, max(MOST_ATTRIBUTES, MOST_CLASSES), width=self.width)
        attributes = reported[:, : self.chosen].astype(np.int64)
        if (attributes >= len(self.sizes)).any() or (np.diff(attributes, axis=1) <= 0).any():
            raise OutOfDomain("Expected attributes of the schema, in order and each once.")
        classes, label = reported[:, self.chosen : 2 * self.chosen], reported[:, 2 * self.chosen :]
        if (classes >= np.array(self.sizes)[attributes]).any() or (label >= self.labels).any():
            raise OutOfDomain("Expected classes that the attributes and the label have.")
        return reported

    @property
    def _widths(self) -> IntegerArray:
        return self.labels * np.array(self.sizes)

    def _check_rows(self, values: object) -> Array:
        width = len(self.sizes) + self.labelled
        rows = check_integers(values, 0, MOST_CLASSES, width=width)
        tops = np.array([*self.sizes, *([self.labels] * self.labelled)]) - 1
        if len(rows) and (rows.max(axis=0) > tops).any():
            raise OutOfDomain("Expected classes below the sizes of their attributes.")
        return rows

    def _symbols(self, rows: Array, attributes: Array) -> tuple[IntegerArray, IntegerArray]:
        """Return each owner's tuple as one symbol, and of how many."""
        drawn = attributes.astype(np.int64)
        parts = [np.take_along_axis(rows, drawn, axis=1)]
        if self.labelled:
            parts.append(rows[:, -1:])
        spaces = self.labels * np.array(self.sizes)[drawn].prod(axis=1)
        return self._packed(np.hstack(parts), attributes), spaces

    def _packed(self, digits: Array, attributes: Array) -> IntegerArray:
        """Return classes and label as one number: the label is the last digit."""
        symbols = np.zeros(len(digits), dtype=np.int64)
        for place in range(self.chosen):
            symbols *= np.array(self.sizes)[attributes[:, place]]
            symbols += digits[:, place].astype(np.int64)
        if not self.labelled:
            return symbols
        return symbols * self.labels + digits[:, -1].astype(np.int64)

    def _digits(self, symbols: IntegerArray, attributes: Array) -> NDArray[np.uint16]:
        """Return the classes and the label that a symbol stands for."""
        digits = np.empty((len(symbols), self.chosen + self.labelled), dtype=np.uint16)
        left = symbols
        if self.labelled:
            left, digits[:, -1] = np.divmod(left, self.labels)
        for place in reversed(range(self.chosen)):
            size = np.array(self.sizes)[attributes[:, place]]
            left, digits[:, place] = np.divmod(left, size)
        return digits

    def _listed(self) -> Iterator[tuple[int, ...]]:
        for some in combinations(range(len(self.sizes)), self.chosen):
            ranges = [range(self.sizes[one]) for one in some]
            ranges += [range(self.labels)] * self.labelled
            for digits in product(*ranges):
                yield (*some, *digits)
