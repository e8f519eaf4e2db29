"""What every way to publish a classifier of texts has in common; tables have ``model_plan``."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import ReleaseLoss
from noisefloor.errors import BadParameter
from noisefloor.privacy import Claim, Guarantee
from noisefloor.publication.fine_tuning import Backbone, TextModelFile
from noisefloor.publication.methods.model_plan import (
    FLOAT_NOISE,
    WHOLE_CORPUS,
    WHOLE_MODEL,
    Canary,
    ReleaseClaim,
)
from noisefloor.publication.methods.model_spec import Parameter, PublicTerms, pop_size
from noisefloor.publication.noised_vectors import ResidualObserver
from noisefloor.publication.release_run import NO_RUN, ReleaseRun
from noisefloor.publication.tensors import MEDIA_TYPE
from noisefloor.randomness import Source
from noisefloor.tables import TextRecords, TextSchema


@dataclass(frozen=True, slots=True)
class TextSpec(PublicTerms):
    """A classifier that somebody wants of labelled texts; nothing in it looks at records.

    Attributes:
        schema: What is public of the texts.
        cost: What the release may cost, and under which relation.
        size: How many records there are, if that is public; see ``ModelSpec``.
        parameters: What the method has to know beside that.
    """

    schema: TextSchema
    cost: Guarantee
    size: int | None = None
    parameters: Mapping[str, Parameter] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.check_terms()
        object.__setattr__(self, "parameters", MappingProxyType(dict(self.parameters)))

    def check_records(self, records: TextRecords) -> None:
        """Raise BadParameter unless records have the schema that was planned for."""
        if records.schema != self.schema:
            raise BadParameter("records", "<schema>", "of the schema that was planned for")

    @classmethod
    def read(
        cls,
        schema: TextSchema,
        cost: Guarantee,
        parameters: Mapping[str, Parameter],
        size: int | None = None,
    ) -> "TextSpec":
        """Read ``label`` and ``size`` of some parameters; the others are left to the method."""
        rest = dict(parameters)
        if rest.pop("label", schema.label) != schema.label:
            raise BadParameter("label", "<text>", f"{schema.label}, as the schema says")
        return cls(schema, cost, pop_size(rest, size), rest)


class TextPlan(ABC):
    """A release of texts that is fixed before any of them is looked at; see ``ModelPlan``."""

    NAME: ClassVar[str]
    HELP: ClassVar[str]
    """For authors of requests: the parameters, and the output."""
    MEDIA_TYPE: ClassVar[str] = MEDIA_TYPE
    """Of the file that is published."""

    spec: TextSpec
    """The request."""

    @classmethod
    @abstractmethod
    def of(cls, spec: TextSpec) -> "TextPlan":
        """Plan a release, or refuse it: BadParameter, BadBackbone, MissingData, MissingExtra."""

    @property
    @abstractmethod
    def proved(self) -> Guarantee:
        """What is proved of all that is released together; this is what has to be paid for."""

    @property
    @abstractmethod
    def loss(self) -> ReleaseLoss:
        """What is known of the loss of all that is released."""

    @property
    def claims(self) -> tuple[ReleaseClaim, ...]:
        """What is claimed and what is proved of the whole."""
        about = WHOLE_MODEL if self.MEDIA_TYPE == MEDIA_TYPE else WHOLE_CORPUS
        return (ReleaseClaim(about, Claim(self.spec.cost, self.proved)),)

    @property
    @abstractmethod
    def canary(self) -> Canary | None:
        """The game that audits the plan, or None where there is none."""

    @property
    def audited(self) -> "TextPlan":
        """The plan that the canary is about."""
        return self

    @property
    def floats(self) -> str:
        """What floats leave open of this release, in words for the card."""
        return FLOAT_NOISE

    def check_run(self, run: ReleaseRun) -> None:  # noqa: B027  most plans keep no checkpoints
        """Refuse a checkpoint that the release cannot go on from: BadSnapshot."""

    @abstractmethod
    def release(
        self,
        records: TextRecords,
        source: Source,
        residuals: ResidualObserver | None = None,
        run: ReleaseRun = NO_RUN,
    ) -> bytes:
        """Return the file that is published; each call is a release of its own.

        Args:
            records: What it is made of.
            source: Of all random numbers.
            residuals: For simulations alone; see ``ModelPlan``.
            run: Where progress is shown and checkpoints are kept.
        """

    @abstractmethod
    def describe(self, content: bytes) -> dict[str, Any]:  # Any: JSON
        """Return what a card says beside the guarantee: from the plan and the file alone."""


def text_model_bytes(
    schema: TextSchema,
    backbone: Backbone,
    pooled: tuple[int, ...],
    tensors: Mapping[str, NDArray[np.float32]],
) -> bytes:
    """Return the file of a text classifier, with the hashes of what it was trained on."""
    return TextModelFile(
        schema=schema,
        pooled=pooled,
        backbone_sha256=backbone.weights_sha256,
        tokeniser_sha256=backbone.tokeniser_sha256,
        tensors=dict(tensors),
    ).written()


def text_model_fields(
    file: TextModelFile, backbone: Backbone, architecture: str, training: Mapping[str, Any]
) -> dict[str, Any]:  # Any: JSON
    """Return what the card of a text classifier says of its file and its backbone.

    Args:
        file: What is published.
        backbone: It was trained on.
        architecture: What the model is, in words.
        training: How it was trained.
    """
    return {
        "format": "safetensors",
        "record": file.schema.record,
        "label": file.schema.label,
        "learnt_from": list(file.schema.texts),
        "architecture": architecture,
        "trained": list(file.trained),
        "parameter_count": file.parameters,
        "backbone": {
            "name": backbone.folder.name,
            "weights_sha256": file.backbone_sha256,
            "tokeniser_sha256": file.tokeniser_sha256,
            "pooled_layers": list(file.pooled),
            "changed_on_loading": list(backbone.notes),
        },
        "training": dict(training),
    }
