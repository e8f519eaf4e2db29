"""A planned fine-tuning, run: modules are made ready, trained, kept in checkpoints, published."""

import hashlib
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from noisefloor.errors import BadParameter, BadSnapshot
from noisefloor.publication.fine_tuning import published_text_model as form
from noisefloor.publication.fine_tuning.methods.adapters import adapters_of, add_adapters
from noisefloor.publication.fine_tuning.methods.encoder_shapes import HEAD
from noisefloor.publication.fine_tuning.methods.method_masks import mask_rule
from noisefloor.publication.fine_tuning.methods.method_plan import (
    LEFT,
    RIGHT,
    FineTuningPlan,
    adapter_name,
)
from noisefloor.publication.fine_tuning.top_layers import LayeredModule
from noisefloor.publication.noised_vectors import ResidualObserver
from noisefloor.publication.private_sgd import (
    MaskRule,
    PaddedInputs,
    PrivateTraining,
    SgdReport,
)
from noisefloor.publication.release_run import CheckpointStore
from noisefloor.publication.tensors import read_metadata, read_tensors, write_tensors
from noisefloor.randomness import Source

Floats = NDArray[np.float32]
Inputs = tuple[Tensor, ...]
StepProgress = Callable[[int], None]
"""Is called with the number of steps that are done."""

_PLAN = "fine_tuning_plan"
_FROZEN = "frozen/"


def prepare_module(plan: FineTuningPlan, module: LayeredModule, source: Source) -> None:
    """Freeze what a method does not train, and add adapters where it has them.

    Args:
        plan: Of the method.
        module: The top layers as they are in the backbone.
        source: Draws right factors of adapters: public numbers.

    Raises:
        BadParameter: The module is not the one that was planned for.
    """
    trained, planned = plan.trained, (plan.shapes.first, len(plan.shapes.layers))
    if (module.first, len(module.layers)) != planned:
        raise _not_planned(module)
    if plan.method.has_adapters and not adapters_of(module):
        matrices = [name.removeprefix("layers.") for name, _ in plan.shapes.matrices]
        add_adapters(module.layers, matrices, plan.rank, source)
    for name, parameter in module.named_parameters():
        parameter.requires_grad_(name in trained)
    found = {name: tuple(one.shape) for name, one in module.named_parameters() if name in trained}
    if found != trained:
        raise _not_planned(module)


def _not_planned(module: LayeredModule) -> BadParameter:
    return BadParameter("module", type(module).__name__, "the one that the plan was made for")


def published_tensors(plan: FineTuningPlan, module: LayeredModule) -> dict[str, Floats]:
    """Return what is published of a trained module, by the names of the file.

    Factors of convolutions are matrices, [out, rank] and [rank, in x h x w].
    """
    found = {
        name: one
        for name, one in module.trained_tensors().items()
        if not (plan.method.has_adapters and name.startswith(form.LAYERS))
    }
    for name, one in adapters_of(module).items():
        place = adapter_name(f"{name}.weight", module.first)
        for side, layer in ((LEFT, one.left), (RIGHT, one.right)):
            found[place + side] = layer.weight.detach().flatten(1).numpy().copy()
    return found


class FineTuningRun:
    """A private fine-tuning under way; use it as a context, run it, and finish it.

    Args:
        plan: What is to be done.
        module: Made ready by ``prepare_module``.
        inputs: What the module takes.
        labels: The class of each record.
        source: Draws.
        padding: Lengths of records, where these are cut to about their own.
        micro_batch: The most records in memory at once.
        masks: Instead of the plan's own rule, for one that looks at it.
        residuals: For simulations alone; see ``PrivateTraining``.
        made_on: What else a checkpoint has to be of, such as the hash of the backbone.
    """

    def __init__(
        self,
        plan: FineTuningPlan,
        module: nn.Module,
        inputs: Inputs,
        labels: Tensor,
        source: Source,
        *,
        padding: PaddedInputs | None = None,
        micro_batch: int = 256,
        masks: MaskRule | None = None,
        residuals: ResidualObserver | None = None,
        made_on: str = "",
    ) -> None:
        self._plan, self._module, self._made_on = plan, module, made_on
        self._training = PrivateTraining(
            module,
            inputs,
            labels,
            plan.private,
            source,
            micro_batch=micro_batch,
            masks=masks or mask_rule(plan, module),
            renews_masks=plan.method.renews_masks,
            padding=padding,
            residuals=residuals,
        )

    def __enter__(self) -> "FineTuningRun":
        self._training.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._training.__exit__(*error)

    @property
    def step(self) -> int:
        """How many steps are done."""
        return self._training.step

    def run(self, until: int | None = None, progress: StepProgress | None = None) -> None:
        """Take steps, up to a number of them; all that are left if none is given."""
        last = self._plan.private.steps if until is None else min(until, self._plan.private.steps)
        while self.step < last:
            self._training.run(self.step + 1 if progress is not None else last)
            if progress is not None:
                progress(self.step)

    def finish(self) -> SgdReport:
        """Put averaged weights in place if the plan says so, and report."""
        return self._training.finish()

    def snapshot(self) -> bytes:
        """Write a checkpoint that names the plan; it is within the plan's guarantee.

        Beside weights and optimiser it has frozen right factors, which are published anyway.
        """
        tensors = read_tensors(self._training.snapshot()) | _frozen_factors(
            self._plan, self._module
        )
        return write_tensors(tensors, {_PLAN: checkpoint_mark(self._plan, self._made_on)})

    def restore(self, content: bytes) -> None:
        """Go on from a checkpoint of the same plan and right factors.

        Raises:
            BadSnapshot: It is none, or of another plan, masks and ranks included.
        """
        check_checkpoint(self._plan, content, self._made_on)
        kept = read_tensors(content)
        for name, factor in _frozen_factors(self._plan, self._module).items():
            if name not in kept or not np.array_equal(kept[name], factor):
                raise BadSnapshot("Checkpoint: has other right factors than the module.")
        self._training.restore(content)


