"""Private SGD: training of plain torch modules by clipped, noisy gradients.

    plan = SgdPlan.for_budget(
        Guarantee(1.0, Neighbours.RECORD_ADD_REMOVE, delta=1e-5, model=TrustModel.CENTRAL),
        examples=45_222, expected_batch=256, epochs=20,
    )
    initialise(module, source.child("weights"))
    report = train(module, features, labels, plan, source.child("training"))
    proved = plan.guarantee(delta=1e-5)

``SgdPlan`` and the kinds of clipping are torch-free. ``train`` is the whole of it;
``PrivateTraining`` can be stopped, written to a safetensors checkpoint and taken up again.
``initialise`` draws first weights from a source.

Linear, Embedding, LayerNorm, Conv1d, Conv2d and LSTM are clipped by book-keeping, at a cost not
far from a plain step; a module with other layers takes the slow road, and the report says so.
Frozen parameters are left alone. Refused are tied parameters, batch normalisation that is not
frozen, active dropout, and whatever else couples examples, is random or changes in a forward pass:
``modules`` knows some layers, ``dry_run`` tries the module on made-up examples before the first
step, and ``state`` puts back after every pass what it changed all the same. No value of an example
stops a training: what cannot be computed counts as zero.

Sensitivity, under adding or removing one example: the bound for flat and automatic clipping, the
root of the sum of squared bounds for clipping by groups. Substitution doubles it; every noise
multiplier is over the add/remove one, and the accountant doubles where it has to.
"""

from typing import TYPE_CHECKING, Any

from noisefloor.publication.private_sgd.clipping import Automatic, Clipping, Flat, PerGroup
from noisefloor.publication.private_sgd.plan import SgdPlan

if TYPE_CHECKING:
    from noisefloor.publication.private_sgd.parameters import initialise
    from noisefloor.publication.private_sgd.subsampled_gaussian import (
        add_step_noise,
        poisson_sample,
    )
    from noisefloor.publication.private_sgd.training import (
        PrivateTraining,
        SgdReport,
        cross_entropy,
        train,
    )

__all__ = [
    "Automatic",
    "Clipping",
    "Flat",
    "PerGroup",
    "PrivateTraining",
    "SgdPlan",
    "SgdReport",
    "add_step_noise",
    "cross_entropy",
    "initialise",
    "poisson_sample",
    "train",
]

_WITH_TORCH = {
    "PrivateTraining": "training",
    "SgdReport": "training",
    "add_step_noise": "subsampled_gaussian",
    "cross_entropy": "training",
    "initialise": "parameters",
    "poisson_sample": "subsampled_gaussian",
    "train": "training",
}


def __getattr__(name: str) -> Any:  # Any: whatever the module has by that name
    """Import what needs torch on first use."""
    if name not in _WITH_TORCH:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_WITH_TORCH[name]}"), name)
