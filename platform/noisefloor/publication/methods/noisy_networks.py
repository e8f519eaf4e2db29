"""Networks with noise in their parameters, or in the increments of their training."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from noisefloor.errors import BadParameter
from noisefloor.privacy import Claim, Guarantee, Neighbours, TrustModel
from noisefloor.publication import networks
from noisefloor.publication.methods import model_plan
from noisefloor.publication.methods.canaries import IncrementCanary, ParameterCanary
from noisefloor.publication.methods.model_spec import ModelSpec, ParameterReader
from noisefloor.publication.networks import IncrementForm as IncrementForm
from noisefloor.publication.networks import ParameterForm as ParameterForm
from noisefloor.publication.networks import train as train_plain
from noisefloor.publication.noised_vectors import ResidualObserver
from noisefloor.publication.published_model import PublishedModel
from noisefloor.randomness import Source
from noisefloor.tables import OneHot, Records

CORRECTED, CLAMPED, PAPER = "corrected", "clamped", "paper"
VARIANTS = (CORRECTED, CLAMPED, PAPER)
MOST_EPOCHS = 500
MOST_COORDINATES = 256
"""How many coordinates a canary of the paper's noise moves; more only take longer."""

_TRAINING = ("hidden", "epochs", "batch", "learning_rate", "decay")
_VARIANT_HELP = f"""`variant`: `corrected` (the default: noise for the whole model), `clamped` (the
paper's noise on what was clamped before: `parameter_epsilon` for each parameter, proved to cost as
many times that as there are parameters) or `paper` (as printed: nothing is proved, so that it is
refused). What is proved has to be paid for, whatever was claimed. Training: `hidden`, `epochs` (at
most {MOST_EPOCHS}), `batch`, `learning_rate`, `decay`. The relation is record-substitute."""
_ONLY = "batches and thresholds are proved for a record that becomes another"

_LEARNING_FORMS: Mapping[str, ParameterForm] = {
    CORRECTED: "corrected",
    CLAMPED: "clamped",
    PAPER: "printed",
}
_INCREMENT_FORMS: Mapping[str, IncrementForm] = {
    CORRECTED: "norm",
    CLAMPED: "clipped",
    PAPER: "printed",
}


def read_training(
    reader: ParameterReader, spec: ModelSpec, *, hidden: str, epochs: int, rate: float
) -> networks.NetworkTraining:
    """Read how a network is trained; what is left out is set to these."""
    batch = reader.whole("batch", 50, 1, 1 << 16)
    return networks.NetworkTraining(
        hidden=reader.widths("hidden", hidden, spec.encoding),
        epochs=reader.whole("epochs", epochs, 1, MOST_EPOCHS),
        batch=batch,
        learning_rate=reader.number("learning_rate", rate, 1e-6, 10.0),
        decay=reader.number("decay", 0.001, 0.0, 1.0),
    )


def training_fields(training: networks.NetworkTraining) -> dict[str, Any]:  # Any: JSON
    """Write how a network is trained."""
    return {
        "hidden": list(training.hidden),
        "epochs": training.epochs,
        "batch": training.batch,
        "learning_rate": training.learning_rate,
        "decay": training.decay,
    }


def network_file(encoding: OneHot, network: networks.DenseNetwork) -> bytes:
    """Return the file of a network; the last row of a block are its biases."""
    layers = tuple((block[:-1].copy(), block[-1].copy()) for block in network.blocks)
    return PublishedModel(encoding, layers).written()


def _nominal(reader: ParameterReader, spec: ModelSpec, variant: str) -> float:
    """Return the epsilon that the noise is made for: the model's, or that of each parameter."""
    if variant == CORRECTED:
        if "parameter_epsilon" in reader:
            rule = (
                "left out: the corrected noise is for the whole model, whose epsilon is the cost's"
            )
            raise BadParameter("parameter_epsilon", "<number>", rule)
        return spec.cost.epsilon
    return reader.number("parameter_epsilon", spec.cost.epsilon, 1e-9, 1e6)


def _claims(
    spec: ModelSpec, nominal: float, one: Guarantee, whole: Guarantee
) -> tuple[model_plan.ReleaseClaim, ...]:
    said = Guarantee(nominal, spec.cost.neighbours, model=TrustModel.CENTRAL)
    return (
        model_plan.ReleaseClaim(model_plan.WHOLE_MODEL, Claim(spec.cost, whole)),
        model_plan.ReleaseClaim(
            model_plan.ONE_PARAMETER, Claim(said, one), model_plan.ONE_PARAMETER_NOTE
        ),
    )


