"""What anybody makes of a published file: a classifier, and how sure it is of a record's label."""

import json

import numpy as np
from numpy.typing import NDArray

from noisefloor.publication.examples import Examples, OneHot
from noisefloor.publication.model_methods.anonymising_first import SyntheticTablePlan
from noisefloor.publication.model_methods.noisy_networks import published
from noisefloor.publication.networks import Training, train
from noisefloor.publication.published_model import PublishedModel
from noisefloor.publication.records import Records
from noisefloor.publication.schema import schema_of
from noisefloor.publication.tensors import read_metadata, read_tensors
from noisefloor.randomness import Source

_TRAINING = Training(hidden=(), learning_rate=0.5, epochs=5)
"""How a recipient learns from a synthetic table: it is free, whoever does it."""


def model_of(method: str, content: bytes, source: Source) -> PublishedModel:
    """Return the model in a file, or train one on the synthetic records in it.

    Args:
        method: By which it was published.
        content: The file.
        source: Of the recipient's own training, which needs no secret.
    """
    if method != SyntheticTablePlan.NAME:
        return PublishedModel.read(content)
    encoding, rows, labels = table_of(content)
    examples = Examples(encoding.features(rows), labels, encoding.classes)
    network = train(examples, _TRAINING, source)
    return PublishedModel.read(published(encoding, network))


def table_of(content: bytes) -> tuple[OneHot, NDArray[np.int64], NDArray[np.int64]]:
    """Return the synthetic records of a file: encoding, a row of places each, and labels."""
    about = json.loads(read_metadata(content)["noisefloor"])
    tensors = read_tensors(content)
    encoding = OneHot(schema_of(about["schema"]), about["label"])
    codes = {name: tensors[f"rows/{name}"].astype(np.int64) for name in encoding.schema.columns}
    return (
        encoding,
        np.column_stack([codes[name] for name in encoding.columns]),
        codes[encoding.label],
    )


def log_odds(model: PublishedModel, records: Records) -> NDArray[np.float64]:
    """Return ln p / (1 - p) of the true label of each record."""
    examples = model.encoding.examples(records)
    logits = model.logits(examples.features).astype(np.float64)
    rows = np.arange(len(examples))
    true = logits[rows, examples.labels].copy()
    logits[rows, examples.labels] = -np.inf
    return np.asarray(true - np.logaddexp.reduce(logits, axis=1))
