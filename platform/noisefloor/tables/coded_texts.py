"""Labelled texts as bytes for an upload: one way to write each table, and nothing to unpack.

A row is the place of its class, two bytes, and then each text in the order of the schema: its
length in bytes of UTF-8, four bytes, and those. Numbers are unsigned and little-endian.
"""

import numpy as np

from noisefloor.errors import BadTable
from noisefloor.tables.text_records import TextRecords, TextSchema, check_texts

_CLASS_BYTES, _LENGTH_BYTES = 2, 4


def encode_texts(records: TextRecords) -> bytes:
    """Write records as bytes; the same rows in the same order give the same bytes."""
    columns = [records.texts[name] for name in records.schema.texts]
    parts = []
    for label, *texts in zip(records.labels.tolist(), *columns, strict=True):
        parts.append(label.to_bytes(_CLASS_BYTES, "little"))
        for text in texts:
            written = text.encode("utf-8")
            parts += [len(written).to_bytes(_LENGTH_BYTES, "little"), written]
    return b"".join(parts)


def decode_texts(data: bytes, schema: TextSchema) -> TextRecords:
    """Read records, or raise BadTable; its text names row and rule, and never holds a text."""
    labels: list[int] = []
    columns: list[list[str]] = [[] for _ in schema.texts]
    place = 0
    while place < len(data):
        label, place = _number(data, place, _CLASS_BYTES, len(labels))
        if label >= schema.classes.size:
            rule = f"Expected places below {schema.classes.size} in every row."
            raise BadTable("records", rule, schema.label)
        for column in columns:
            size, place = _number(data, place, _LENGTH_BYTES, len(labels))
            if place + size > len(data):
                raise _cut_off(len(labels))
            column.append(_text(data[place : place + size], len(labels)))
            place += size
        labels.append(label)
    if not labels:
        raise BadTable("records", "Expected at least one row.")
    texts = {
        name: check_texts(column, "records", name)
        for name, column in zip(schema.texts, columns, strict=True)
    }
    codes = np.array(labels, dtype=np.int64)
    for array in (codes, *texts.values()):
        array.flags.writeable = False
    return TextRecords(schema, texts, codes)


def _number(data: bytes, place: int, size: int, row: int) -> tuple[int, int]:
    """Return a number and the place after it."""
    if place + size > len(data):
        raise _cut_off(row)
    return int.from_bytes(data[place : place + size], "little"), place + size


def _text(written: bytes, row: int) -> str:
    try:
        return written.decode("utf-8")
    except UnicodeDecodeError:
        raise BadTable("records", f"Expected UTF-8, found other bytes in row {row + 1}.") from None


def _cut_off(row: int) -> BadTable:
    return BadTable("records", f"Expected whole rows, found row {row + 1} cut off.")
