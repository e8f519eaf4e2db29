"""A network without any noise: what attacks are tried on first, and what privacy is paid from."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from noisefloor.privacy import Guarantee, Model
from noisefloor.publication.model_methods import ModelPlan, Told, Wanted
from noisefloor.publication.model_methods.noisy_networks import (
    published,
    training_fields,
    training_of,
)
from noisefloor.publication.networks import Training, train
from noisefloor.publication.records import Records
from noisefloor.randomness import Source

_TRAINING = ("hidden", "epochs", "batch", "learning_rate", "decay")


@dataclass(frozen=True, slots=True)
class PlainPlan(ModelPlan):
    """A plain network; nothing is proved of it.

    Attributes:
        wanted: What was asked for.
        training: How it is trained.
    """

    NAME = "plain"
    HELP = "A network without noise, for comparison."

    wanted: Wanted
    training: Training

    @classmethod
    def of(cls, wanted: Wanted) -> "PlainPlan":
        """Plan a training without noise."""
        told = Told(wanted.parameters, _TRAINING)
        return cls(wanted, training_of(told, wanted, hidden="16", epochs=20, rate=0.5))

    @property
    def proved(self) -> Guarantee:
        """Nothing."""
        relation = self.wanted.cost.neighbours
        return Guarantee.none("there is no noise in the model", relation, Model.CENTRAL)

    @property
    def settings(self) -> Mapping[str, Any]:  # Any: JSON
        """How it is trained, with defaults filled in."""
        return training_fields(self.training)

    def release(self, records: Records, source: Source) -> bytes:
        """Return the file that is published."""
        examples = self.wanted.encoding.examples(records)
        network = train(examples, self.training, source.child("training"))
        return published(self.wanted.encoding, network)
