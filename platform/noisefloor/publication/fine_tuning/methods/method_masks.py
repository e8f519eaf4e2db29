"""Masks of methods: made of public weights for good, or of released ones before each step.

A rule is handed the trained weights and nothing else. It has the frozen ones, which are public, as
copies of its own.
"""

from collections.abc import Mapping

from torch import Tensor, nn

from noisefloor.publication.fine_tuning.methods.adapters import adapters_of
from noisefloor.publication.fine_tuning.methods.method_plan import FineTuningPlan, factor_names
from noisefloor.publication.private_sgd import (
    KeptUnits,
    MaskRule,
    without_smallest_entries,
    without_smallest_units,
)


def mask_rule(plan: FineTuningPlan, module: nn.Module) -> MaskRule | None:
    """Return what a method leaves out, from weights; None if nothing is.

    Args:
        plan: Names the matrices and the share that is left out.
        module: Of the frozen matrices under adapters, copies are kept.
    """
    if plan.method.masked == "nothing":
        return None
    if plan.method.has_adapters:
        return _AdapterMasks(plan, module)
    make = without_smallest_units if plan.method.masked == "units" else without_smallest_entries
    matrices, share = [name for name, _ in plan.shapes.matrices], plan.sparsity
    return lambda weights: {name: make(weights[name], share) for name in matrices}


class _AdapterMasks:
    """Units of W + L R: rows of L and columns of R are left out."""

    def __init__(self, plan: FineTuningPlan, module: nn.Module) -> None:
        self._share = plan.sparsity
        self._frozen = {
            f"{name}.weight": one.base.weight.detach().clone()
            for name, one in adapters_of(module).items()
        }

    def __call__(self, weights: Mapping[str, Tensor]) -> dict[str, KeptUnits]:
        found: dict[str, KeptUnits] = {}
        for name, frozen in self._frozen.items():
            left, right = factor_names(name, is_carried=False)
            # As matrices, [out, rank] and [rank, in x h x w], also where these are convolutions.
            added = weights[left].flatten(1) @ weights[right].flatten(1)
            kept = without_smallest_units(frozen + added.view_as(frozen), self._share)
            found |= {
                left: KeptUnits(rows=kept.rows),
                right: KeptUnits(columns=kept.columns),
            }
        return found
