"""What every way to publish a classifier has in common: planned in public, released once."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import ReleaseLoss, SampledGaussian
from noisefloor.checks import Floats
from noisefloor.privacy import Claim, Guarantee, LowerBound, Neighbours
from noisefloor.publication.methods.model_spec import ModelSpec
from noisefloor.publication.noised_vectors import ResidualObserver
from noisefloor.publication.published_model import PublishedModel
from noisefloor.randomness import Source
from noisefloor.tables import Records

WHOLE_MODEL = "whole model"
WHOLE_CORPUS = "whole corpus"
ONE_PARAMETER = "one parameter"
ONE_PARAMETER_NOTE = (
    "It is about one parameter, looked at alone. It is not the model's: whoever fetches the model "
    "gets all parameters, and one record may move all of them."
)

INTEGER_NOISE = (
    "Nothing: the noise is of integers, drawn by exact integer weights, and the guarantee is "
    "computed from these weights."
)
FLOAT_NOISE = (
    "The noise is of floating-point numbers. The proof is of real numbers: which of the finest "
    "digits occur may depend on the data, and nothing is proved of them. Every number is finite, "
    "and the published weights are rounded to single precision."
)
FLOATS_WITHOUT_NOISE = "Everything: there is no noise."

LogRatios = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ReleaseClaim:
    """What is claimed and proved of a release, or of a part of it.

    Attributes:
        about: ``whole model``, ``whole corpus`` or ``one parameter``.
        claim: Claimed and proved.
        note: What has to be said with it.
    """

    about: str
    claim: Claim
    note: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether it is about all that is released."""
        return self.about in (WHOLE_MODEL, WHOLE_CORPUS)


class Canary(Protocol):
    """Two neighbouring inputs that a plan's noise has to hide, and a game about them.

    It needs no records: everything else that a release depends on is known to the adversary, so
    it cancels out, and what is left is what one record changes and the noise upon it.
    """

    @property
    def text(self) -> str:
        """What the two inputs are, and what the adversary sees."""

    @property
    def work(self) -> int:
        """How much one game on one input takes, in random numbers or so."""

    def scores(self, games: int, source: Source) -> tuple[LogRatios, LogRatios]:
        """Play ``games`` games on each of two inputs: log-likelihood ratios of first to second.

        The noise is drawn by the same routines as that of a release.
        """

    def with_noise(self, share: float) -> "Canary":
        """Return the same two inputs under a share of the noise: a fault to be planted."""


@runtime_checkable
class GaussianCanary(Canary, Protocol):
    """A canary under Gaussian noise: what many of them do together is known in closed form."""

    @property
    def event(self) -> SampledGaussian:
        """The noise of all that is released, over what one canary moves."""

    @property
    def neighbours(self) -> Neighbours:
        """Whether a canary comes or goes, or becomes another."""

    def group_work(self, records: int) -> int:
        """Roughly how many random numbers one game with this number of canaries draws."""

    def group_sums(self, records: int, games: int, source: Source) -> tuple[Floats, Floats]:
        """Play games with many canaries at once in one step, on each input.

        Sampling and noise are drawn by the same routines as those of a release. Returned are
        noisy sums, over what one canary moves.
        """


@dataclass(frozen=True, slots=True)
class CurveTest:
    """How games of a group of records compare with the trade-off curve of the declared noise.

    Attributes:
        records: In the group.
        games: On each input.
        true_rate: Share of games with the group that passed the threshold.
        false_rate: Share of games without it, or with the others, that did.
        allowed: The largest true rate that the declared noise has at this false one.
        noise_at_most: Of the declared noise: all from here on are refuted; infinity for none.
    """

    records: int
    games: int
    true_rate: float
    false_rate: float
    allowed: float
    noise_at_most: float


@dataclass(frozen=True, slots=True)
class CanaryBounds:
    """What the games of a canary showed, and what the same games show of two known cases.

    Attributes:
        audited: On the noise of the plan.
        null: On one input twice: anything above 0 is a false alarm.
        planted: On noise that is too small, with as many games.
        planted_share: Of the plan's noise, in the planted fault.
        games: On each input, those that only chose a threshold included.
        curve: The test against a trade-off curve, where the noise is Gaussian.
    """

    audited: LowerBound
    null: LowerBound
    planted: LowerBound
    planted_share: float
    games: int
    curve: CurveTest | None = None


class ModelPlan(ABC):
    """A release that is fixed before any record is looked at.

    ``ModelPlan.of`` reads a request; what it refuses costs nothing. A plan is used once for
    each charge: ``release`` draws anew at each call.
    """

    NAME: ClassVar[str]
    HELP: ClassVar[str]
    """For authors of requests: the parameters, and the output."""

    FLOATS: ClassVar[str]
    """What the floating-point numbers of its noise leave open, in words for the card."""

    IS_CLASSIFIER: ClassVar[bool] = True
    """Whether the file is a model that predicts."""

    spec: ModelSpec
    """The request."""

    @classmethod
    @abstractmethod
    def of(cls, spec: ModelSpec) -> "ModelPlan":
        """Plan a release, or raise BadParameter that names parameter and rule."""

    @property
    @abstractmethod
    def proved(self) -> Guarantee:
        """What is proved of all that is released together; this is what has to be paid for."""

    @property
    def loss(self) -> ReleaseLoss:
        """What is known of the loss of all that is released; more than ``proved`` where it is."""
        return ReleaseLoss.of(self.proved)

    @property
    def claims(self) -> tuple[ReleaseClaim, ...]:
        """What is claimed and what is proved: of the whole, and of parts that a method names."""
        return (ReleaseClaim(WHOLE_MODEL, Claim(self.spec.cost, self.proved)),)

    @property
    @abstractmethod
    def settings(self) -> Mapping[str, Any]:  # Any: JSON
        """How it is trained, with defaults filled in; follows from what was requested."""

    @property
    def canary(self) -> Canary | None:
        """The game that audits the plan, or None where there is none."""
        return None

    @property
    def audited(self) -> "ModelPlan":
        """The plan that the canary is about: this one, unless more is released beside it."""
        return self

    @property
    def floats(self) -> str:
        """What floats leave open of this release, in words for the card."""
        return self.FLOATS

    @abstractmethod
    def release(
        self, records: Records, source: Source, residuals: ResidualObserver | None = None
    ) -> bytes:
        """Return the file that is published; each call is a release of its own.

        Args:
            records: What it is made of.
            source: Of all random numbers.
            residuals: Gets what noise was added to. For simulations alone: no guarantee covers
                it, and a publisher of real records has none.
        """

    def describe(self, content: bytes) -> dict[str, Any]:  # Any: JSON
        """Return what a card says beside the guarantee: from the plan and the file alone."""
        model = PublishedModel.read(content)
        widths = [model.encoding.width, *(len(biases) for _, biases in model.layers)]
        return {
            "format": "safetensors",
            "record": model.encoding.schema.record,
            "label": model.encoding.label,
            "learnt_from": list(model.encoding.columns),
            "architecture": "dense layers, ReLU between them, one-hot inputs, a figure per class",
            "widths": widths,
            "parameter_count": model.parameters,
            "training": dict(self.settings),
        }
