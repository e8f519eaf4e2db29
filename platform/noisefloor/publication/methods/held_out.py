"""A model with an accuracy that is paid for: a part of the records is held out, and counted on.

Each record is held out by a random bit of its own, so that one record more or less, or another in
its place, changes nothing about the part that the others are in. The model is made of the rest.
Then the held-out records that it predicts right, and those that it predicts wrong, are counted,
and both numbers are released with exact integer noise: a histogram of two cells.

Guarantee:  the sum of the model's and of the two cells'. Given all bits a record is in one of both
            parts, so that the larger of the two would do; the sum is what the ledger's filter
            counts, and is never too small.
Neighbours: those of the model.
Reference:  Dwork and Roth 2014, section 3.3 (histograms) and 3.5 (composition).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from noisefloor.accounting import ReleaseLoss, sequential
from noisefloor.distributions import ONE
from noisefloor.errors import BadParameter
from noisefloor.privacy import Claim, Guarantee
from noisefloor.publication.cell_noise import LaplaceCells
from noisefloor.publication.methods.model_plan import WHOLE_MODEL, Canary, ModelPlan, ReleaseClaim
from noisefloor.publication.methods.model_spec import ModelSpec, ParameterReader
from noisefloor.publication.noised_vectors import ResidualObserver
from noisefloor.publication.published_model import PublishedModel
from noisefloor.randomness import Source
from noisefloor.tables import Records

ACCURACY = "accuracy_epsilon"
SHARE = "held_out"
HELP = f"""With `{ACCURACY}`, a part of the cost's epsilon, the card states the model's accuracy on
records that it was not trained on: `{SHARE}` is their share (default 0.2)."""

_CONFIDENCE = 0.95
_LEAST_EPSILON = 1e-3
_ROUNDING = 1e-12
"""Taken off the model's epsilon, so that the sum of both is not above the cost by rounding."""


def plan_release(kind: type[ModelPlan], spec: ModelSpec) -> ModelPlan:
    """Plan a release, with an accuracy if the request pays for one; no records are looked at."""
    if ACCURACY not in spec.parameters:
        return kind.of(spec)
    names = (ACCURACY, SHARE)
    rest = {name: value for name, value in spec.parameters.items() if name not in names}
    own = {name: value for name, value in spec.parameters.items() if name in names}
    if not kind.IS_CLASSIFIER:
        raise BadParameter(ACCURACY, "<number>", f"left out: {kind.NAME} publishes no classifier")
    reader = ParameterReader(own, names)
    epsilon = reader.number(ACCURACY, 0.0, _LEAST_EPSILON, math.inf)
    share = reader.number(SHARE, 0.2, 0.01, 0.5)
    left = (spec.cost.epsilon - epsilon) * (1 - _ROUNDING)
    if left <= 0:
        rule = "below the epsilon of the cost, which pays for the model as well"
        raise BadParameter(ACCURACY, epsilon, rule)
    size = None if spec.size is None else max(1, round(spec.size * (1 - share)))
    inner = replace(spec, cost=replace(spec.cost, epsilon=left), size=size, parameters=rest)
    return HeldOutPlan(spec, kind.of(inner), LaplaceCells(epsilon, spec.cost.neighbours), share)


