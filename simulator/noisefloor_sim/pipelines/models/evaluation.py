"""How good the releases are: on records that the data holder never had."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from noisefloor.publication.networks import Training, train
from noisefloor.publication.published_model import PublishedModel
from noisefloor.publication.scores import Scores, scores
from noisefloor.randomness import SeededSource
from noisefloor_sim.pipelines.base import Metric
from noisefloor_sim.pipelines.clicks.games import share_metric
from noisefloor_sim.pipelines.models.held import Holdings
from noisefloor_sim.pipelines.models.holder import Release

_PLAIN = Training(hidden=(16,), learning_rate=0.1, epochs=20)
"""Of the network without privacy that stands beside: chosen once, on synthetic records."""


@dataclass(frozen=True, slots=True, eq=False)
class Test:
    """The records that are kept back."""

    holdings: Holdings

    def score(self, model: PublishedModel) -> Scores:
        """Ask a model about all of them."""
        records = self.holdings.records[self.holdings.is_test]
        examples = model.encoding.examples(records)
        return scores(model.told(examples.features), examples.labels, examples.classes)

    def baselines(self, last: Release, source: SeededSource) -> list[Metric]:
        """Tell what a network without privacy reaches, and naming the most frequent class."""
        encoding, records = self.holdings.encoding, self.holdings.records
        mine, theirs = (
            encoding.examples(records[some]) for some in (last.owners, self.holdings.is_test)
        )
        network = train(mine, _PLAIN, source)
        reached = scores(network.tell(theirs.features), theirs.labels, theirs.classes)
        common = np.bincount(mine.labels, minlength=mine.classes).argmax()
        majority = scores(np.full(len(theirs), common), theirs.labels, theirs.classes)
        return [
            _accuracy("open", reached),
            Metric("f1.open", reached.macro_f1, n=reached.n),
            _accuracy("majority", majority),
            Metric("f1.majority", majority.macro_f1, n=majority.n),
        ]


def accuracy_metrics(
    releases: Sequence[Release],
    models: Sequence[PublishedModel],
    holdings: Holdings,
    source: SeededSource,
) -> list[Metric]:
    """Tell accuracy and macro F1 of every release, and of the last one beside its baselines."""
    test = Test(holdings)
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


def _accuracy(name: str, reached: Scores) -> Metric:
    """Return an accuracy with its 95 % interval over the people who are asked about."""
    return share_metric(f"accuracy.{name}", round(reached.accuracy * reached.n), reached.n)
