"""How good the releases are: on records that the data holder never had.

What anybody makes of a published file: a classifier, and how sure it is of a record's label.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor import publication
from noisefloor.publication.methods import ModelPlan, SyntheticTablePlan, network_file
from noisefloor.publication.networks import NetworkTraining, train
from noisefloor.randomness import SeededSource, Source
from noisefloor.tables import Examples, OneHot, Records, schema_of
from noisefloor_sim.pipelines.api import Metric
from noisefloor_sim.pipelines.models.record_assignment import UserRecordAssignment
from noisefloor_sim.pipelines.releases import Release, label_log_odds
from noisefloor_sim.pipelines.scoring import proportion_metric

_TRAINING = NetworkTraining(hidden=(), learning_rate=0.5, epochs=5)
"""How a recipient learns from a synthetic table: it costs no privacy."""


def model_of(method: str, content: bytes, source: Source) -> publication.PublishedModel:
    """Return the model in a file, or train one on the synthetic records in it.

    Args:
        method: By which it was published.
        content: The file.
        source: Of the recipient's own training, which needs no secret.
    """
    if method != SyntheticTablePlan.NAME:
        return publication.PublishedModel.read(content)
    encoding, rows, labels = table_of(content)
    examples = Examples(encoding.features(rows), labels, encoding.classes)
    network = train(examples, _TRAINING, source)
    return publication.PublishedModel.read(network_file(encoding, network))


def table_of(content: bytes) -> tuple[OneHot, NDArray[np.int64], NDArray[np.int64]]:
    """Return the synthetic records of a file: encoding, a row of places each, and labels."""
    about = json.loads(publication.read_metadata(content)["noisefloor"])
    tensors = publication.read_tensors(content)
    encoding = OneHot(schema_of(about["schema"]), about["label"])
    codes = {name: tensors[f"rows/{name}"].astype(np.int64) for name in encoding.schema.columns}
    return (
        encoding,
        np.column_stack([codes[name] for name in encoding.columns]),
        codes[encoding.label],
    )


def log_odds(model: publication.PublishedModel, records: Records) -> NDArray[np.float64]:
    """Return ln p / (1 - p) of the true label of each record."""
    examples = model.encoding.examples(records)
    logits = model.logits(examples.features).astype(np.float64)
    return label_log_odds(logits, examples.labels)


_PLAIN = NetworkTraining(hidden=(16,), learning_rate=0.1, epochs=20)
"""Of the network without privacy that stands beside: chosen once, on synthetic records."""


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutEvaluation:
    """The records that are kept back."""

    assignment: UserRecordAssignment

    def score(self, model: publication.PublishedModel) -> publication.ClassificationScores:
        """Ask a model about all of them."""
        records = self.assignment.records[self.assignment.is_test]
        examples = model.encoding.examples(records)
        return publication.classification_scores(
            model.predict_classes(examples.features), examples.labels, examples.classes
        )

    def baselines(self, last: Release[ModelPlan], source: SeededSource) -> list[Metric]:
        """Tell what a network without privacy reaches, and naming the most frequent class."""
        encoding, records = self.assignment.encoding, self.assignment.records
        mine, theirs = (
            encoding.examples(records[some]) for some in (last.owners, self.assignment.is_test)
        )
        network = train(mine, _PLAIN, source)
        reached = publication.classification_scores(
            network.predict_classes(theirs.features), theirs.labels, theirs.classes
        )
        common = np.bincount(mine.labels, minlength=mine.classes).argmax()
        majority = publication.classification_scores(
            np.full(len(theirs), common), theirs.labels, theirs.classes
        )
        return [
            _accuracy("open", reached),
            Metric("f1.open", reached.macro_f1, n=reached.n),
            _accuracy("majority", majority),
            Metric("f1.majority", majority.macro_f1, n=majority.n),
        ]


def accuracy_metrics(
    releases: Sequence[Release[ModelPlan]],
    models: Sequence[publication.PublishedModel],
    assignment: UserRecordAssignment,
    source: SeededSource,
) -> list[Metric]:
    """Tell accuracy and macro F1 of every release, and of the last one beside its baselines."""
    test = HeldOutEvaluation(assignment)
    found = [test.score(model) for model in models]
    metrics = [
        _accuracy("last", found[-1]),
        Metric("f1.last", found[-1].macro_f1, n=found[-1].n),
        *test.baselines(releases[-1], source),
    ]
    for number, reached in enumerate(found):
        metrics += [
            _accuracy(f"release_{number}", reached),
            Metric(f"f1.release_{number}", reached.macro_f1, n=reached.n),
        ]
    return metrics


def _accuracy(name: str, reached: publication.ClassificationScores) -> Metric:
    """Return an accuracy with its 95 % interval over the people who are asked about."""
    return proportion_metric(f"accuracy.{name}", round(reached.accuracy * reached.n), reached.n)