@dataclass(frozen=True, slots=True)
class HeldOutPlan(ModelPlan):
    """A plan for some of the records, and noisy counts on the others.

    Attributes:
        spec: The request.
        inner: The plan of the model.
        noise: Of the two counts.
        share: The probability of a record to be held out.
    """

    NAME = "held-out"
    HELP = HELP
    FLOATS = ""

    spec: ModelSpec
    inner: ModelPlan
    noise: LaplaceCells
    share: float

    @classmethod
    def of(cls, spec: ModelSpec) -> "ModelPlan":
        """Refuse: a plan of the model is needed, see ``plan_release``."""
        raise BadParameter("method", cls.NAME, "planned by plan_release")

    @property
    def proved(self) -> Guarantee:
        """Of the model and of both counts together."""
        return sequential([self.inner.proved, self.noise.guarantee])

    @property
    def loss(self) -> ReleaseLoss:
        """That of the model, and that of the counts."""
        model, counts = self.inner.loss, self.noise.loss
        return ReleaseLoss(
            (*model.events, *counts.events),
            epsilon=math.nextafter(model.epsilon + counts.epsilon, math.inf),
            delta=model.delta + counts.delta,
            variation=model.variation + counts.variation,
        )

    @property
    def claims(self) -> tuple[ReleaseClaim, ...]:
        """Of the whole, of the parts that the method names, and of the accuracy."""
        measured = self.noise.guarantee
        claimed = replace(measured, epsilon=self.noise.epsilon)
        return (
            ReleaseClaim(WHOLE_MODEL, Claim(self.spec.cost, self.proved)),
            *(one for one in self.inner.claims if one.about != WHOLE_MODEL),
            ReleaseClaim("accuracy", Claim(claimed, measured)),
        )

    @property
    def settings(self) -> Mapping[str, Any]:  # Any: JSON
        """Those of the model."""
        return self.inner.settings

    @property
    def canary(self) -> Canary | None:
        """The game that audits the model's noise."""
        return self.inner.canary

    @property
    def audited(self) -> ModelPlan:
        """The plan of the model: its noise is what the games are about."""
        return self.inner

    @property
    def floats(self) -> str:
        """What floats leave open of the model; the counts are integers."""
        return f"{self.inner.floats} Of the accuracy nothing: its counts are integers."

    def release(
        self, records: Records, source: Source, residuals: ResidualObserver | None = None
    ) -> bytes:
        """Return the file that is published; each call is a release of its own."""
        held_out = source.stage("held-out").bernoulli(int(self.share * ONE), records.count)
        content = self.inner.release(records[~held_out], source.child("model"), residuals)
        model = PublishedModel.read(content)
        counts = right_and_wrong(model, records[held_out])
        right, wrong = self.noise.add(counts, source.child("accuracy")).tolist()
        return replace(model, held_out=(right, wrong)).written()

    def describe(self, content: bytes) -> dict[str, Any]:  # Any: JSON
        """Return what a card says: of the model, and the accuracy that the file states."""
        counts = PublishedModel.read(content).held_out
        assert counts is not None  # noqa: S101  the file is our own release
        accuracy = accuracy_fields(*counts, float(self.noise.mechanism.noise.rate))
        return {
            **self.inner.describe(content),
            "accuracy": {
                **accuracy,
                "held_out_share": self.share,
                "cost": {"epsilon": self.noise.guarantee.epsilon, "delta": 0.0},
            },
        }


def right_and_wrong(model: PublishedModel, records: Records) -> "np.ndarray[Any, Any]":
    """Return how many records a model predicts right, and how many wrong: one cell for each."""
    examples = model.encoding.examples(records)
    right = int(np.count_nonzero(model.predict_classes(examples.features) == examples.labels))
    return np.array([right, len(examples) - right], dtype=np.int64)


def accuracy_fields(right: int, wrong: int, rate: float) -> dict[str, Any]:  # Any: JSON
    """Write an accuracy with its interval, from two noisy counts alone.

    Half of the error goes to the noise (P(|noise| > reach) <= error / 4 for each count), half to
    the sample: the interval of Clopper and Pearson for the worst counts within reach.

    Args:
        right: Noisy count of records that were predicted right.
        wrong: Likewise, wrong.
        rate: Of the discrete Laplace noise: P(k) proportional to exp(-rate |k|).
    """
    from scipy.special import betaincinv  # lazy: most programs publish no accuracy

    error = 1 - _CONFIDENCE
    # P(|k| > t) = 2 exp(-rate (t + 1)) / (1 + exp(-rate)).
    reach = math.ceil(math.log(8 / error / (1 + math.exp(-rate))) / rate) - 1
    least, most = (max(0, right + by) for by in (-reach, reach))
    fewest, more = (max(0, wrong + by) for by in (-reach, reach))
    low = float(betaincinv(least, more + 1, error / 4)) if least else 0.0
    high = float(betaincinv(most + 1, fewest, 1 - error / 4)) if fewest else 1.0
    total = right + wrong
    estimate = min(1.0, max(0.0, right / total)) if total > 0 else None
    return {
        "about": "share of right predictions on records that the model was not trained on",
        "estimate": estimate,
        "interval": [low, high],
        "confidence": _CONFIDENCE,
        "noisy_right": right,
        "noisy_wrong": wrong,
        "noise_within": reach,
    }
