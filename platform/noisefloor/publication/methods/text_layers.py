"""A classifier of texts by private training of an encoder's top layers, or of adapters on them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from noisefloor.accounting import ReleaseLoss
from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee
from noisefloor.publication import fine_tuning
from noisefloor.publication.fine_tuning import Backbone, TextModelFile
from noisefloor.publication.fine_tuning.methods import EncoderShapes, HeadThenAdaptersPlan
from noisefloor.publication.methods.gradient_canaries import ComposedCanary, GradientCanary
from noisefloor.publication.methods.model_plan import FLOAT_NOISE, FLOATS_WITHOUT_NOISE
from noisefloor.publication.methods.model_spec import ParameterReader
from noisefloor.publication.methods.text_layer_settings import (
    HELP,
    NAMES,
    LayerTraining,
    plan_layers,
)
from noisefloor.publication.methods.text_plan import TextPlan, TextSpec, text_model_fields
from noisefloor.publication.noised_vectors import ResidualObserver
from noisefloor.publication.private_sgd import SgdPlan
from noisefloor.randomness import Source
from noisefloor.tables import TextRecords

if TYPE_CHECKING:
    from noisefloor.publication.fine_tuning import TopLayers

_LAYERS = "train_layers"


@dataclass(frozen=True, slots=True)
class TextLayersPlan(TextPlan):
    """Top layers and a head, trained by one of ``fine_tuning.methods``; see its plans.

    Clipping ``printed`` proves less than it claims, and of ``plain`` nothing is proved: a
    publisher refuses both outside of experiments, where the ledger is charged what is claimed.

    Attributes:
        spec: The request.
        backbone: The pretrained encoder of this publisher; it is public.
        pooled: Layers whose means are the features of the head.
        train_layers: Top layers that are trained, or that adapters are put on.
        training: What is done, and what is proved of it.
        guarantee: Of all weights of all steps together.
    """

    NAME = "text-layers"
    HELP = f"""A classifier of texts: top layers of a pretrained encoder, or adapters on them, and
a linear head by private SGD, as safetensors. Parameters: `{_LAYERS}`, how many (default 1);
`pooled_layers`, the layers whose means over pieces are the features of the head (default the
last three); {HELP} `size`, the number of records, declared in public: needed where the relation is
record-add-remove. Names of groups are those of the trained module: `head`, and `layers.0` for the
lowest trained layer. The cost needs a delta."""

    spec: TextSpec
    backbone: Backbone
    pooled: tuple[int, ...]
    train_layers: int
    training: LayerTraining
    guarantee: Guarantee

    @classmethod
    def of(cls, spec: TextSpec) -> "TextLayersPlan":
        """Plan a training with the least noise that keeps to the cost."""
        reader = ParameterReader(spec.parameters, (_LAYERS, "pooled_layers", *NAMES))
        spec.check_delta()
        size = spec.declared_size
        backbone = fine_tuning.shared_backbone()
        layers = reader.whole(_LAYERS, 1, 1, backbone.depth)
        last = tuple(range(max(1, backbone.depth - 2), backbone.depth + 1))
        pooled = fine_tuning.check_pooled(backbone, reader.layers("pooled_layers", last))
        longest = fine_tuning.longest_row(backbone, spec.schema)
        fine_tuning.check_states_bytes(backbone, size, longest)
        classes = spec.schema.classes.size
        shapes = EncoderShapes.of(backbone, layers, pooled, classes=classes)
        training = plan_layers(reader, spec, shapes)
        return cls(spec, backbone, pooled, layers, training, training.proved)

    @property
    def proved(self) -> Guarantee:
        """Of all weights of all steps together."""
        return self.guarantee

    @property
    def loss(self) -> ReleaseLoss:
        """The noise of every step."""
        return self.training.loss

    @property
    def noisy_parts(self) -> Mapping[str, SgdPlan]:
        """The trainings that add noise, by the names of the vectors that observers are handed."""
        if isinstance(self.training, HeadThenAdaptersPlan):
            return self.training.parts
        return {} if self.training.sgd is None else {"step": self.training.sgd}

    @property
    def canary(self) -> GradientCanary | ComposedCanary | None:
        """A gradient of the largest norm in every group, at every step; None without noise."""
        parts = tuple(GradientCanary(sgd) for sgd in self.noisy_parts.values())
        if len(parts) > 1:
            return ComposedCanary(parts)
        return parts[0] if parts else None

    @property
    def floats(self) -> str:
        """What floats leave open of this release, in words for the card."""
        return FLOAT_NOISE if self.noisy_parts else FLOATS_WITHOUT_NOISE

    @property
    def release_size(self) -> int:
        """The most bytes that the published file takes."""
        last = self.training
        return (last.adapters if isinstance(last, HeadThenAdaptersPlan) else last).release_size

    def module(self) -> "TopLayers":
        """Return the layers and the head as they are before the training."""
        return fine_tuning.TopLayers(
            self.backbone,
            self.train_layers,
            self.pooled,
            fine_tuning.public_scaling(self.backbone, self.pooled),
            classes=self.spec.schema.classes.size,
        )

    def release(
        self, records: TextRecords, source: Source, residuals: ResidualObserver | None = None
    ) -> bytes:
        """Return the file that is published; each call is a release of its own."""
        from noisefloor.publication.fine_tuning.methods import train_planned

        if records.schema != self.spec.schema:
            raise BadParameter("records", "<schema>", "of the schema that was planned for")
        tokens = fine_tuning.tokenise(self.backbone, records.schema, records.texts, "records")
        states = fine_tuning.run_frozen(
            self.backbone, tokens, self.pooled, train_layers=self.train_layers
        )
        tensors = train_planned(
            self.training,
            self.module(),
            states,
            records.labels,
            source.child("training"),
            residuals=residuals,
        )
        return TextModelFile(
            schema=records.schema,
            pooled=self.pooled,
            backbone_sha256=self.backbone.weights_sha256,
            tokeniser_sha256=self.backbone.tokeniser_sha256,
            tensors=tensors,
        ).written()

    def describe(self, content: bytes) -> dict[str, Any]:  # Any: JSON
        """Return what a card says beside the guarantee: from the plan and the file alone."""
        scaled_by = fine_tuning.public_scaling(self.backbone, self.pooled).source
        return text_model_fields(
            TextModelFile.read(content),
            self.backbone,
            f"{self.training.in_words}, and a linear head on the mean over pieces of layers of "
            "the encoder",
            {**self.training.as_json(), "features_scaled_by": scaled_by},
        )
