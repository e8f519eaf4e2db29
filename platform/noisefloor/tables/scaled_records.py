"""The public schema of records: what everybody knows before anybody reports.

Types, ranges and the order of categories come from here and never from data: the ends of an
empirical range are two people's values. A record is mapped to numbers in [-1, 1] by the schema
alone, on the device.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import Floats, check_bits, check_finite, check_integers, check_reals
from noisefloor.errors import BadParameter, BadTable
from noisefloor.tables import declarations
from noisefloor.tables.reading import Table

MOST_ATTRIBUTES = 4096
MOST_CATEGORIES = 1 << 16
_NARROWEST, _WIDEST = 1e-300, 1e300
"""Of a range: beyond these a float holds neither the width nor its inverse."""

MOST_LABELS = 64

Labels = NDArray[Any]  # Any: booleans, or small integers
"""One a record: whether it belongs to the positive class; the place of its class where there are
more than two."""


@dataclass(frozen=True, slots=True)
class Continuous:
    """A number in a public range; what lies outside is moved to the nearest end.

    Attributes:
        name: Of the column.
        low: Smallest value that is distinguished.
        high: Largest.
    """

    name: str
    low: float
    high: float

    def __post_init__(self) -> None:
        _name(self.name)
        low, high = check_finite(self.low, "low"), check_finite(self.high, "high")
        # A range too wide or too narrow for floats would scale to something that is no number.
        if not (low < high and _NARROWEST <= high - low <= _WIDEST):
            rule = f"to have low < high, between {_NARROWEST:g} and {_WIDEST:g} apart"
            raise BadParameter(self.name, f"[{low:g}, {high:g}]", rule)

    def scale(self, column: NDArray[Any], where: str) -> Floats:
        """Return a column's values in [-1, 1]."""
        numbers = np.asarray(column)
        if numbers.ndim != 1 or numbers.dtype.kind not in "iuf":
            raise BadTable(where, "Expected one number a row.", self.name)
        if not np.isfinite(numbers).all():
            row = int(np.argmin(np.isfinite(numbers))) + 1
            raise BadTable(
                where, f"Expected finite numbers, found another in row {row}.", self.name
            )
        moved = np.clip(numbers.astype(np.float64), self.low, self.high)
        scaled = (moved - self.low) * (2 / (self.high - self.low)) - 1
        return np.asarray(np.clip(scaled, -1.0, 1.0))


@dataclass(frozen=True, slots=True)
class Categorical:
    """One of a public list of categories, whose order counts: neighbours are put together first.

    Attributes:
        name: Of the column.
        values: The categories in order, at least two.
    """

    name: str
    values: tuple[str, ...]

    def __post_init__(self) -> None:
        _name(self.name)
        if not 2 <= len(set(self.values)) == len(self.values) <= MOST_CATEGORIES:
            rule = f"to be 2 to {MOST_CATEGORIES} categories, each once"
            raise BadParameter(self.name, f"<{len(self.values)} categories>", rule)

    def scale(self, column: NDArray[Any], where: str) -> Floats:
        """Return a column's places in the list, evenly spread over [-1, 1]."""
        codes = _codes(column, self.values, where, self.name)
        return np.asarray(codes * (2 / (len(self.values) - 1)) - 1)


Attribute: TypeAlias = Continuous | Categorical


@dataclass(frozen=True, slots=True)
class Label:
    """The label of a record: one of two classes, or of more.

    Attributes:
        name: Of the column.
        negative: The class that is -1.
        positive: The class that is +1.
        others: Further classes, where there are more than two.
    """

    name: str
    negative: str
    positive: str
    others: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _name(self.name)
        if not len(set(self.classes)) == len(self.classes) <= MOST_LABELS:
            rule = f"to have 2 to {MOST_LABELS} different classes"
            raise BadParameter(self.name, "<label>", rule)

    @property
    def classes(self) -> tuple[str, ...]:
        """All classes, in the order of their codes."""
        return (self.negative, self.positive, *self.others)


