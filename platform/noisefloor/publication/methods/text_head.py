"""A classifier of texts by a private linear head on the frozen layers of a pretrained encoder."""

from dataclasses import dataclass, replace
from typing import Any

from noisefloor.accounting import ReleaseLoss
from noisefloor.privacy import Guarantee
from noisefloor.publication import fine_tuning
from noisefloor.publication.fine_tuning import Backbone, HeadSettings, TextModelFile
from noisefloor.publication.methods.gradient_canaries import GradientCanary
from noisefloor.publication.methods.model_spec import ParameterReader
from noisefloor.publication.methods.text_plan import (
    TextPlan,
    TextSpec,
    text_model_bytes,
    text_model_fields,
)
from noisefloor.publication.noised_vectors import ResidualObserver
from noisefloor.publication.private_sgd import SgdPlan
from noisefloor.publication.release_run import NO_RUN, ReleaseRun
from noisefloor.randomness import Source
from noisefloor.tables import TextRecords

MOST_STEPS = 2000
_DEFAULTS = HeadSettings()


@dataclass(frozen=True, slots=True)
class TextHeadPlan(TextPlan):
    """A linear head by DP-SGD on features of frozen layers; the guarantee is ``SgdPlan``'s.

    Attributes:
        spec: The request.
        backbone: The pretrained encoder of this publisher; it is public.
        pooled: Layers whose means are the features.
        sgd: What the training does.
        guarantee: Of all weights of all steps together.
    """

    NAME = "text-head"
    HELP = f"""A classifier of texts: a linear head by private SGD on the frozen layers of a
pretrained encoder, as safetensors. Parameters: `pooled_layers`, the layers whose means over pieces
are the features (default the last three: `4,5,6`); `steps` (default {_DEFAULTS.steps}, at most
{MOST_STEPS}); `batch`, records a step on average (default all); `clip`, the norm of one record's
gradient (default {_DEFAULTS.clip:g}); `learning_rate` (default {_DEFAULTS.learning_rate:g});
`averaging`, the share of last steps whose weights are averaged (default {_DEFAULTS.averaging:g});
`size`, the number of records, declared in public: needed where the relation is record-add-remove.
The cost needs a delta."""

    spec: TextSpec
    backbone: Backbone
    pooled: tuple[int, ...]
    sgd: SgdPlan
    guarantee: Guarantee

    @classmethod
    def of(cls, spec: TextSpec) -> "TextHeadPlan":
        """Plan a training with the least noise that keeps to the cost."""
        names = ("pooled_layers", "steps", "batch", "clip", "learning_rate", "averaging")
        reader = ParameterReader(spec.parameters, names)
        spec.check_delta()
        size = spec.declared_size
        settings = replace(
            _DEFAULTS,
            steps=reader.whole("steps", _DEFAULTS.steps, 1, MOST_STEPS),
            clip=reader.number("clip", _DEFAULTS.clip, 1e-3, 1e3),
            learning_rate=reader.number("learning_rate", _DEFAULTS.learning_rate, 1e-6, 1e3),
            averaging=reader.number("averaging", _DEFAULTS.averaging, 0.0, 1.0),
        )
        batch = reader.whole("batch", size, 1, size)
        backbone = fine_tuning.shared_backbone()
        fine_tuning.longest_row(backbone, spec.schema)
        last = tuple(range(max(1, backbone.depth - 2), backbone.depth + 1))
        pooled = fine_tuning.check_pooled(backbone, reader.layers("pooled_layers", last))
        width = backbone.width * len(pooled)
        classes = spec.schema.classes.size
        fine_tuning.check_release_bytes({"head.weight": (classes, width), "head.bias": (classes,)})
        sgd = settings.plan(spec.cost, size, batch)
        return cls(spec, backbone, pooled, sgd, sgd.guarantee(spec.cost.delta))

    @property
    def proved(self) -> Guarantee:
        """Of all weights of all steps together."""
        return self.guarantee

    @property
    def loss(self) -> ReleaseLoss:
        """The noise of every step."""
        return ReleaseLoss(tuple(self.sgd.events))

    @property
    def canary(self) -> GradientCanary:
        """A gradient of the largest norm, at every step."""
        return GradientCanary(self.sgd)

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
        progress = run.counted("frozen layers", tokens.count)
        features = fine_tuning.run_frozen(
            self.backbone, tokens, self.pooled, progress=progress
        ).pooled
        scaling = fine_tuning.public_scaling(self.backbone, self.pooled)
        weight, bias = fine_tuning.train_head(
            scaling.scaled(features),
            records.labels,
            records.schema.classes.size,
            self.sgd,
            source.child("training"),
            residuals=residuals,
        )
        return text_model_bytes(
            records.schema, self.backbone, self.pooled, scaling.folded(weight, bias)
        )

    def describe(self, content: bytes) -> dict[str, Any]:  # Any: JSON
        """Return what a card says beside the guarantee: from the plan and the file alone."""
        scaled_by = fine_tuning.public_scaling(self.backbone, self.pooled).source
        return text_model_fields(
            TextModelFile.read(content),
            self.backbone,
            "a linear head on the mean over pieces of layers of a frozen pretrained encoder",
            {**self.sgd.as_json(), "features_scaled_by": scaled_by},
        )
