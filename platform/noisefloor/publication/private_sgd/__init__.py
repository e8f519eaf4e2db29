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

Linear, Embedding, LayerNorm, GroupNorm, Conv1d, Conv2d, LSTM and GRU are clipped by book-keeping,
at a cost not far from a plain step, also where linear layers and embeddings share a matrix; a
module with other layers takes the slow road, and the report names them. Frozen parameters are
left alone. Refused are batch normalisation that is not frozen, active dropout, and whatever else
couples examples, is random or changes in a forward pass: ``modules`` knows some layers,
``dry_run`` tries the module on made-up examples before the first step, and ``state`` puts back
after every pass what it changed all the same. No value of an example stops a training: what
cannot be computed counts as zero.

A plan may give groups of parameters scales and rates of their own (``ParameterGroup``) and carry
matrices by factors of low rank (``carriers``). A training may leave coordinates out (``masks``)
and cut padded inputs to about their own length (``PaddedInputs``).

Sensitivity, under adding or removing one example: the bound for flat and automatic clipping and
for a bound that is split over groups, the root of the sum of squared bounds for clipping by
groups. Noise is for the sensitivity, but for ``EachAtFullBound``: as printed elsewhere, it adds
less, and proves less than it claims. Substitution doubles the sensitivity; every noise multiplier
is over the add/remove one, and the accountant doubles where it has to.
"""

from typing import TYPE_CHECKING, Any

from noisefloor.publication.private_sgd.clipping import (
    Automatic,
    Clipping,
    EachAtFullBound,
    Flat,
    PerGroup,
    SplitBound,
)
from noisefloor.publication.private_sgd.parameter_groups import ParameterGroup, find_group
from noisefloor.publication.private_sgd.plan import SgdPlan

if TYPE_CHECKING:
    from noisefloor.publication.private_sgd.example_clipping import clip_factors, example_gradients
    from noisefloor.publication.private_sgd.masks import (
        Kept,
        KeptEntries,
        KeptUnits,
        without_smallest_entries,
        without_smallest_units,
    )
    from noisefloor.publication.private_sgd.module_checks import ExampleBatch
    from noisefloor.publication.private_sgd.padded_inputs import PaddedInputs
    from noisefloor.publication.private_sgd.parameters import initialise
    from noisefloor.publication.private_sgd.step_layouts import MaskRule
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
    "EachAtFullBound",
    "ExampleBatch",
    "Flat",
    "Kept",
    "KeptEntries",
    "KeptUnits",
    "MaskRule",
    "PaddedInputs",
    "ParameterGroup",
    "PerGroup",
    "PrivateTraining",
    "SgdPlan",
    "SgdReport",
    "SplitBound",
    "add_step_noise",
    "clip_factors",
    "cross_entropy",
    "example_gradients",
    "find_group",
    "initialise",
    "poisson_sample",
    "train",
    "without_smallest_entries",
    "without_smallest_units",
]

_WITH_TORCH = {
    "ExampleBatch": "module_checks",
    "Kept": "masks",
    "KeptEntries": "masks",
    "KeptUnits": "masks",
    "MaskRule": "step_layouts",
    "PaddedInputs": "padded_inputs",
    "PrivateTraining": "training",
    "SgdReport": "training",
    "add_step_noise": "subsampled_gaussian",
    "clip_factors": "example_clipping",
    "cross_entropy": "training",
    "example_gradients": "example_clipping",
    "initialise": "parameters",
    "poisson_sample": "subsampled_gaussian",
    "train": "training",
    "without_smallest_entries": "masks",
    "without_smallest_units": "masks",
}


def __getattr__(name: str) -> Any:  # Any: whatever the module has by that name
    """Import what needs torch on first use."""
    if name not in _WITH_TORCH:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_WITH_TORCH[name]}"), name)
