"""A network without any noise: what attacks are tried on first, and what privacy is paid from.

Nothing is proved of it, so that a publisher refuses it outside of experiments.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from noisefloor.privacy import Guarantee, TrustModel
from noisefloor.publication.methods import noisy_networks
from noisefloor.publication.methods.model_plan import FLOATS_WITHOUT_NOISE, ModelPlan
from noisefloor.publication.methods.model_spec import ModelSpec, ParameterReader
from noisefloor.publication.networks import NetworkTraining, train
from noisefloor.publication.noised_vectors import ResidualObserver
from noisefloor.randomness import Source
from noisefloor.tables import Records

_TRAINING = ("hidden", "epochs", "batch", "learning_rate", "decay")


@dataclass(frozen=True, slots=True)
class PlainPlan(ModelPlan):
    """A plain network; nothing is proved of it.

    Attributes:
        spec: What was requested.
        training: How it is trained.
    """

    NAME = "plain"
    HELP = "A network without noise, for comparison."

    FLOATS = FLOATS_WITHOUT_NOISE

    spec: ModelSpec
    training: NetworkTraining

    @classmethod
    def of(cls, spec: ModelSpec) -> "PlainPlan":
        """Plan a training without noise."""
        parameters = ParameterReader(spec.parameters, _TRAINING)
        return cls(
            spec, noisy_networks.read_training(parameters, spec, hidden="16", epochs=20, rate=0.5)
        )

    @property
    def proved(self) -> Guarantee:
        """Nothing."""
        relation = self.spec.cost.neighbours
        return Guarantee.none("there is no noise in the model", relation, TrustModel.CENTRAL)

    @property
    def settings(self) -> Mapping[str, Any]:  # Any: JSON
        """How it is trained, with defaults filled in."""
        return noisy_networks.training_fields(self.training)

    def release(
        self, records: Records, source: Source, residuals: ResidualObserver | None = None
    ) -> bytes:
        """Return the file that is published; there is no noise to be observed."""
        examples = self.spec.encoding.examples(records)
        network = train(examples, self.training, source.child("training"))
        return noisy_networks.network_file(self.spec.encoding, network)
