"""Publication: what may be released of a table of records, with its noise and its proof.

``schema`` says in public what a column may hold, ``records`` reads a table strictly by it,
``histogram`` counts with exact integer noise (``cell_noise``), ``model_methods`` are the ways to
publish a classifier, ``published_model`` is what comes of them, ``tensors`` writes and reads the
files that are published. Which methods a publisher has is listed in ``noisefloor.roles.methods``.
"""

from noisefloor.publication.cell_noise import CellNoise, GaussianCells, LaplaceCells
from noisefloor.publication.histogram import Histogram
from noisefloor.publication.published_model import PublishedModel, load_model
from noisefloor.publication.records import Records, load_records, schema_path
from noisefloor.publication.schema import Bins, Categories, Column, Schema, read_schema
from noisefloor.publication.tensors import load, read_tensors, write_tensors

__all__ = [
    "Bins",
    "Categories",
    "CellNoise",
    "Column",
    "GaussianCells",
    "Histogram",
    "LaplaceCells",
    "PublishedModel",
    "Records",
    "Schema",
    "load",
    "load_model",
    "load_records",
    "read_schema",
    "read_tensors",
    "schema_path",
    "write_tensors",
]
