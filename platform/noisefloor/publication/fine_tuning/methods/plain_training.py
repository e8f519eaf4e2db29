"""Training without privacy: what privacy is paid from, and what attacks are tried on first."""

import torch
from torch import Tensor, nn

from noisefloor.errors import IncompatibleGuarantees
from noisefloor.publication.fine_tuning.methods.method_plan import FineTuningPlan
from noisefloor.publication.fine_tuning.methods.method_training import (
    Inputs,
    StepProgress,
    prepare_module,
)
from noisefloor.publication.fine_tuning.top_layers import LayeredModule
from noisefloor.publication.private_sgd import ExampleBatch, PaddedInputs, cross_entropy
from noisefloor.randomness import Source


def train_plain(
    plan: FineTuningPlan,
    module: LayeredModule,
    inputs: Inputs,
    labels: Tensor,
    source: Source,
    *,
    progress: StepProgress | None = None,
    padding: PaddedInputs | None = None,
) -> None:
    """Train without clipping and noise, in place, by shuffled batches; nothing is proved of it.

    Args:
        plan: Of ``plain``, or another one ``without_privacy``.
        module: The top layers as they are in the backbone.
        inputs: What the module takes.
        labels: The class of each record.
        source: Draws the order of records, and right factors of adapters.
        progress: Gets the number of steps that are done.
        padding: Lengths of records, where these are cut to about their own.

    Raises:
        IncompatibleGuarantees: The plan is a private one.
    """
    if plan.sgd is not None:
        raise IncompatibleGuarantees("A private plan is not trained without its noise.")
    prepare_module(plan, module, source.child("adapters"))
    size, count = round(plan.batch), len(labels)
    optimiser = _optimiser(plan, module)
    order: Tensor = torch.empty(0, dtype=torch.long)
    for step in range(plan.steps):
        if len(order) < size:
            drawn = source.child("order", step).stage("order").permutation(count)
            order = torch.cat([order, torch.from_numpy(drawn)])
        places, order = order[:size], order[size:]
        optimiser.zero_grad()
        for part in [places] if padding is None else padding.micro_batches(places, size):
            taken = ExampleBatch(tuple(one[part] for one in inputs), labels[part])
            taken = taken if padding is None else padding.cut(taken, part)
            losses = cross_entropy(module(*taken.inputs), taken.targets)
            (losses.sum() / size).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        if progress is not None:
            progress(step + 1)


def _optimiser(plan: FineTuningPlan, module: nn.Module) -> torch.optim.Optimizer:
    settings = plan.settings
    trained = [one for one in module.parameters() if one.requires_grad]
    if settings.optimiser == "adam":
        return torch.optim.Adam(
            trained,
            settings.learning_rate,
            betas=(settings.momentum, 0.999),
            weight_decay=settings.weight_decay,
        )
    return torch.optim.SGD(
        trained,
        settings.learning_rate,
        momentum=settings.momentum,
        weight_decay=settings.weight_decay,
    )