@dataclass(frozen=True, slots=True, eq=False)
class ScaledRecords:
    """Records as numbers.

    Attributes:
        values: In [-1, 1], a row for each record and a column for each attribute.
        labels: Whether each is positive; unsigned bytes are places of more than two classes.
    """

    values: Floats
    labels: Labels

    def __post_init__(self) -> None:
        labels = check_labels(self.labels)
        width = np.shape(self.values)[-1] if np.ndim(self.values) else 0
        values = check_reals(self.values, -1.0, 1.0, width=width)
        if len(values) != len(labels):
            raise BadParameter("labels", f"<{len(labels)}>", f"as many as records, {len(values)}")
        object.__setattr__(self, "values", values.astype(np.float64, copy=False))
        object.__setattr__(self, "labels", labels)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, rows: NDArray[Any] | slice) -> "ScaledRecords":
        return ScaledRecords(np.asarray(self.values[rows]), np.asarray(self.labels[rows]))


def check_labels(labels: object) -> Labels:
    """Return booleans, or unsigned bytes as they are; refuse what is no label."""
    if isinstance(labels, np.ndarray) and labels.dtype == np.uint8:
        return check_integers(labels, 0, MOST_LABELS - 1)
    return check_bits(labels)


@dataclass(frozen=True, slots=True)
class ScaledSchema:
    """What a record holds.

    Attributes:
        attributes: In the order of the columns of ``ScaledRecords.values``.
        label: Of each record.
    """

    attributes: tuple[Attribute, ...]
    label: Label

    def __post_init__(self) -> None:
        names = [*(one.name for one in self.attributes), self.label.name]
        if not 1 <= len(self.attributes) <= MOST_ATTRIBUTES or len(set(names)) < len(names):
            rule = f"1 to {MOST_ATTRIBUTES} of them, each name once, none that of the label"
            raise BadParameter("attributes", f"<{len(self.attributes)} attributes>", rule)

    def __len__(self) -> int:
        return len(self.attributes)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that a table of records has to have."""
        return (*(one.name for one in self.attributes), self.label.name)

    def records(self, table: Table, where: str = "table") -> ScaledRecords:
        """Return a table's records, or raise BadTable with column and rule.

        Args:
            table: Columns of one length; those that the schema does not name are left alone.
            where: What an error calls the table.
        """
        for name in self.columns:
            if name not in table:
                raise BadTable(where, "Expected this column, which the schema names.", name)
        scaled = [one.scale(table[one.name], where) for one in self.attributes]
        classes = self.label.classes
        codes = _codes(table[self.label.name], classes, where, self.label.name)
        labels = codes == 1 if len(classes) == 2 else codes.astype(np.uint8)
        if not len(labels):
            raise BadTable(where, "Expected at least one record.")
        if {len(column) for column in scaled} != {len(labels)}:
            raise BadTable(where, "Expected columns of one length.")
        return ScaledRecords(np.column_stack(scaled), np.asarray(labels))

    def outside(self, table: Table) -> NDArray[np.bool_]:
        """Return which values of a table lie outside their range: ``records`` moves them."""
        columns = [
            (table[one.name] < one.low) | (table[one.name] > one.high)
            if isinstance(one, Continuous)
            else np.zeros(len(table[one.name]), dtype=np.bool_)
            for one in self.attributes
        ]
        return np.column_stack(columns)

    def as_json(self) -> dict[str, Any]:  # Any: JSON
        """Return plain data that ``of_json`` reads."""
        attributes = [
            {"name": one.name, "low": one.low, "high": one.high}
            if isinstance(one, Continuous)
            else {"name": one.name, "values": list(one.values)}
            for one in self.attributes
        ]
        label = self.label
        payload = {"name": label.name, "negative": label.negative, "positive": label.positive}
        others = {"others": list(label.others)} if label.others else {}
        return {"attributes": attributes, "label": payload | others}

    @classmethod
    def of_json(cls, payload: Mapping[str, Any]) -> "ScaledSchema":  # Any: JSON
        """Read a schema from plain data, or raise BadParameter."""
        try:
            if set(payload) != {"attributes", "label"}:
                raise BadParameter("schema", sorted(payload), "to have attributes and label")
            said = dict(payload["label"])
            others = tuple(_text(value) for value in said.pop("others", ()))
            label = Label(**{key: _text(value) for key, value in said.items()}, others=others)
            return cls(tuple(_attribute(one) for one in payload["attributes"]), label)
        except (TypeError, AttributeError, KeyError) as error:
            raise BadParameter("schema", type(error).__name__, "to be a schema") from None

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "ScaledSchema":
        """Read a schema from a file of YAML or JSON, or raise BadTable.

        The file is the one that publication reads too (``tables.declarations``): bins count as
        the range from their first edge to the last, and the label has the two classes that are
        named, or all categories of its column. Lists of attributes, as ``as_json`` writes them,
        are read as well.
        """
        name = os.fspath(path)
        payload = declarations.read_document(name)
        try:
            if declarations.is_declaration(payload):
                return cls.declared(declarations.declaration_of(payload, name))
            return cls.of_json(payload if isinstance(payload, dict) else {})
        except BadParameter as error:
            raise BadTable(name, f"Expected a schema: {error}") from None

    @classmethod
    def declared(cls, said: declarations.Declaration) -> "ScaledSchema":
        """Make a schema of what was declared of a table, or raise BadParameter."""
        label = _declared_label(said)
        others = {name: one for name, one in said.columns.items() if name != label.name}
        return cls(tuple(_declared(name, one) for name, one in others.items()), label)


def _declared(name: str, payload: declarations.DeclaredColumn) -> Attribute:
    if payload.kind == "categories":
        return Categorical(name, tuple(_text(value) for value in payload.values))
    if payload.kind == "text":
        raise BadParameter(name, "<text>", "of categories or numbers: texts are not collected")
    if len(payload.values) < 2:
        raise BadParameter(name, "<bins>", "to have two edges at least")
    return Continuous(name, payload.values[0], payload.values[-1])


def _declared_label(said: declarations.Declaration) -> Label:
    """Return the label with its classes: those named, or all categories of its column."""
    label = said.label
    if label is None:
        raise BadParameter("label", "<none>", "to name the column that is predicted")
    column = said.columns[label.name]
    classes = label.classes
    if classes is None and column.kind == "categories" and len(column.values) >= 2:
        classes = column.values
    if classes is None:
        rule = "to have negative and positive, or to be a column of two or more categories"
        raise BadParameter("label", label.name, rule)
    if column.kind == "categories" and not set(classes) <= set(column.values):
        raise BadParameter("label", label.name, "to have two of its column's categories")
    first, second, *others = (_text(one) for one in classes)
    return Label(label.name, first, second, tuple(others))


def _attribute(payload: Mapping[str, Any]) -> Attribute:  # Any: JSON
    if "values" in payload:
        if not isinstance(payload["values"], list | tuple):
            raise BadParameter("values", type(payload["values"]).__name__, "to be a list")
        values = tuple(_text(value) for value in payload["values"])
        return Categorical(**{**payload, "values": values})
    return Continuous(**payload)


def _name(name: object) -> str:
    """Return the name of a column, which has to be a text that is not empty."""
    if not isinstance(name, str) or not name:
        raise BadParameter("name", name, "to be a text")
    return name


def _codes(
    column: NDArray[Any], values: Sequence[str], where: str, name: str
) -> NDArray[np.int64]:
    """Return the place of each value in a list; a value that is not in it is refused."""
    array = np.asarray(column)
    if array.ndim != 1:
        raise BadTable(where, "Expected one value a row.", name)
    if array.dtype == np.object_:  # a mixture has no order to sort by
        array = np.array([_text(value) for value in array])
    found, inverse = np.unique(array, return_inverse=True)
    places = {value: place for place, value in enumerate(values)}
    known = np.array([places.get(_text(value), -1) for value in found], dtype=np.int64)
    codes = known[inverse]
    if (codes < 0).any():
        row = int(np.argmin(codes >= 0)) + 1
        raise BadTable(where, f"Expected one of the schema's values in row {row}.", name)
    return np.asarray(codes)


def _text(value: Any) -> str:  # Any: what numpy holds
    """Write a value as a schema does: whole numbers without a point."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)
