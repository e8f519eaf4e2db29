"""Weak anonymisation: values become one of a few public classes.

``Discretiser`` is the corrected form: every value has one of the classes that are declared, and
nothing else. ``PrintedDiscretiser`` follows the paper to the letter, with its class that nobody
declared: the minimum of a continuous range falls below the first class.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import Floats, blocks, check_count, check_reals
from noisefloor.errors import BadParameter
from noisefloor.tables import Attribute, Categorical, ScaledSchema

MOST_CLASSES = 1 << 12

Codes = NDArray[np.uint16]
"""One class a value, counted from 0."""


@dataclass(frozen=True, slots=True)
class Discretiser:
    """At most n classes for each attribute of a schema.

    A continuous range is cut into equal parts, each with its upper end; the minimum belongs to
    the first. Categories keep their own classes where there are few enough, and neighbours in
    the public order are put together where not, equally many in each.

    Attributes:
        schema: What the values are.
        most: Of classes, at least 2.
        sizes: How many each attribute has.
    """

    schema: ScaledSchema
    most: int
    sizes: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        check_count(self.most, "classes", least=2, most=MOST_CLASSES)
        sizes = tuple(_size(one, self.most) for one in self.schema.attributes)
        object.__setattr__(self, "sizes", sizes)

    def codes(self, values: Floats, columns: Sequence[int] | None = None) -> Codes:
        """Return the class of every value.

        Args:
            values: In [-1, 1], a column for each attribute that is requested.
            columns: Which attributes they are; all if left out.
        """
        chosen = check_columns(self.schema, columns)
        reals = check_reals(values, -1.0, 1.0, width=len(chosen))
        codes = np.empty(reals.shape, dtype=np.uint16)
        halves = np.array([self.sizes[column] / 2 for column in chosen])
        for rows in blocks(len(reals), len(chosen)):
            codes[rows] = self._block(reals[rows], chosen, halves)
        return codes

    def centres(self, column: int) -> Floats:
        """Return what each class of an attribute stands for, in [-1, 1]."""
        size = self.sizes[column]
        attribute = self.schema.attributes[column]
        if isinstance(attribute, Categorical):
            count = len(attribute.values)
            places = np.arange(count) * (2 / (count - 1)) - 1
            groups = _groups(np.arange(count), count, size)
            return np.asarray(np.bincount(groups, places) / np.bincount(groups))
        return (2 * np.arange(size) + 1) / size - 1

    def values(self, codes: Codes, columns: Sequence[int] | None = None) -> Floats:
        """Return what classes stand for, as numbers in [-1, 1]."""
        chosen = check_columns(self.schema, columns)
        values = np.empty(codes.shape, dtype=np.float64)
        for place, column in enumerate(chosen):
            values[:, place] = self.centres(column)[codes[:, place]]
        return values

    def _block(self, values: Floats, columns: Sequence[int], halves: Floats) -> Floats:
        """Return the classes of some records: all columns as ranges, then those with a list."""
        codes = np.add(values, 1.0, dtype=np.float64)
        codes *= halves
        np.ceil(codes, out=codes)
        codes -= 1.0
        np.maximum(codes, 0.0, out=codes)  # the minimum belongs to the first class
        for place, column in enumerate(columns):
            attribute = self.schema.attributes[column]
            if isinstance(attribute, Categorical):
                listed = _listed(values[:, place], len(attribute.values))
                codes[:, place] = _groups(listed, len(attribute.values), self.sizes[column])
        return codes


def check_columns(schema: ScaledSchema, columns: Sequence[int] | None) -> Sequence[int]:
    """Return the attributes that are meant, all if none is named; each at most once."""
    if columns is None:
        return range(len(schema))
    chosen = [check_count(column, "column", 0, len(schema) - 1) for column in columns]
    if not chosen or len(set(chosen)) < len(chosen):
        raise BadParameter("columns", chosen, "to name at least one attribute, each once")
    return chosen


def _size(attribute: Attribute, most: int) -> int:
    return min(len(attribute.values), most) if isinstance(attribute, Categorical) else most


def _listed(values: Floats, count: int) -> NDArray[np.int64]:
    """Return places in a list of categories from where the schema put them in [-1, 1]."""
    return np.rint((values + 1) * ((count - 1) / 2)).astype(np.int64)


def _groups(places: NDArray[np.int64], count: int, size: int) -> NDArray[np.int64]:
    """Put places in the public order together, equally many in each group."""
    return np.asarray(-(-(places + 1) * size // count) - 1)


@dataclass(frozen=True, slots=True)
class PrintedDiscretiser:
    """The paper's classes: 1 to ``most`` of each attribute, and 0, which no class is.

    Continuous: the ceiling is taken as it is, so that the minimum, and nothing else, becomes 0.
    Discrete: the place in the list, counted from 1, modulo ``most``; where there are at most one
    more categories than classes, the list is taken to fit. So the last class becomes 0, and
    categories that have nothing in common are put together.

    Attributes:
        schema: What the values are.
        most: Of classes, at least 2.
    """

    schema: ScaledSchema
    most: int

    def __post_init__(self) -> None:
        check_count(self.most, "classes", least=2, most=MOST_CLASSES)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many classes each attribute has in records: those of its response, and class 0."""
        return tuple(self.size(column) + 1 for column in range(len(self.schema)))

    def size(self, column: int) -> int:
        """Return how many classes the response of an attribute has."""
        attribute = self.schema.attributes[column]
        if isinstance(attribute, Categorical) and len(attribute.values) - 1 <= self.most:
            return len(attribute.values)
        return self.most

    def codes(self, values: Floats, columns: Sequence[int] | None = None) -> Codes:
        """Return the class of every value, 0 where the paper has none."""
        chosen = check_columns(self.schema, columns)
        reals = check_reals(values, -1.0, 1.0, width=len(chosen))
        codes = np.empty(reals.shape, dtype=np.uint16)
        for place, column in enumerate(chosen):
            attribute = self.schema.attributes[column]
            if isinstance(attribute, Categorical):
                listed = _listed(reals[:, place], len(attribute.values)) + 1
                codes[:, place] = listed % self.most
            else:
                codes[:, place] = np.ceil((reals[:, place] + 1) * (self.most / 2))
        return codes

    def label_codes(self, labels: NDArray[np.bool_]) -> Codes:
        """Return the classes of labels -1 and +1 as a range: every -1 is a minimum, so 0."""
        return np.where(labels, np.uint16(self.most), np.uint16(0))

    def centres(self, column: int) -> Floats:
        """Return what each class stands for, class 0 first, which lies below the range."""
        size = self.size(column)
        return (2.0 * np.arange(size + 1) - 1) / size - 1

    def values(self, codes: Codes, columns: Sequence[int] | None = None) -> Floats:
        """Return what classes stand for: centres of a range, 0 below it; labels of categories."""
        chosen = check_columns(self.schema, columns)
        values = np.empty(codes.shape, dtype=np.float64)
        for place, column in enumerate(chosen):
            values[:, place] = self.centres(column)[codes[:, place]]
        return values
