"""Logistic regression by full-batch noisy gradient steps."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from noisefloor.accounting import ReleaseLoss
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.publication.logistic_regression import LogisticPlan
from noisefloor.publication.methods.gradient_canaries import NormalCanary
from noisefloor.publication.methods.model_plan import FLOAT_NOISE, ModelPlan
from noisefloor.publication.methods.model_spec import ModelSpec, ParameterReader
from noisefloor.publication.noised_vectors import ResidualObserver
from noisefloor.publication.published_model import Floats, Layer, PublishedModel
from noisefloor.randomness import Source
from noisefloor.tables import Records

MOST_STEPS = 1000


@dataclass(frozen=True, slots=True)
class LogisticMethodPlan(ModelPlan):
    """A linear classifier; the guarantee is ``LogisticPlan``'s.

    Attributes:
        spec: The request.
        plan: What the fit does.
        guarantee: Of the sums of features and of all steps together.
    """

    NAME = "logistic"
    HELP = f"""A linear classifier by full-batch noisy gradient steps, as safetensors. Parameters:
`label`, the column that is predicted; `steps` (default 100, at most {MOST_STEPS}); `clip`, the
norm of one record's gradient (default 1); `size`, the number of records, declared in public:
needed where the relation is record-add-remove. The cost needs a delta."""

    FLOATS = FLOAT_NOISE

    spec: ModelSpec
    plan: LogisticPlan
    guarantee: Guarantee

    @classmethod
    def of(cls, spec: ModelSpec) -> "LogisticMethodPlan":
        """Plan a fit with the least noise that keeps to the cost."""
        reader = ParameterReader(spec.parameters, ("steps", "clip"))
        spec.check_delta()
        encoding = spec.encoding
        plan = LogisticPlan.for_budget(
            spec.cost,
            width=encoding.width,
            classes=encoding.classes,
            size=spec.declared_size,
            # A row has a one for each column.
            length=math.sqrt(len(encoding.columns)),
            steps=reader.whole("steps", 100, 1, MOST_STEPS),
            clip=reader.number("clip", 1.0, 1e-3, 1e3),
        )
        return cls(spec, plan, plan.guarantee)

    @property
    def proved(self) -> Guarantee:
        """Of the sums of features and of all steps together."""
        return self.guarantee

    @property
    def loss(self) -> ReleaseLoss:
        """The noise of the sums of features and of every step."""
        return ReleaseLoss((self.plan.event,))

    @property
    def settings(self) -> Mapping[str, Any]:  # Any: JSON
        """How it is trained, with defaults filled in."""
        sums, step = self.plan.multipliers
        return {
            "size": self.plan.size,
            "steps": self.plan.steps,
            "clip": self.plan.clip,
            "learning_rate": self.plan.rate,
            "noise_multiplier_of_sums": sums,
            "noise_multiplier_of_steps": step,
        }

    @property
    def canary(self) -> NormalCanary:
        """A row and a gradient of the largest length, in every release.

        Features are never negative: two rows lie at most the root of two of a length apart, and
        not two lengths as gradients do.
        """
        sums, step = self.plan.multipliers
        relation = self.spec.cost.neighbours
        if relation is Neighbours.RECORD_SUBSTITUTE:
            sums *= math.sqrt(2)
        return NormalCanary((sums, *[step] * self.plan.steps), relation)

    def release(
        self, records: Records, source: Source, residuals: ResidualObserver | None = None
    ) -> bytes:
        """Return the file that is published; each call is a release of its own."""
        encoding = self.spec.encoding
        examples = encoding.examples(records)
        model = self.plan.fit(examples, source.child("training"), residuals)
        return PublishedModel(encoding, (_layer(model.weights, model.bias),)).written()


def _layer(weights: Floats, bias: Floats) -> Layer:
    """Return a column for each class; of two classes the first has the log-odds 0."""
    if weights.shape[1] == 1:
        weights = np.concatenate([np.zeros_like(weights), weights], axis=1)
        bias = np.concatenate([np.zeros_like(bias), bias])
    return weights.astype(np.float32), bias.astype(np.float32)
