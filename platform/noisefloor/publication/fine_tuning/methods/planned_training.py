"""Any planned training of layers, from frozen states to what is published."""

from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from noisefloor.publication.fine_tuning.frozen_layers import FrozenStates
from noisefloor.publication.fine_tuning.methods.head_then_adapters import HeadThenAdaptersPlan
from noisefloor.publication.fine_tuning.methods.method_plan import FineTuningPlan
from noisefloor.publication.fine_tuning.methods.method_training import (
    fine_tune,
    published_tensors,
)
from noisefloor.publication.fine_tuning.methods.plain_training import train_plain
from noisefloor.publication.fine_tuning.top_layers import TopLayers
from noisefloor.publication.noised_vectors import ResidualObserver
from noisefloor.publication.private_sgd import PaddedInputs
from noisefloor.randomness import Source

Floats = NDArray[np.float32]
LayerPlan: TypeAlias = FineTuningPlan | HeadThenAdaptersPlan


def train_planned(
    plan: LayerPlan,
    module: TopLayers,
    states: FrozenStates,
    labels: NDArray[np.int64],
    source: Source,
    *,
    residuals: ResidualObserver | None = None,
) -> dict[str, Floats]:
    """Train a module as planned, in place, and return what is published of it.

    Batches are cut to about the length of their texts.

    Args:
        plan: What is done.
        module: The top layers as they are in the backbone.
        states: What the frozen layers made of the records.
        labels: The class of each record.
        source: Draws.
        residuals: For simulations alone; see ``PrivateTraining``.
    """
    inputs, targets = module.inputs(states), torch.from_numpy(labels.copy())
    padding = PaddedInputs(torch.from_numpy(states.lengths.copy()), inputs=(0, 1))
    if isinstance(plan, HeadThenAdaptersPlan):
        plan.train(module, inputs, targets, source, padding=padding, residuals=residuals)
        return published_tensors(plan.adapters, module)
    if plan.sgd is None:
        train_plain(plan, module, inputs, targets, source)
    else:
        fine_tune(plan, module, inputs, targets, source, padding=padding, residuals=residuals)
    return published_tensors(plan, module)
