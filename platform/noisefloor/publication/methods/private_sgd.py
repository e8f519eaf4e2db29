"""A network by private SGD: clipped, noisy gradients of Poisson samples."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from noisefloor.accounting import ReleaseLoss
from noisefloor.checks import check_extra
from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee
from noisefloor.publication.methods.gradient_canaries import GradientCanary
from noisefloor.publication.methods.model_plan import FLOAT_NOISE, ModelPlan
from noisefloor.publication.methods.model_spec import ModelSpec, ParameterReader
from noisefloor.publication.noised_vectors import ResidualObserver
from noisefloor.publication.private_sgd import Flat, SgdPlan
from noisefloor.publication.published_model import Layer, PublishedModel
from noisefloor.randomness import Source
from noisefloor.tables import Records

if TYPE_CHECKING:
    from torch import nn

MOST_EPOCHS = 200
MOST_STEPS = 20_000


@dataclass(frozen=True, slots=True)
class PrivateSgdPlan(ModelPlan):
    """A network by DP-SGD; the guarantee is ``SgdPlan``'s.

    Attributes:
        spec: The request.
        hidden: Widths of the hidden layers.
        sgd: What the training does.
        guarantee: Of all weights of all steps together.
    """

    NAME = "private-sgd"
    HELP = f"""A classifier by private SGD, as safetensors. Parameters: `label`, the column that is
predicted; `hidden`, widths with commas between them or `none` (default 32); `epochs` (default 20,
at most {MOST_EPOCHS}); `batch`, records a step on average (default 2048, at most `size`);
`clip`, the norm of one record's gradient (default 1); `learning_rate` (default 0.02);
`averaging`, the share of last steps whose weights are averaged (default 0.5); `size`, the number
of records, declared in public: needed where the relation is record-add-remove. The cost needs a
delta."""

    FLOATS = FLOAT_NOISE

    spec: ModelSpec
    hidden: tuple[int, ...]
    sgd: SgdPlan
    guarantee: Guarantee

    @classmethod
    def of(cls, spec: ModelSpec) -> "PrivateSgdPlan":
        """Plan a training with the least noise that keeps to the cost."""
        reader = ParameterReader(
            spec.parameters,
            ("hidden", "epochs", "batch", "clip", "learning_rate", "averaging"),
        )
        check_extra(cls.NAME, "models", "torch")
        spec.check_delta()
        hidden = reader.widths("hidden", "32", spec.encoding)
        size = spec.declared_size
        batch = reader.whole("batch", min(2048, size), 1, size)
        epochs = reader.number("epochs", 20.0, 0.01, MOST_EPOCHS)
        if epochs * size / batch > MOST_STEPS:
            raise BadParameter("batch", batch, f"so large that at most {MOST_STEPS} steps come")
        sgd = SgdPlan.for_budget(
            spec.cost,
            examples=size,
            expected_batch=batch,
            epochs=epochs,
            clipping=Flat(reader.number("clip", 1.0, 1e-3, 1e3)),
            learning_rate=reader.number("learning_rate", 0.02, 1e-6, 10.0),
            averaging=reader.number("averaging", 0.5, 0.0, 1.0),
        )
        return cls(spec, hidden, sgd, sgd.guarantee(spec.cost.delta))

    @property
    def proved(self) -> Guarantee:
        """Of all weights of all steps together."""
        return self.guarantee

    @property
    def loss(self) -> ReleaseLoss:
        """The noise of every step."""
        return ReleaseLoss(tuple(self.sgd.events))

    @property
    def settings(self) -> Mapping[str, Any]:  # Any: JSON
        """How it is trained, with defaults filled in."""
        return {"hidden": list(self.hidden), **self.sgd.as_json()}

    @property
    def canary(self) -> GradientCanary:
        """A gradient of the largest norm, at every step."""
        return GradientCanary(self.sgd)

    def release(
        self, records: Records, source: Source, residuals: ResidualObserver | None = None
    ) -> bytes:
        """Return the file that is published; each call is a release of its own."""
        from noisefloor.publication.private_sgd import initialise, train

        encoding = self.spec.encoding
        examples = encoding.examples(records)
        module = _module((encoding.width, *self.hidden, encoding.classes))
        initialise(module, source.child("weights"))
        labels = examples.labels.copy()  # torch takes no array that it may not write to
        training_source = source.child("training")
        train(module, examples.features, labels, self.sgd, training_source, residuals=residuals)
        return PublishedModel(encoding, _layers(module)).written()


def _module(widths: tuple[int, ...]) -> "nn.Sequential":
    from torch import nn

    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def _layers(module: "nn.Sequential") -> tuple[Layer, ...]:
    from torch import nn

    return tuple(
        (one.weight.detach().numpy().T.copy(), one.bias.detach().numpy().copy())
        for one in module
        if isinstance(one, nn.Linear)
    )
