"""The public file that says what a table holds: one form, for publishing and for collecting.

It is JSON or YAML. What a column may hold is declared beforehand, and never taken from data::

    record: one visit
    columns:
      country: {categories: [CH, DE]}
      age: {bins: [0, 18, 65, 120]}
      pulse: {range: [40, 180]}
      ill: {categories: ["no", "yes"]}
    label: {name: ill, negative: "no", positive: "yes"}    # or only its name; may be left out

A column of texts is ``{text: 48}``: texts of any length, of which a model reads the first 48
pieces. ``text_records`` reads tables with one or two of them.
"""

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from noisefloor.errors import BadTable

MOST_FILE_BYTES = 1 << 20
SUFFIXES = (".json", ".yaml", ".yml")

MOST_PIECES = 4096
"""Of a text; more than the position tables of the usual encoders hold."""

ColumnKind: TypeAlias = Literal["categories", "bins", "range", "text"]
Value: TypeAlias = str | int | float

_RULE = (
    'Expected {"categories": [...]}, {"bins": [...]} or {"range": [low, high]}; '
    'for texts {"text": the longest length in pieces}.'
)
_LABEL_RULE = 'Expected a name, or {"name": ..., "negative": ..., "positive": ...}.'


@dataclass(frozen=True, slots=True)
class DeclaredColumn:
    """What one column may hold, as it was written.

    Attributes:
        kind: Categories, edges of bins, the two ends of a range, or the longest length of a text.
        values: Those.
    """

    kind: ColumnKind
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class DeclaredLabel:
    """Which column is to be predicted.

    Attributes:
        name: Of the column, one that is declared.
        classes: The negative and the positive one, if they were named.
    """

    name: str
    classes: tuple[Value, Value] | None = None


@dataclass(frozen=True, slots=True)
class Declaration:
    """What a table holds, as it was declared.

    Attributes:
        record: What one row is, in words.
        columns: By name, in the order of the file.
        label: Which column is to be predicted, if any.
    """

    record: Any
    columns: Mapping[str, DeclaredColumn]
    label: DeclaredLabel | None = None


def read_document(path: str | os.PathLike[str]) -> object:
    """Read a file of JSON or YAML as plain data, or raise BadTable."""
    name = os.fspath(path)
    try:
        if Path(name).stat().st_size > MOST_FILE_BYTES:
            raise BadTable(name, f"Expected at most {MOST_FILE_BYTES} bytes.")
        return _parsed(Path(name).read_text(encoding="utf-8"), name)
    except OSError as error:
        raise BadTable(name, f"Cannot be read: {error.strerror or 'input error'}.") from None
    except (ValueError, RecursionError):
        form = "JSON" if name.endswith(".json") else "YAML"
        raise BadTable(name, f"Expected {form} in UTF-8.") from None


def _parsed(text: str, name: str) -> object:
    if name.endswith(".json"):
        return json.loads(text)
    import yaml  # lazy: a published model needs none

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        raise ValueError from None


def is_declaration(document: object) -> bool:
    """Say whether plain data are meant to be a declaration: whether they have columns."""
    return isinstance(document, dict) and "columns" in document


def declaration_of(document: object, where: str = "schema") -> Declaration:
    """Make a declaration of plain data, or raise BadTable with column and rule."""
    keys = set(document) if isinstance(document, dict) else set()
    if not isinstance(document, dict) or keys - {"label"} != {"record", "columns"}:
        raise BadTable(where, "Expected an object with record and columns, and perhaps label.")
    listed = document["columns"]
    if not isinstance(listed, dict):
        raise BadTable(where, "Expected columns to be an object.")
    columns = {name: _column(where, name, one) for name, one in listed.items()}
    label = None if document.get("label") is None else _label(document["label"], where)
    if label is not None and label.name not in columns:
        raise BadTable(where, "Expected label to name one of the columns.")
    return Declaration(document["record"], columns, label)


def _column(where: str, name: Any, document: object) -> DeclaredColumn:  # Any: YAML has any key
    if not isinstance(document, dict) or len(document) != 1:
        raise BadTable(where, _RULE, str(name))
    ((kind, listed),) = document.items()
    if kind == "text":
        return DeclaredColumn(kind, (_longest(where, name, listed),))
    if kind not in ("categories", "bins", "range") or not isinstance(listed, list):
        raise BadTable(where, _RULE, str(name))
    if not all(_is_value(value) for value in listed):
        rule = 'Expected texts or numbers; a bare no or yes of YAML is neither, "no" is a text.'
        raise BadTable(where, rule, str(name))
    if kind == "range" and not _is_range(listed):
        rule = "Expected range: two finite numbers, the lower one first."
        raise BadTable(where, rule, str(name))
    return DeclaredColumn(kind, tuple(listed))


def _longest(where: str, name: Any, value: object) -> int:
    """Return the longest length of a text, in pieces."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_PIECES:
        rule = f"Expected text: the longest length in pieces, in [1, {MOST_PIECES}]."
        raise BadTable(where, rule, str(name))
    return value


def _is_value(value: object) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _is_range(listed: list[Any]) -> bool:
    is_pair = len(listed) == 2 and not any(isinstance(end, str) for end in listed)
    return is_pair and all(map(math.isfinite, listed)) and listed[0] < listed[1]


def _label(document: object, where: str) -> DeclaredLabel:
    if isinstance(document, str):
        return DeclaredLabel(document)
    if not isinstance(document, dict) or set(document) != {"name", "negative", "positive"}:
        raise BadTable(where, f"label: {_LABEL_RULE}")
    classes = (document["negative"], document["positive"])
    is_pair = all(_is_value(value) for value in classes) and classes[0] != classes[1]
    if not isinstance(document["name"], str) or not is_pair:
        raise BadTable(where, f"label: {_LABEL_RULE} The classes are two texts or numbers.")
    return DeclaredLabel(document["name"], classes)
