"""Any planned training of layers, from frozen states to what is published."""

from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from noisefloor.publication.fine_tuning.frozen_layers import FrozenStates
from noisefloor.publication.fine_tuning.methods.head_then_adapters import HeadThenAdaptersPlan
from noisefloor.publication.fine_tuning.methods.method_plan import FineTuningPlan
from noisefloor.publication.fine_tuning.methods.method_training import (
    FineTuningRun,
    fine_tune,
    prepare_module,
    published_tensors,
)
from noisefloor.publication.fine_tuning.methods.plain_training import train_plain
from noisefloor.publication.fine_tuning.top_layers import TopLayers
from noisefloor.publication.noised_vectors import ResidualObserver
from noisefloor.publication.private_sgd import PaddedInputs
from noisefloor.publication.release_run import NO_RUN, ReleaseRun
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
    run: ReleaseRun = NO_RUN,
    made_on: str = "",
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
        run: Where progress is shown and checkpoints are kept; without privacy none are.
        made_on: What else checkpoints have to be of.
    """
    inputs, targets = module.inputs(states), torch.from_numpy(labels.copy())
    padding = PaddedInputs(torch.from_numpy(states.lengths.copy()), inputs=(0, 1))
    last = last_training(plan)
    progress = run.steps("training", last.steps)
    if isinstance(plan, HeadThenAdaptersPlan):
        plan.train(
            module,
            inputs,
            targets,
            source,
            padding=padding,
            residuals=residuals,
            run=run,
            made_on=made_on,
        )
    elif plan.sgd is None:
        train_plain(plan, module, inputs, targets, source, progress=progress)
    else:
        fine_tune(
            plan,
            module,
            inputs,
            targets,
            source,
            padding=padding,
            progress=progress,
            residuals=residuals,
            checkpoints=run.checkpoints,
            made_on=made_on,
        )
    return published_tensors(last, module)


def last_training(plan: LayerPlan) -> FineTuningPlan:
    """Return the training whose result is published, and that checkpoints are of."""
    return plan.adapters if isinstance(plan, HeadThenAdaptersPlan) else plan


def check_module(plan: LayerPlan, module: TopLayers, longest: int, source: Source) -> None:
    """Refuse a module that private SGD cannot train, by a dry run on made-up examples.

    Args:
        plan: What is done.
        module: The top layers as they are in the backbone; it is made ready, and not trained.
        longest: Pieces of a record.
        source: Draws factors of adapters.

    Raises:
        UnsupportedModule: The module couples examples, is random, or changes in a forward pass.
    """
    last = last_training(plan)
    if last.sgd is None:
        return
    prepare_module(last, module, source)
    width = module.mean.numel() // len(module.pooled)
    frozen = sum(number < module.first for number in module.pooled)
    inputs = (
        torch.zeros(2, longest, width),
        torch.ones(2, longest),
        torch.zeros(2, width * frozen),
    )
    lengths = torch.full((2,), longest)
    padding = PaddedInputs(lengths, inputs=(0, 1))
    labels = torch.zeros(2, dtype=torch.long)
    with FineTuningRun(last, module, inputs, labels, source, padding=padding, micro_batch=2):
        pass