@dataclass(frozen=True, slots=True)
class LearningFirstPlan(model_plan.ModelPlan):
    """A network that is trained without noise, and then gets noise in every parameter.

    Attributes:
        spec: The request.
        variant: ``corrected``, ``clamped`` or ``paper``.
        training: How it is trained.
        learning: The noise.
    """

    NAME = "learning-first"
    HELP = f"""A network that is trained first and then gets Laplace noise in every parameter, as
safetensors. Parameters: `label`; `bound`, the threshold of every parameter (default 1);
{_VARIANT_HELP}"""

    FLOATS = model_plan.INTEGER_NOISE

    spec: ModelSpec
    variant: str
    training: networks.NetworkTraining
    learning: networks.LearningFirst

    @classmethod
    def of(cls, spec: ModelSpec) -> "LearningFirstPlan":
        """Plan a release in one of its variants."""
        spec.check_relation(Neighbours.RECORD_SUBSTITUTE, why=_ONLY)
        reader = ParameterReader(
            spec.parameters, ("variant", "parameter_epsilon", "bound", *_TRAINING)
        )
        variant = reader.choice("variant", CORRECTED, *VARIANTS)
        training = read_training(reader, spec, hidden="64,64,64", epochs=10, rate=0.05)
        shape = training.shape(spec.encoding.width, spec.encoding.classes)
        learning = networks.LearningFirst(
            _nominal(reader, spec, variant),
            shape.count,
            _LEARNING_FORMS[variant],
            reader.number("bound", 1.0, 1e-3, 1e3),
        )
        return cls(spec, variant, training, learning)

    @property
    def proved(self) -> Guarantee:
        """Of all parameters together."""
        return self.learning.guarantee

    @property
    def claims(self) -> tuple[model_plan.ReleaseClaim, ...]:
        """Of the whole model, and of one parameter."""
        return _claims(
            self.spec,
            self.learning.epsilon,
            self.learning.parameter_guarantee,
            self.learning.guarantee,
        )

    @property
    def settings(self) -> Mapping[str, Any]:  # Any: JSON
        """How it is trained, with defaults filled in."""
        noise = {"law": "discrete Laplace on each parameter", "scale": self.learning.scale}
        return {
            "variant": self.variant,
            **training_fields(self.training),
            "bound": self.learning.bound,
            "noise": noise,
        }

    @property
    def canary(self) -> ParameterCanary:
        """A record that moves every parameter over its whole range."""
        return ParameterCanary(self.learning)

    def release(
        self, records: Records, source: Source, residuals: ResidualObserver | None = None
    ) -> bytes:
        """Return the file that is published; each call is a release of its own."""
        examples = self.spec.encoding.examples(records)
        training_source = source.child("training")
        # Unchecked: that a release failed would be seen, and this network is not noised yet.
        clean = train_plain(examples, self.training, training_source, is_checked=False)
        noisy = self.learning.release(clean, source.child("release"), residuals)
        return network_file(self.spec.encoding, noisy)


@dataclass(frozen=True, slots=True)
class AnonymisedLearningPlan(model_plan.ModelPlan):
    """A network whose training adds noise to the increments of every batch.

    Attributes:
        spec: The request.
        variant: ``corrected``, ``clamped`` or ``paper``.
        learning: Training and noise.
    """

    NAME = "anonymised-learning"
    HELP = f"""A network that is trained with Laplace noise in the increments of every batch, as
safetensors. Parameters: `label`; `norm`, the L1 norm that one record's increment is clipped to
(corrected; default 1); `threshold`, how far one may reach (the others; default 1); `clamps`,
whether noisy sums are clamped (default true); {_VARIANT_HELP}"""

    FLOATS = model_plan.FLOAT_NOISE

    spec: ModelSpec
    variant: str
    learning: networks.AnonymisedLearning

    @classmethod
    def of(cls, spec: ModelSpec) -> "AnonymisedLearningPlan":
        """Plan a release in one of its variants."""
        spec.check_relation(Neighbours.RECORD_SUBSTITUTE, why=_ONLY)
        known = ("variant", "parameter_epsilon", "norm", "threshold", "clamps", *_TRAINING)
        reader = ParameterReader(spec.parameters, known)
        variant = reader.choice("variant", CORRECTED, *VARIANTS)
        learning = networks.AnonymisedLearning(
            _nominal(reader, spec, variant),
            read_training(reader, spec, hidden="64,64,64", epochs=10, rate=0.05),
            form=_INCREMENT_FORMS[variant],
            threshold=reader.number("threshold", 1.0, 1e-6, 1e6),
            norm=reader.number("norm", 1.0, 1e-6, 1e6),
            clamps=reader.flag("clamps", default=True),
        )
        return cls(spec, variant, learning)

    @property
    def count(self) -> int:
        """How many parameters the network has."""
        encoding = self.spec.encoding
        return self.learning.training.shape(encoding.width, encoding.classes).count

    @property
    def proved(self) -> Guarantee:
        """Of all parameters of all steps together."""
        return self.learning.guarantee(self.count)

    @property
    def claims(self) -> tuple[model_plan.ReleaseClaim, ...]:
        """Of the whole model; and of one parameter, which follows from all of the step before."""
        return _claims(self.spec, self.learning.epsilon, self.proved, self.proved)

    @property
    def settings(self) -> Mapping[str, Any]:  # Any: JSON
        """How it is trained, with defaults filled in."""
        learning = self.learning
        reach = (
            {"norm": learning.norm}
            if self.variant == CORRECTED
            else {"threshold": learning.threshold}
        )
        return {
            "variant": self.variant,
            **training_fields(learning.training),
            **reach,
            "clamps": learning.clamps,
            "noise": {"law": "Laplace on each increment of a batch, of single floats"},
        }

    @property
    def canary(self) -> IncrementCanary:
        """An increment of the largest size, once in every epoch."""
        epochs = self.learning.training.epochs
        count = 1 if self.variant == CORRECTED else min(self.count, MOST_COORDINATES)
        return IncrementCanary(self.learning.epsilon / epochs, epochs, count)

    def release(
        self, records: Records, source: Source, residuals: ResidualObserver | None = None
    ) -> bytes:
        """Return the file that is published; each call is a release of its own."""
        examples = self.spec.encoding.examples(records)
        network = self.learning.train(examples, source.child("training"), residuals)
        return network_file(self.spec.encoding, network)
