"""Clip factors and gradients of single examples: for experiments alone.

They are about private examples and were not noised, so that no guarantee covers them. No training
uses this module: gradients are taken one by one, by autograd.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from noisefloor.publication.private_sgd.bookkeeping import Loss
from noisefloor.publication.private_sgd.clipping import Automatic
from noisefloor.publication.private_sgd.coordinates import GradientLayout
from noisefloor.publication.private_sgd.parameters import FlatParameters
from noisefloor.publication.private_sgd.plan import SgdPlan
from noisefloor.publication.private_sgd.step_layouts import MaskRule, StepLayouts
from noisefloor.publication.private_sgd.training import cross_entropy
from noisefloor.randomness import Source


def example_gradients(
    module: nn.Module,
    inputs: Sequence[Tensor],
    targets: Tensor,
    loss: Loss = cross_entropy,
) -> dict[str, Tensor]:
    """Return the gradient of each example by each trained parameter, [examples, *shape]."""
    trained = {name: one for name, one in module.named_parameters() if one.requires_grad}
    rows: list[tuple[Tensor, ...]] = []
    for place in range(len(targets)):
        one = slice(place, place + 1)
        value = loss(module(*(some[one] for some in inputs)), targets[one]).sum()
        found = torch.autograd.grad(value, list(trained.values()), allow_unused=True)
        rows.append(
            tuple(
                torch.zeros_like(like) if own is None else own
                for own, like in zip(found, trained.values(), strict=True)
            )
        )
    columns = zip(*rows, strict=True)
    return {name: torch.stack(some) for name, some in zip(trained, columns, strict=True)}


def clip_factors(
    module: nn.Module,
    inputs: Sequence[Tensor],
    targets: Tensor,
    plan: SgdPlan,
    source: Source,
    *,
    masks: MaskRule | None = None,
    start: Tensor | None = None,
    loss: Loss = cross_entropy,
) -> Tensor:
    """Return what each example's gradient is multiplied by, [examples, groups of clipping].

    Args:
        module: As it is before a step.
        inputs: What it takes.
        targets: What the loss takes.
        plan: Its clipping, scales and carriers are used.
        source: Of the step; carriers draw from it.
        masks: What is left out of the norm; nothing if None.
        start: All trained weights before the first step, as one vector, for carriers; the
            weights as they are if None.
        loss: Of each example.
    """
    gradients = example_gradients(module, inputs, targets, loss)
    flat = FlatParameters(module)
    try:
        layouts = StepLayouts(flat, plan, masks, is_renewed=True)
        first = layouts.first(flat.vector)
        begun = flat.vector if start is None else start
        layout = layouts.next(flat.vector, begun, source) or first
        rows = [gradients[name].flatten(1) for name in flat.names]
        return _factors(layout, layout.of_written(rows), plan)
    finally:
        flat.release()


def _factors(layout: GradientLayout, rows: Tensor, plan: SgdPlan) -> Tensor:
    found = []
    for group, bound in enumerate(plan.clipping.bounds):
        norms = torch.linalg.vector_norm(rows * layout.flags_of(group), dim=1)
        if isinstance(plan.clipping, Automatic):
            found.append(bound / (norms + plan.clipping.stability))
        else:
            found.append((bound / norms.clamp(min=1e-30)).clamp(max=1.0))
    return torch.stack(found, 1)
