"""How good the releases are, on texts that the data holder never had; and how sure they are."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.publication.fine_tuning import TextModel, TextModelFile
from noisefloor.tables import TextRecords
from noisefloor_sim.pipelines.api import Metric
from noisefloor_sim.pipelines.finetuning.plain_head import PENALTY, fit_plain_head, head_logits
from noisefloor_sim.pipelines.finetuning.text_assignment import FrozenTexts, UserTexts
from noisefloor_sim.pipelines.releases import accuracy_metric, label_log_odds

Logits = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class TextEvaluation:
    """Published files on their encoder, asked about texts.

    Attributes:
        texts: Of all users.
        frozen: What the frozen encoder made of them.
    """

    texts: UserTexts
    frozen: FrozenTexts

    def logits(self, content: bytes, records: TextRecords) -> Logits:
        """Return what a published file says of some texts, as a recipient would run it."""
        with self.frozen.used():
            columns = {name: list(column) for name, column in records.texts.items()}
            model = TextModel.on(TextModelFile.read(content), self.frozen.backbone)
            return model.logits(columns).astype(np.float64)

    def log_odds(self, content: bytes, records: TextRecords) -> Logits:
        """Return ln p / (1 - p) of the true label of each text."""
        return label_log_odds(self.logits(content, records), records.labels)

    def metrics(self, contents: Sequence[bytes], owners: NDArray[np.bool_]) -> list[Metric]:
        """Return the accuracy of every release, and of the last one beside its baselines.

        Args:
            contents: The files, in their order.
            owners: Whose texts the last one was made from.
        """
        test = self.texts.records[self.texts.is_test]
        right = [self.logits(one, test).argmax(axis=1) == test.labels for one in contents]
        metrics = [accuracy_metric("last", right[-1]), *self._baselines(owners, test)]
        return metrics + [
            accuracy_metric(f"release_{number}", one) for number, one in enumerate(right)
        ]

    def _baselines(self, owners: NDArray[np.bool_], test: TextRecords) -> list[Metric]:
        """Return what a head without privacy reaches, and naming the most frequent class."""
        own = self.texts.records[owners]
        classes = own.schema.classes.size
        head = fit_plain_head(self.frozen.features(own), own.labels, classes, PENALTY)
        named = head_logits(self.frozen.features(test), head).argmax(axis=1)
        common = np.bincount(own.labels, minlength=classes).argmax()
        return [
            accuracy_metric("open", named == test.labels),
            accuracy_metric("majority", test.labels == common),
        ]
