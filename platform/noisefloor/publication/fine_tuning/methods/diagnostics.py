"""Diagnostics of low rank and sparsity: for experiments alone, on request.

Clip factors and gradients are those of private examples and were not noised: no guarantee covers
them. Every function here refuses to run unless the caller says that this is an experiment.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from noisefloor.errors import BadParameter
from noisefloor.publication.fine_tuning.methods.adapters import adapters_of
from noisefloor.publication.fine_tuning.methods.method_masks import mask_rule
from noisefloor.publication.fine_tuning.methods.method_plan import FineTuningPlan
from noisefloor.publication.fine_tuning.methods.method_training import Inputs
from noisefloor.publication.private_sgd import (
    Kept,
    KeptUnits,
    MaskRule,
    clip_factors,
    example_gradients,
)
from noisefloor.randomness import Source

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class ClipFactorPair:
    """What gradients of some examples are multiplied by, [examples, groups of clipping].

    Attributes:
        unmasked: With all coordinates in the norm.
        masked: Without those that masks leave out.
    """

    unmasked: Floats
    masked: Floats

    @property
    def clipped(self) -> tuple[int, int]:
        """How many examples are clipped, without and with masks."""
        return tuple(int((one < 1).any(axis=1).sum()) for one in (self.unmasked, self.masked))  # type: ignore[return-value]  # two of them


def compare_clip_factors(
    plan: FineTuningPlan,
    module: nn.Module,
    inputs: Inputs,
    labels: Tensor,
    source: Source,
    *,
    is_experiment: bool = False,
) -> ClipFactorPair:
    """Return the clip factors of examples with and without masks, as the module is now.

    Args:
        plan: Of a private method.
        module: Made ready for it.
        inputs: Of a few examples.
        labels: Of the same.
        source: Draws carriers, the same for both.
        is_experiment: Has to be said: these are about private examples.
    """
    _check(is_experiment)

    def factors(masks: MaskRule | None, place: str) -> Floats:
        step = source.child("factors", place)
        found = clip_factors(module, inputs, labels, plan.private, step, masks=masks)
        return np.asarray(found.double().numpy())

    return ClipFactorPair(factors(None, "all"), factors(mask_rule(plan, module), "kept"))


@dataclass(slots=True)
class MaskLog:
    """A rule of masks that keeps what it said; hand it to a run as ``masks``.

    Attributes:
        rule: The rule itself.
        kept: What was trained, at each call.
    """

    rule: MaskRule
    kept: list[Mapping[str, Kept]] = field(default_factory=list)

    def __call__(self, weights: Mapping[str, Tensor]) -> Mapping[str, Kept]:
        """Ask the rule, and keep its answer."""
        self.kept.append(self.rule(weights))
        return self.kept[-1]

    def overlaps(self, *, is_experiment: bool = False) -> list[dict[str, float]]:
        """Return Jaccard's overlap of what is left out at successive calls, by parameter.

        1 where the same units are left out, or none are.
        """
        _check(is_experiment)
        return [
            {name: _jaccard(before[name], after[name]) for name in after}
            for before, after in zip(self.kept, self.kept[1:], strict=False)
        ]


def _jaccard(before: Kept, after: Kept) -> float:
    one, other = _left_out(before), _left_out(after)
    union = int((one | other).sum())
    return int((one & other).sum()) / union if union else 1.0


def _left_out(kept: Kept) -> Tensor:
    if not isinstance(kept, KeptUnits):
        return ~kept.entries.reshape(-1)
    flags = [one for one in (kept.rows, kept.columns) if one is not None]
    return ~torch.cat(flags) if flags else torch.zeros(0, dtype=torch.bool)


@dataclass(frozen=True, slots=True, eq=False)
class UnitImportances:
    """Sums of the sizes of the entries of a matrix, or of a convolution's weight.

    Attributes:
        rows: Of each row.
        columns: Of each column.
    """

    rows: Floats
    columns: Floats

    @classmethod
    def of(cls, matrix: Floats) -> "UnitImportances":
        """Add up; columns of a convolution are its channels."""
        sizes = np.abs(matrix).reshape(*matrix.shape[:2], -1).sum(axis=2)
        return cls(sizes.sum(axis=1), sizes.sum(axis=0))


def weight_maps(
    plan: FineTuningPlan, module: nn.Module, *, is_experiment: bool = False
) -> dict[str, Floats]:
    """Return the matrices of a module as they are now; those of adapters with their factors."""
    _check(is_experiment)
    adapters = adapters_of(module)
    found = {f"{name}.weight": one.matrix for name, one in adapters.items()}
    if not adapters:
        found = {name: module.get_parameter(name).detach() for name, _ in plan.shapes.matrices}
    return {name: one.double().numpy() for name, one in found.items()}


def unit_importances(
    plan: FineTuningPlan, module: nn.Module, *, is_experiment: bool = False
) -> dict[str, UnitImportances]:
    """Return the importance of each unit of each matrix, as masks of units see it."""
    maps = weight_maps(plan, module, is_experiment=is_experiment)
    return {name: UnitImportances.of(one) for name, one in maps.items()}


def gradient_maps(
    module: nn.Module, inputs: Inputs, labels: Tensor, *, is_experiment: bool = False
) -> dict[str, Floats]:
    """Return the mean size of each trained parameter's gradient over examples."""
    _check(is_experiment)
    gradients = example_gradients(module, inputs, labels)
    return {name: one.abs().mean(dim=0).double().numpy() for name, one in gradients.items()}


def _check(is_experiment: bool) -> None:
    if not is_experiment:
        raise BadParameter(
            "is_experiment", False, "true: diagnostics show private examples, without any noise"
        )
