"""Data: real data sets with provenance, and tables of one's own in their place.

``data_sets`` lists them, ``fetching`` downloads them with pip, ``cache`` keeps them and checks
them on every load, ``reading`` reads files strictly, and ``ratings``, ``impressions`` and
``places`` make arrays of them; ``schema`` and ``records`` are for tables of records,
``text_records`` for labelled texts. A pretrained model is fetched and kept as data sets are. No
package is installed for its data, and a missing data set is an error, never a stand-in.
"""

from noisefloor.tables.adult import EVERY_COLUMN, LABEL, LEARNING_SCHEMA, load_adult
from noisefloor.tables.cache import CacheState, cache_folder, cache_state, read_cached
from noisefloor.tables.coded_records import decode_records, encode_records
from noisefloor.tables.data_kinds import (
    DataRecords,
    DataSchema,
    data_schema_digest,
    data_schema_fields,
    data_schema_of,
    decode_data,
    encode_data,
    load_data,
    load_data_schema,
)
from noisefloor.tables.data_sets import DATA_SETS, Archive, DataSet, find_data_set
from noisefloor.tables.fetching import fetch_data_sets
from noisefloor.tables.impressions import click_rates
from noisefloor.tables.one_hot import Examples, OneHot, folds
from noisefloor.tables.places import CityTable, CountryTable, load_cities, load_countries
from noisefloor.tables.ratings import load_ratings
from noisefloor.tables.reading import Table, is_table_file, load_table
from noisefloor.tables.records import MOST_ROWS, Records, load_records, load_schema, schema_path
from noisefloor.tables.scaled_records import (
    MOST_ATTRIBUTES,
    MOST_LABELS,
    Attribute,
    Categorical,
    Continuous,
    Label,
    Labels,
    ScaledRecords,
    ScaledSchema,
)
from noisefloor.tables.schema import (
    Bins,
    Categories,
    Codes,
    ColumnDomain,
    Schema,
    read_schema,
    schema_fields,
    schema_of,
)
from noisefloor.tables.text_records import (
    PUBLIC_TEXT_SCHEMAS,
    TextRecords,
    TextSchema,
    check_texts,
    is_text_schema,
    load_texts,
    text_schema_fields,
    text_schema_of,
)

__all__ = [
    "DATA_SETS",
    "EVERY_COLUMN",
    "LABEL",
    "LEARNING_SCHEMA",
    "MOST_ATTRIBUTES",
    "MOST_LABELS",
    "MOST_ROWS",
    "PUBLIC_TEXT_SCHEMAS",
    "Archive",
    "Attribute",
    "Bins",
    "CacheState",
    "Categorical",
    "Categories",
    "CityTable",
    "Codes",
    "ColumnDomain",
    "Continuous",
    "CountryTable",
    "DataRecords",
    "DataSchema",
    "DataSet",
    "Examples",
    "Label",
    "Labels",
    "OneHot",
    "Records",
    "ScaledRecords",
    "ScaledSchema",
    "Schema",
    "Table",
    "TextRecords",
    "TextSchema",
    "cache_folder",
    "cache_state",
    "check_texts",
    "click_rates",
    "data_schema_digest",
    "data_schema_fields",
    "data_schema_of",
    "decode_data",
    "decode_records",
    "encode_data",
    "encode_records",
    "fetch_data_sets",
    "find_data_set",
    "folds",
    "is_table_file",
    "is_text_schema",
    "load_adult",
    "load_cities",
    "load_countries",
    "load_data",
    "load_data_schema",
    "load_ratings",
    "load_records",
    "load_schema",
    "load_table",
    "load_texts",
    "read_cached",
    "read_schema",
    "schema_fields",
    "schema_of",
    "schema_path",
    "text_schema_fields",
    "text_schema_of",
]
