"""Tables of categories and tables of texts, for whoever publishes from either.

What a table holds is said by its schema: one with a text column is of texts.
"""

import hashlib
import json
import os
from typing import Any, TypeAlias

from noisefloor.tables.coded_records import decode_records, encode_records
from noisefloor.tables.coded_texts import decode_texts, encode_texts
from noisefloor.tables.declarations import read_document
from noisefloor.tables.reading import is_table_file
from noisefloor.tables.records import Records, load_records, load_schema, schema_path
from noisefloor.tables.schema import Schema, schema_fields, schema_of
from noisefloor.tables.text_records import (
    PUBLIC_TEXT_SCHEMAS,
    TextRecords,
    TextSchema,
    is_text_schema,
    load_texts,
    text_schema_fields,
    text_schema_of,
)

DataRecords: TypeAlias = Records | TextRecords
DataSchema: TypeAlias = Schema | TextSchema


def load_data(source: str | os.PathLike[str]) -> DataRecords:
    """Load a data set by its name, or a file with its schema beside it, of either kind.

    Raises:
        UnknownDataSet: It is neither.
        MissingData: It was not fetched; the text says how.
        BadTable: A file breaks a rule; the text names file, column and rule.
    """
    schema = load_data_schema(source)
    return load_texts(source, schema) if isinstance(schema, TextSchema) else load_records(source)


def load_data_schema(source: str | os.PathLike[str]) -> DataSchema:
    """Return what is public of a data set by its name, or of a file by the schema beside it."""
    name = os.fspath(source)
    if name in PUBLIC_TEXT_SCHEMAS:
        return PUBLIC_TEXT_SCHEMAS[name]
    beside = schema_path(name)
    if is_table_file(name) and os.path.isfile(name) and beside.is_file():
        return data_schema_of(read_document(beside), os.fspath(beside))
    return load_schema(source)  # it says what is missing


def data_schema_of(document: object, where: str = "schema") -> DataSchema:
    """Make a schema of plain data, or raise BadTable with column and rule."""
    if is_text_schema(document):
        return text_schema_of(document, where)
    return schema_of(document, where)


def data_schema_fields(schema: DataSchema) -> dict[str, Any]:  # Any: JSON
    """Return what a schema file holds."""
    return text_schema_fields(schema) if isinstance(schema, TextSchema) else schema_fields(schema)


def data_schema_digest(schema: DataSchema) -> str:
    """Return the hash of a schema, columns in their order, in hex."""
    # Not canonical JSON, which sorts: the order of the columns is that of a model's features.
    written = json.dumps(data_schema_fields(schema), separators=(",", ":"))
    return hashlib.sha256(written.encode("ascii")).hexdigest()


def encode_data(records: DataRecords) -> bytes:
    """Write records as bytes for an upload."""
    return encode_texts(records) if isinstance(records, TextRecords) else encode_records(records)


def decode_data(data: bytes, schema: DataSchema) -> DataRecords:
    """Read uploaded records, or raise BadTable; its text never holds a value."""
    if isinstance(schema, TextSchema):
        return decode_texts(data, schema)
    return decode_records(data, schema)
