"""A classifier of texts by private training of an encoder's top layers, or of adapters on them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from noisefloor.accounting import ReleaseLoss
from noisefloor.errors import BadSnapshot
from noisefloor.privacy import Guarantee
from noisefloor.publication import fine_tuning
from noisefloor.publication.fine_tuning import Backbone, TextModelFile, methods
from noisefloor.publication.methods.gradient_canaries import (
    ComposedCanary,
    FullBatchCanary,
    GradientCanary,
)
from noisefloor.publication.methods.model_plan import FLOAT_NOISE, FLOATS_WITHOUT_NOISE, Canary
from noisefloor.publication.methods.model_spec import ParameterReader
from noisefloor.publication.methods.text_layer_settings import (
    HELP,
    NAMES,
    LayerTraining,
    plan_layers,
)
from noisefloor.publication.methods.text_plan import (
    TextPlan,
    TextSpec,
    text_model_bytes,
    text_model_fields,
)
from noisefloor.publication.noised_vectors import ResidualObserver
from noisefloor.publication.private_sgd import SgdPlan
from noisefloor.publication.release_run import NO_RUN, ReleaseRun
from noisefloor.randomness import SecureSource, Source
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
        shapes = methods.EncoderShapes.of(backbone, layers, pooled, classes=classes)
        training = plan_layers(reader, spec, shapes)
        plan = cls(spec, backbone, pooled, layers, training, training.proved)
        methods.check_module(training, plan.module(), longest, SecureSource())
        return plan

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
        if isinstance(self.training, methods.HeadThenAdaptersPlan):
            return self.training.parts
        return {} if self.training.sgd is None else {"step": self.training.sgd}

    @property
    def canary(self) -> Canary | None:
        """A gradient of the largest norm in every group, at every step; None without noise."""
        parts = tuple(GradientCanary(sgd) for sgd in self.noisy_parts.values())
        if len(parts) < 2:
            return parts[0] if parts else None
        is_full = all(part.plan.is_full_batch for part in parts)
        return FullBatchCanary(parts) if is_full else ComposedCanary(parts)

    @property
    def floats(self) -> str:
        """What floats leave open of this release, in words for the card."""
        return FLOAT_NOISE if self.noisy_parts else FLOATS_WITHOUT_NOISE

    @property
    def release_size(self) -> int:
        """The most bytes that the published file takes."""
        return methods.last_training(self.training).release_size

    def module(self) -> "TopLayers":
        """Return the layers and the head as they are before the training."""
        return fine_tuning.TopLayers(
            self.backbone,
            self.train_layers,
            self.pooled,
            fine_tuning.public_scaling(self.backbone, self.pooled),
            classes=self.spec.schema.classes.size,
        )

    @property
    def made_on(self) -> str:
        """What a checkpoint has to be of, beside the plan."""
        return f"{self.backbone.weights_sha256} {self.backbone.tokeniser_sha256} {self.pooled}"

    def check_run(self, run: ReleaseRun) -> None:
        """Refuse a checkpoint of another plan or another backbone: BadSnapshot."""
        kept = run.kept()
        if run.checkpoints is None or kept is None:
            return
        try:
            methods.check_checkpoint(methods.last_training(self.training), kept, self.made_on)
        except BadSnapshot:
            raise BadSnapshot(
                f"{run.checkpoints.where}: is a checkpoint of another plan or backbone. Take that "
                "one again, or remove the file: the training then starts anew, on the same charge."
            ) from None

    def release(
        self,
        records: TextRecords,
        source: Source,
        residuals: ResidualObserver | None = None,
        run: ReleaseRun = NO_RUN,
    ) -> bytes:
        """Return the file that is published; each call is a release of its own."""
        self.spec.check_records(records)
        tokens = fine_tuning.tokenise(self.backbone, records.schema, records.texts, "records")
        states = fine_tuning.run_frozen(
            self.backbone,
            tokens,
            self.pooled,
            train_layers=self.train_layers,
            progress=run.counted("frozen layers", tokens.count),
        )
        tensors = methods.train_planned(
            self.training,
            self.module(),
            states,
            records.labels,
            source.child("training"),
            residuals=residuals,
            run=run,
            made_on=self.made_on,
        )
        return text_model_bytes(records.schema, self.backbone, self.pooled, tensors)

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
