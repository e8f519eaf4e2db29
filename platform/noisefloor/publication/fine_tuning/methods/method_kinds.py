"""The ways to fine-tune an encoder, by name: what is trained, and what is left out of it.

    full          DP-SGD on all weights of the trained layers
    sparse        the same, without a share p of the entries of each matrix: the smallest ones of
                  the public weights, for good
    rgp           matrices carried by factors of rank k that power iteration makes of what was
                  released so far (Yu, Zhang, Chen, Liu 2021, arXiv 2106.09352)
    lora          W + L R with W frozen; L starts at zero (Hu and others 2021, arXiv 2106.09685)
    ffa-lora      the same with R frozen (Sun, Li, Li, Ding 2024, arXiv 2403.12313)
    bias-only     biases alone (Bu, Wang, Zha, Karypis 2022, arXiv 2210.00036)
    head          the head alone
    combined-rgp  rgp without a share p of rows of L and of columns of R, those of the least
    combined-lora important units of the released weights, chosen anew before each step
    plain         all weights, without privacy: for experiments

A head is trained with each. Vectors (biases, normalisations) are frozen but for ``full``,
``sparse``, ``plain`` and ``bias-only``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

from noisefloor.errors import BadParameter

Trained: TypeAlias = Literal["weights", "carried", "factors", "left-factors", "biases", "head"]
"""What of the layers is trained: everything, matrices by carriers, adapters, biases, nothing."""

Masked: TypeAlias = Literal["nothing", "entries", "units"]


@dataclass(frozen=True, slots=True)
class FineTuningMethod:
    """One way to fine-tune.

    Attributes:
        name: As settings name it.
        trained: What of the layers is trained.
        masked: What is left out: entries for good, or units that are chosen anew each step.
        is_private: Whether gradients are clipped and noised.
    """

    name: str
    trained: Trained
    masked: Masked = "nothing"
    is_private: bool = True

    @property
    def has_rank(self) -> bool:
        """Whether it has factors."""
        return self.trained in ("carried", "factors", "left-factors")

    @property
    def has_adapters(self) -> bool:
        """Whether factors are added to frozen matrices, and are published instead of these."""
        return self.trained in ("factors", "left-factors")

    @property
    def renews_masks(self) -> bool:
        """Whether masks follow the released weights."""
        return self.masked == "units"


METHODS: Mapping[str, FineTuningMethod] = MappingProxyType(
    {
        one.name: one
        for one in (
            FineTuningMethod("full", "weights"),
            FineTuningMethod("sparse", "weights", "entries"),
            FineTuningMethod("rgp", "carried"),
            FineTuningMethod("lora", "factors"),
            FineTuningMethod("ffa-lora", "left-factors"),
            FineTuningMethod("bias-only", "biases"),
            FineTuningMethod("head", "head"),
            FineTuningMethod("combined-rgp", "carried", "units"),
            FineTuningMethod("combined-lora", "factors", "units"),
            FineTuningMethod("plain", "weights", is_private=False),
        )
    }
)


def find_method(name: str) -> FineTuningMethod:
    """Return a method by its name.

    Raises:
        BadParameter: There is none of that name.
    """
    if name not in METHODS:
        raise BadParameter("method", "<text>", f"one of {', '.join(METHODS)}")
    return METHODS[name]
