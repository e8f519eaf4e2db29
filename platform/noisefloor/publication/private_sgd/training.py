"""A private training, step by step, that can be stopped and taken up again."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

from noisefloor.checks import check_count
from noisefloor.errors import BadSnapshot, OutOfDomain
from noisefloor.publication.private_sgd import checkpoint
from noisefloor.publication.private_sgd.bookkeeping import (
    BookKeeping,
    Inputs,
    Loss,
    layers_without_a_tap,
)
from noisefloor.publication.private_sgd.factors import BrokenExamples
from noisefloor.publication.private_sgd.gates import GradientWatch, check_moved, check_weights
from noisefloor.publication.private_sgd.modules import check_first_batch, check_module
from noisefloor.publication.private_sgd.noise import add_noise
from noisefloor.publication.private_sgd.optimisers import optimiser_for, restore
from noisefloor.publication.private_sgd.parameters import FlatParameters
from noisefloor.publication.private_sgd.per_example import PerExample
from noisefloor.publication.private_sgd.plan import SgdPlan
from noisefloor.publication.private_sgd.sampling import parts, poisson_sample
from noisefloor.randomness import Source

Arrays: TypeAlias = Any
"""A tensor or an array with an example in each row, or a tuple of them for several inputs."""

_GATE_EVERY = 64
"""Steps from one look at the weights to the next."""


@dataclass(frozen=True, slots=True)
class SgdReport:
    """What may be told of a training: it follows from the plan, the module and the weights.

    Losses and norms of gradients are not in it: they are about the examples, and were not noised.

    Attributes:
        plan: What was done.
        steps: How many steps.
        parameters: How many were trained.
        moved: How far they are from where they started, in L2.
        road: ``"book-keeping"``, or ``"per-example"``, the slow one.
        without_a_tap: The layers that are the reason for the slow road.
    """

    plan: SgdPlan
    steps: int
    parameters: int
    moved: float
    road: str
    without_a_tap: tuple[str, ...]


def cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    """Return the cross-entropy of each example, from logits [examples, classes] and classes."""
    return functional.cross_entropy(outputs, targets, reduction="none")


class PrivateTraining:
    """A training under way; use it as a context, run it, and finish it.

    Coins are named by step: ``source.child("step", number)``, of which the stages ``sample`` and
    ``noise`` are opened. So a training taken up from a checkpoint is the same as one that was
    never interrupted, for a seeded source. Do not hand the source to anything else.

    All that is released (weights at any step, checkpoints) is within the plan's guarantee.

    Args:
        module: On the CPU. Its trainable parameters are trained in place; the mode (``train`` or
            ``eval``) is left as it is. Nothing in it may couple examples or be random.
        inputs: What the module takes.
        targets: What the loss takes, an example in each row.
        plan: What is to be done.
        source: Coins.
        loss: Takes outputs and targets, gives the loss of each example.
        micro_batch: The most examples in memory at once; for the slow road take it small.
        per_example: Take the slow road, whatever the layers are.
        skips: Leave out, in every step, examples whose loss or gradient is no finite number,
            instead of stopping. Nobody learns of them then: for releases, where that a run was
            stopped would be seen by whoever asked for it, and is not covered by the guarantee.
    """

    def __init__(
        self,
        module: nn.Module,
        inputs: Arrays,
        targets: Arrays,
        plan: SgdPlan,
        source: Source,
        *,
        loss: Loss = cross_entropy,
        micro_batch: int = 4096,
        per_example: bool = False,
        skips: bool = False,
    ) -> None:
        check_module(module)
        self._module, self._plan, self._source, self._loss = module, plan, source, loss
        self._inputs, self._targets = _checked(inputs, targets)
        self._most = check_count(micro_batch, "micro_batch")
        self._skips = skips
        self._flat = FlatParameters(module)
        self._weights = self._flat.vector
        self._sums = torch.zeros_like(self._weights)
        self._start = self._weights.clone()
        self._optimiser = optimiser_for(plan, self._weights)
        self._averaged_from = plan.steps - round(plan.averaging * plan.steps)
        self._average = torch.zeros_like(self._weights) if plan.averaging else None
        self._step = 0
        self._watch = GradientWatch()
        self._is_checked = False
        self._without = tuple(layers_without_a_tap(module, self._flat))
        road = PerExample if self._without or per_example else BookKeeping
        self._road = road(module, self._flat, self._sums, loss=loss, clipping=plan.clipping)

    def __enter__(self) -> "PrivateTraining":
        self._road.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._road.__exit__()
        self._flat.release()

    @property
    def step(self) -> int:
        """How many steps are done."""
        return self._step

    def run(self, until: int | None = None) -> None:
        """Take steps, up to a number of them; all that are left if none is given.

        Raises:
            DeadRun: A gate says so; ``gates`` says what that tells about the examples.
        """
        last = self._plan.steps if until is None else min(until, self._plan.steps)
        while self._step < last:
            self._take_step()
            if self._step % _GATE_EVERY == 0:
                check_weights(self._weights)

    def _take_step(self) -> None:
        coins = self._source.child("step", self._step)
        self._sums.zero_()
        places = poisson_sample(self._plan, len(self._targets), coins.stage("sample"))
        for part in parts(places, len(self._targets), self._most):
            self._add(part)
        add_noise(self._sums, self._plan.noise_scale, coins.stage("noise"))
        self._move(self._sums.mul_(1 / self._plan.expected_batch))

    def _add(self, part: Tensor | slice) -> None:
        """Add the clipped gradients of some examples; nothing was added where it raises."""
        inputs = tuple(one[part] for one in self._inputs)
        targets = self._targets[part]
        try:
            if not self._is_checked:
                self._check_first(inputs, targets)
            squares = self._road.add(inputs, targets)
        except BrokenExamples as found:
            if not self._skips:
                raise
            self._add_others(torch.arange(len(self._targets))[part], found.broken)
        else:
            self._watch.see(squares)

    def _add_others(self, places: Tensor, broken: Tensor) -> None:
        """Add the examples that are not broken; in halves where it is not known which are."""
        if len(broken) == len(places) and bool(broken.any()):
            halves = [places[~broken]]
        else:
            halves = list(torch.split(places, -(-len(places) // 2))) if len(places) > 1 else []
        for half in halves:
            if len(half):
                self._add(half)

    def _check_first(self, inputs: Inputs, targets: Tensor) -> None:
        check_first_batch(self._module, self._road, self._sums, self._loss, inputs, targets)
        self._sums.zero_()
        self._is_checked = True

    def _move(self, gradient: Tensor) -> None:
        """Hand the noisy mean to the optimiser; from here on everything is post-processing."""
        if self._plan.weight_decay:
            gradient.add_(self._weights, alpha=self._plan.weight_decay)
        self._step += 1
        self._optimiser.move(self._weights, gradient, self._step)
        if self._average is not None and self._step > self._averaged_from:
            self._average.lerp_(self._weights, 1 / (self._step - self._averaged_from))

    def finish(self) -> SgdReport:
        """Put averaged weights in place if the plan says so, pass the gates, and report."""
        if self._average is not None and self._step > self._averaged_from:
            self._weights.copy_(self._average)
        self._watch.check()
        check_weights(self._weights)
        return SgdReport(
            plan=self._plan,
            steps=self._step,
            parameters=self._weights.numel(),
            moved=check_moved(self._start, self._weights),
            road=self._road.name,
            without_a_tap=self._without,
        )

    def snapshot(self) -> bytes:
        """Write weights, optimiser, step and plan as a safetensors file."""
        vectors = {"start": self._start, **self._optimiser.state}
        if self._average is not None:
            vectors["average"] = self._average
        weights = zip(checkpoint.names(self._flat), self._flat.views(self._weights), strict=True)
        return checkpoint.write(dict(weights), vectors, self._step, self._plan)

    def restore(self, content: bytes) -> None:
        """Go on from a snapshot of the same plan, module and examples.

        With a source that is not seeded, steps that are taken again from an older snapshot get
        other noise: if the first ones were seen by anybody, more was released than the plan says.

        Raises:
            BadSnapshot: It is none, or of another plan or another module.
        """
        kept = checkpoint.read(content)
        if kept.plan != self._plan:
            raise BadSnapshot("Checkpoint: is of another plan.")
        names = checkpoint.names(self._flat)
        views = self._flat.views(self._weights)
        shapes = {name: view.shape for name, view in zip(names, views, strict=True)}
        if shapes != {name: one.shape for name, one in kept.weights.items()}:
            raise BadSnapshot("Checkpoint: is of another module.")
        for name, view in zip(names, views, strict=True):
            view.copy_(kept.weights[name])
        restore(self._optimiser, kept.vectors)
        self._start.copy_(kept.vectors["start"])
        if self._average is not None:
            self._average.copy_(kept.vectors["average"])
        self._step = kept.step


def train(
    module: nn.Module,
    inputs: Arrays,
    targets: Arrays,
    plan: SgdPlan,
    source: Source,
    *,
    loss: Loss = cross_entropy,
    micro_batch: int = 4096,
    per_example: bool = False,
    skips: bool = False,
) -> SgdReport:
    """Train a module privately, in place; the arguments are those of ``PrivateTraining``.

    Returns:
        What may be told. What was proved is ``plan.guarantee(delta)``.

    Raises:
        DeadRun: The training is dead; ``gates`` says what that tells about the examples.
        UnsupportedModule: The module couples examples, ties parameters, or is random.
    """
    with PrivateTraining(
        module,
        inputs,
        targets,
        plan,
        source,
        loss=loss,
        micro_batch=micro_batch,
        per_example=per_example,
        skips=skips,
    ) as training:
        training.run()
        return training.finish()


def _checked(inputs: Arrays, targets: Arrays) -> tuple[Inputs, Tensor]:
    several = inputs if isinstance(inputs, tuple) else (inputs,)
    tensors = tuple(torch.as_tensor(one) for one in several)
    wanted = torch.as_tensor(targets)
    if any(one.dim() == 0 or len(one) != len(wanted) for one in tensors):
        raise OutOfDomain("Expected inputs and targets with an example in each row, as many.")
    return tensors, wanted