def checkpoint_mark(plan: FineTuningPlan, made_on: str = "") -> str:
    """Return what a checkpoint names its training by."""
    return hashlib.sha256(f"{plan.sha256} {made_on}".encode()).hexdigest()


def check_checkpoint(plan: FineTuningPlan, content: bytes, made_on: str = "") -> None:
    """Refuse a checkpoint of another training, before anything of it is used.

    Raises:
        BadSnapshot: It is none, or of another plan, or was made on something else.
    """
    if read_metadata(content).get(_PLAN) != checkpoint_mark(plan, made_on):
        raise BadSnapshot("Checkpoint: is of another plan; start anew, or take its settings.")


def put_frozen_factors(plan: FineTuningPlan, module: LayeredModule, content: bytes) -> None:
    """Give a module the right factors of a checkpoint: sources that are not seeded drew others."""
    kept = read_tensors(content)
    for name, one in adapters_of(module).items():
        if plan.method.trained == "left-factors" and _FROZEN + name in kept:
            with torch.no_grad():
                one.right.weight.copy_(torch.from_numpy(kept[_FROZEN + name]))


def _frozen_factors(plan: FineTuningPlan, module: nn.Module) -> dict[str, Floats]:
    if plan.method.trained != "left-factors":
        return {}
    return {
        _FROZEN + name: one.right.weight.detach().numpy()
        for name, one in adapters_of(module).items()
    }


def fine_tune(
    plan: FineTuningPlan,
    module: LayeredModule,
    inputs: Inputs,
    labels: Tensor,
    source: Source,
    *,
    padding: PaddedInputs | None = None,
    micro_batch: int = 256,
    progress: StepProgress | None = None,
    residuals: ResidualObserver | None = None,
    checkpoints: CheckpointStore | None = None,
    made_on: str = "",
) -> SgdReport:
    """Make a module ready, train it privately and report; see ``FineTuningRun``.

    Draws are those of ``source.child("adapters")`` and ``source.child("training")``. It goes on
    from the checkpoint that there is, and writes others when they are due.
    """
    prepare_module(plan, module, source.child("adapters"))
    kept = None if checkpoints is None else checkpoints.load()
    if kept is not None:  # before the training notes what has to stay as it is
        put_frozen_factors(plan, module, kept)
    trained: nn.Module = module
    if plan.method.trained == "head":  # nothing below it moves: one pass is enough
        trained, inputs, padding = HeadAlone(module), (head_features(module, inputs),), None
    with FineTuningRun(
        plan,
        trained,
        inputs,
        labels,
        source.child("training"),
        padding=padding,
        micro_batch=micro_batch,
        residuals=residuals,
        made_on=made_on,
    ) as run:
        if kept is not None:
            run.restore(kept)
        run.run(progress=_with_checkpoints(run, progress, checkpoints))
        return run.finish()


def _with_checkpoints(
    run: FineTuningRun, progress: StepProgress | None, checkpoints: CheckpointStore | None
) -> StepProgress | None:
    """Return what is done after each step."""
    if checkpoints is None:
        return progress

    def done(step: int) -> None:
        if checkpoints.is_due():
            checkpoints.save(run.snapshot())
        if progress is not None:
            progress(step)

    return done


class HeadAlone(nn.Module):
    """The head of a module, on features that were made before; it trains the head in place."""

    def __init__(self, module: LayeredModule) -> None:
        super().__init__()
        self.head = module.head

    def forward(self, features: Tensor) -> Tensor:
        """Return a figure for each class."""
        return self.head(features)  # type: ignore[no-any-return]


def head_features(module: LayeredModule, inputs: Inputs, at_once: int = 256) -> Tensor:
    """Return the features that the head sees, of each record, as the layers are now.

    Where nothing but the head is trained, they run once.
    """
    found: list[Tensor] = []
    taken: list[Tensor] = []
    hook = module.get_submodule(HEAD).register_forward_pre_hook(
        lambda _, given: taken.append(given[0])
    )
    try:
        with torch.no_grad():
            for start in range(0, len(inputs[0]), at_once):
                module(*(one[start : start + at_once] for one in inputs))
                found.append(taken.pop())
    finally:
        hook.remove()
    return torch.cat(found)
