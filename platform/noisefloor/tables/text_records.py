"""Texts as records: one or two texts and a label in each row, by a public schema.

A schema of texts is declared as that of any other table (``declarations``)::

    record: one review
    columns:
      review: {text: 48}
      mood: {categories: [bad, good]}
    label: mood

The number is the longest length in pieces, as the tokeniser of a model cuts texts into them; the
marks that a model adds around a text are not counted. Whatever follows is left out by the model
and counted by whoever holds the data: here, where there is no tokeniser, texts are kept whole.
Columns that the schema does not name are not read. An error names file, column and row, and never
holds a text.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import check_count
from noisefloor.errors import BadParameter, BadTable
from noisefloor.tables.data_sets import IMDB, ROTTEN_TOMATOES, find_data_set
from noisefloor.tables.declarations import MOST_PIECES, declaration_of, read_document
from noisefloor.tables.reading import is_table_file, load_table
from noisefloor.tables.records import MOST_ROWS, schema_path
from noisefloor.tables.schema import Categories, Codes, schema_of

MOST_TEXTS = 2
"""Columns of texts in a record: one, or a pair such as a question and an answer."""

MOST_CLASSES = 1000


@dataclass(frozen=True, slots=True)
class TextSchema:
    """What a table of labelled texts may hold.

    Attributes:
        record: What one row is, in words: that is what is protected. ``one review``.
        texts: The longest length of each text column, in pieces; one or two columns.
        label: The column that is predicted.
        classes: The values of the label, two or more.
    """

    record: str
    texts: Mapping[str, int]
    label: str
    classes: Categories

    def __post_init__(self) -> None:
        if not 1 <= len(self.texts) <= MOST_TEXTS:
            raise BadParameter("columns", "<texts>", f"one text at least, {MOST_TEXTS} at most")
        for name, pieces in self.texts.items():
            check_count(pieces, f"text of {name}", most=MOST_PIECES)
        if not 2 <= self.classes.size <= MOST_CLASSES:
            rule = f"2 to {MOST_CLASSES} classes: with fewer there is nothing to predict"
            raise BadParameter("label", f"<{self.classes.size}>", rule)
        object.__setattr__(self, "texts", MappingProxyType(dict(self.texts)))

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that are read."""
        return (*self.texts, self.label)


@dataclass(frozen=True, slots=True, eq=False)
class TextRecords:
    """Labelled texts, with what is public of them.

    Attributes:
        schema: What is public.
        texts: The texts of each column.
        labels: The place of each record's class.
    """

    schema: TextSchema
    texts: Mapping[str, NDArray[np.object_]]
    labels: Codes

    @classmethod
    def of(cls, table: Mapping[str, Any], schema: TextSchema, file: str) -> "TextRecords":
        """Take the columns of a table, or raise BadTable with file, column, row and rule."""
        texts = {name: check_texts(table[name], file, name) for name in schema.texts}
        labels = schema.classes.codes(np.asarray(table[schema.label]), file, schema.label)
        check_count(len(labels), "rows", most=MOST_ROWS)
        for column in (*texts.values(), labels):
            column.flags.writeable = False
        return cls(schema, texts, labels)

    def __getitem__(self, rows: NDArray[Any] | slice) -> "TextRecords":
        texts = {name: column[rows] for name, column in self.texts.items()}
        return TextRecords(self.schema, texts, self.labels[rows])

    @property
    def count(self) -> int:
        """How many rows there are; private, where a record may be added or removed."""
        return len(self.labels)


def check_texts(column: Sequence[Any] | NDArray[Any], file: str, name: str) -> NDArray[np.object_]:
    """Return a column of texts, none of them empty; the error names the row, never the text."""
    texts = np.empty(len(column), dtype=np.object_)
    for row, text in enumerate(column):
        if not isinstance(text, str):
            raise BadTable(file, f"Expected texts, found another value in row {row + 1}.", name)
        if not text.strip():
            rule = f"Expected a text in every row, found an empty one in row {row + 1}."
            raise BadTable(file, rule, name)
        texts[row] = text
    return texts


def is_text_schema(document: object) -> bool:
    """Say whether plain data declare a table with texts."""
    columns = document.get("columns") if isinstance(document, dict) else None
    if not isinstance(columns, dict):
        return False
    return any(isinstance(one, dict) and "text" in one for one in columns.values())


def text_schema_of(document: object, where: str = "schema") -> TextSchema:
    """Make a schema of what ``text_schema_fields`` returned, or raise BadTable."""
    said = declaration_of(document, where)
    texts = {name: one.values[0] for name, one in said.columns.items() if one.kind == "text"}
    others = [name for name in said.columns if name not in texts]
    if said.label is None or others != [said.label.name]:
        rule = "Expected texts and one other column of categories, which label names."
        raise BadTable(where, rule)
    if said.label.classes is not None:
        raise BadTable(where, "Expected label to be a name: its classes are its categories.")
    fields = {"record": said.record, "columns": {others[0]: _fields(document, others[0])}}
    label = schema_of({**fields, "label": others[0]}, where)
    classes = label.columns[others[0]]
    if not isinstance(classes, Categories):
        raise BadTable(where, "Expected categories, since it is the label.", others[0])
    try:
        return TextSchema(label.record, texts, others[0], classes)
    except BadParameter as error:
        raise BadTable(where, f"Expected {error.name}: {error.rule}.") from None


def _fields(document: object, name: str) -> object:
    return document["columns"][name] if isinstance(document, dict) else None


def text_schema_fields(schema: TextSchema) -> dict[str, Any]:  # Any: JSON
    """Return what a schema file holds."""
    texts = {name: {"text": pieces} for name, pieces in schema.texts.items()}
    columns = {**texts, schema.label: schema.classes.fields}
    return {"record": schema.record, "columns": columns, "label": schema.label}


_POLARITY = Categories((0, 1))

PUBLIC_TEXT_SCHEMAS: Mapping[str, TextSchema] = MappingProxyType(
    {
        ROTTEN_TOMATOES.name: TextSchema(
            "one sentence of a review", {"text": 64}, "label", _POLARITY
        ),
        IMDB.name: TextSchema("one review of a film", {"text": 128}, "label", _POLARITY),
    }
)
"""By the name of the data set."""


def load_texts(source: str | os.PathLike[str], schema: TextSchema | None = None) -> TextRecords:
    """Load labelled texts by the name of a data set, or a file of one's own.

    Args:
        source: A name of the registry, or a path that ends in .csv, .tsv or .parquet.
        schema: What is public; if left out, that of the data set, or the file beside the table
            (``reviews.schema.json`` beside ``reviews.tsv``).

    Raises:
        UnknownDataSet: It is neither.
        MissingData: It was not fetched; the text says how.
        BadTable: A file breaks a rule; the text names file, column, row and rule.
    """
    name = os.fspath(source)
    if is_table_file(name):
        beside = schema_path(name)
        schema = schema or text_schema_of(read_document(beside), os.fspath(beside))
        # Checked first: a reader of tables would only say that it is missing.
        if not Path(name).is_file():
            raise BadTable(name, "Expected a file, there is none of that name.")
    elif find_data_set(name).name not in PUBLIC_TEXT_SCHEMAS:
        known = ", ".join(PUBLIC_TEXT_SCHEMAS)
        raise BadParameter("source", name, f"a file of one's own, or one of {known}")
    else:
        schema = schema or PUBLIC_TEXT_SCHEMAS[name]
    # Words such as NA or true are labels like others, and a text may look like a number.
    are_words = isinstance(schema.classes.values[0], str)
    as_texts = schema.columns if are_words else tuple(schema.texts)
    return TextRecords.of(load_table(name, schema.columns, texts=as_texts), schema, name)
