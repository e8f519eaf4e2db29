"""A private training, step by step, that can be stopped and taken up again.

Trainings under way as safetensors files: weights, optimiser, step and plan.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

from noisefloor.checks import check_count
from noisefloor.errors import BadParameter, BadSnapshot, OutOfDomain
from noisefloor.publication.noised_vectors import NoisedVector, ResidualObserver
from noisefloor.publication.private_sgd import training
from noisefloor.publication.private_sgd.bookkeeping import BookKeeping, Loss, find_untapped_layers
from noisefloor.publication.private_sgd.contributions import LongestPart, NonFiniteExamples
from noisefloor.publication.private_sgd.module_checks import (
    ModuleDryRun,
    as_batch,
    check_module,
    placeholder_examples,
)
from noisefloor.publication.private_sgd.optimisers import (
    check_moved,
    check_weights,
    optimiser_for,
    restore,
)
from noisefloor.publication.private_sgd.parameters import FlatParameters
from noisefloor.publication.private_sgd.per_example import PerExample
from noisefloor.publication.private_sgd.plan import SgdPlan
from noisefloor.publication.private_sgd.subsampled_gaussian import (
    add_step_noise,
    micro_batches,
    poisson_sample,
)
from noisefloor.publication.tensors import read_tensors, write_tensors
from noisefloor.randomness import Source

_HEADER = "about"
_WEIGHTS, _VECTORS = "weights/", "vectors/"


class Checkpoint(NamedTuple):
    """What a file holds.

    Attributes:
        weights: By name, as the module has them.
        vectors: What the optimiser and the training remember.
        step: How many steps were done.
        plan: Of the training.
    """

    weights: dict[str, Tensor]
    vectors: dict[str, Tensor]
    step: int
    plan: SgdPlan


def write_checkpoint(
    weights: Mapping[str, Tensor], vectors: Mapping[str, Tensor], step: int, plan: SgdPlan
) -> bytes:
    """Write a checkpoint; the plan goes in as text, a byte for each letter."""
    about = json.dumps({"step": step, "plan": plan.as_json()}, sort_keys=True).encode()
    tensors = {_HEADER: torch.tensor(list(about), dtype=torch.uint8).numpy()}
    tensors |= {f"{_WEIGHTS}{name}": one.detach().numpy() for name, one in weights.items()}
    tensors |= {f"{_VECTORS}{name}": one.detach().numpy() for name, one in vectors.items()}
    return write_tensors(tensors)


def read_checkpoint(content: bytes) -> Checkpoint:
    """Read a checkpoint.

    Raises:
        BadSnapshot: It is none.
    """
    tensors = read_tensors(content)
    try:
        about = json.loads(tensors.pop(_HEADER).tobytes())
        plan, step = SgdPlan.from_json(about["plan"]), int(about["step"])
    except (KeyError, ValueError, TypeError, BadParameter):
        raise BadSnapshot("Checkpoint: does not say what it is of.") from None

    def below(prefix: str) -> dict[str, Tensor]:
        return {
            name.removeprefix(prefix): torch.from_numpy(one)
            for name, one in tensors.items()
            if name.startswith(prefix)
        }

    return Checkpoint(below(_WEIGHTS), below(_VECTORS), step, plan)


Arrays: TypeAlias = Any
"""A tensor or an array with an example in each row, or a tuple of them for several inputs."""

_GATE_EVERY = 64
"""Steps from one look at the weights to the next."""


@dataclass(frozen=True, slots=True)
class SgdReport:
    """What may be released of a training: it follows from the plan, the module and the weights.

    Losses and norms of gradients are not in it: they are about the examples, and were not noised.

    Attributes:
        plan: What was done.
        steps: How many steps.
        parameters: How many were trained.
        moved: How far they are from where they started, in L2.
        road: ``"book-keeping"``, or ``"per-example"``, the slow one.
        untapped_layers: The layers that are the reason for the slow road.
    """

    plan: SgdPlan
    steps: int
    parameters: int
    moved: float
    road: str
    untapped_layers: tuple[str, ...]


def cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    """Return the cross-entropy of each example, from logits [examples, classes] and classes."""
    return functional.cross_entropy(outputs, targets, reduction="none")


class PrivateTraining:
    """A training under way; use it as a context, run it, and finish it.

    Draws are named by step: ``source.child("step", number)``, of which the stages ``sample`` and
    ``noise`` are opened. So a training taken up from a checkpoint is the same as one that was
    never interrupted, for a seeded source. Do not hand the source to anything else.

    All that is released (weights at any step, checkpoints) is within the plan's guarantee. The
    rest of the module (buffers, frozen parameters, attributes) is what it was before, bit by bit:
    ``state`` says what is looked at. A dry run on made-up examples comes before the first step,
    and refuses what would spoil the guarantee: ``dry_run`` says what it can and cannot see.

    An example that makes the module or the loss raise, or whose loss or gradient is not finite,
    counts as zero, and nothing shows it: that a run stopped would be a fact about that example.

    Args:
        module: On the CPU. Its trainable parameters are trained in place; the mode (``train`` or
            ``eval``) is left as it is. Nothing in it may couple examples, be random, or change
            in a forward pass.
        inputs: What the module takes.
        targets: What the loss takes, an example in each row.
        plan: What is to be done.
        source: Draws.
        loss: Takes outputs and targets, gives the loss of each example.
        micro_batch: The most examples in memory at once; for the slow road take it small.
        per_example: Take the slow road, whatever the layers are.
        public_examples: Inputs and targets of at least two examples that are nobody's, for the
            dry run; made up from shapes and types if left out.
        residuals: Gets the sum of every step before and after its noise, and the largest norm of
            one example's part in it. For simulations alone: no guarantee covers these numbers.
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
        public_examples: tuple[Arrays, Arrays] | None = None,
        residuals: ResidualObserver | None = None,
    ) -> None:
        check_module(module)
        self._module, self._plan, self._source, self._loss = module, plan, source, loss
        self._examples = as_batch(inputs, targets)
        self._public = None if public_examples is None else as_batch(*public_examples)
        if self._public is not None and len(self._public.targets) < 2:
            raise OutOfDomain("Expected at least two public examples.")
        self._most = check_count(micro_batch, "micro_batch")
        self._flat = FlatParameters(module)
        self._weights = self._flat.vector
        self._sums = torch.zeros_like(self._weights)
        self._start = self._weights.clone()
        self._optimiser = optimiser_for(plan, self._weights)
        self._averaged_from = plan.steps - round(plan.averaging * plan.steps)
        self._average = torch.zeros_like(self._weights) if plan.averaging else None
        self._step = 0
        self._longest = None if residuals is None else LongestPart()
        self._residuals = residuals
        self._without = tuple(find_untapped_layers(module, self._flat))
        road = PerExample if self._without or per_example else BookKeeping
        self._road = road(module, self._flat, self._sums, loss=loss, clipping=plan.clipping)

    def __enter__(self) -> "PrivateTraining":
        self._road.__enter__()
        try:
            self._dry_run()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._road.__exit__()
        self._flat.release()

    def _dry_run(self) -> None:
        checks = ModuleDryRun(self._module, self._loss, self._road, self._flat, self._sums)
        kinds = placeholder_examples(self._examples) if self._public is None else [self._public]
        checks.check(kinds, min(self._most, ceil(self._plan.expected_batch)))

    @property
    def step(self) -> int:
        """How many steps are done."""
        return self._step

    def run(self, until: int | None = None) -> None:
        """Take steps, up to a number of them; all that are left if none is given.

        Raises:
            TrainingFailed: Weights are NaN or infinite.
        """
        last = self._plan.steps if until is None else min(until, self._plan.steps)
        while self._step < last:
            self._take_step()
            if self._step % _GATE_EVERY == 0:
                check_weights(self._weights)

    def _take_step(self) -> None:
        # One child per step: a seeded run that is restored draws what it would have drawn.
        step_source = self._source.child("step", self._step)
        self._sums.zero_()
        count = len(self._examples.targets)
        places = poisson_sample(self._plan, count, step_source.stage("sample"))
        for part in micro_batches(places, count, self._most):
            self._add(part)
        clean = None if self._residuals is None else self._sums.clone()
        add_step_noise(self._plan, self._sums, step_source.stage("noise"))
        if clean is not None:
            self._hand_out(clean, count if places is None else len(places))
        # Not divided by the size of the sample: that depends on which records there are.
        self._move(self._sums.mul_(1 / self._plan.expected_batch))

    def _add(self, part: Tensor | slice) -> None:
        """Add the clipped gradients of some examples; what cannot be computed counts as zero."""
        try:
            clipped = self._road.clip(*self._examples.taken(part))
        except NonFiniteExamples as found:
            self._add_some(self._places(part)[~found.broken])
        except Exception:  # whatever a module may raise: that it did is a fact about an example
            places = self._places(part)
            if len(places) > 1:
                for half in torch.tensor_split(places, 2):
                    self._add_some(half)
        else:
            clipped.add()
            if self._longest is not None:
                self._longest.note(clipped, self._places(part))

    def _hand_out(self, clean: Tensor, taken: int) -> None:
        """Show an observer what noise was added to, and the longest part of one example in it."""
        longest, observe = self._longest, self._residuals
        if longest is None or observe is None:
            return
        noised = self._sums.clone()
        if longest.place is not None:
            # What this example really adds: its factor may be right and not be used.
            self._sums.zero_()
            self._add(torch.tensor([longest.place]))
            longest.norm = max(longest.norm, float(torch.linalg.vector_norm(self._sums.double())))
            self._sums.copy_(noised)
        before, after = (one.double().numpy() for one in (clean, noised))
        observe(NoisedVector("step", after, before, longest.norm, taken))
        self._longest = LongestPart()

    def _add_some(self, places: Tensor) -> None:
        if len(places):
            self._add(places)

    def _places(self, part: Tensor | slice) -> Tensor:
        return torch.arange(len(self._examples.targets))[part]

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
        check_weights(self._weights)
        return SgdReport(
            plan=self._plan,
            steps=self._step,
            parameters=self._weights.numel(),
            moved=check_moved(self._start, self._weights),
            road=self._road.name,
            untapped_layers=self._without,
        )

    def snapshot(self) -> bytes:
        """Write weights, optimiser, step and plan as a safetensors file."""
        vectors = {"start": self._start, **self._optimiser.state}
        if self._average is not None:
            vectors["average"] = self._average
        weights = zip(self._flat.names, self._flat.views(self._weights), strict=True)
        return training.write_checkpoint(dict(weights), vectors, self._step, self._plan)

    def restore(self, content: bytes) -> None:
        """Go on from a snapshot of the same plan, module and examples.

        With a source that is not seeded, steps that are taken again from an older snapshot get
        other noise: if the first ones were seen by anybody, more was released than the plan says.

        Raises:
            BadSnapshot: It is none, or of another plan or another module.
        """
        kept = training.read_checkpoint(content)
        if kept.plan != self._plan:
            raise BadSnapshot("Checkpoint: is of another plan.")
        names = self._flat.names
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
    public_examples: tuple[Arrays, Arrays] | None = None,
    residuals: ResidualObserver | None = None,
) -> SgdReport:
    """Train a module privately, in place; the arguments are those of ``PrivateTraining``.

    Returns:
        What may be released. What was proved is ``plan.guarantee(delta)``.

    Raises:
        TrainingFailed: Weights are NaN or infinite or did not move, or the loss does not reach
            them.
        UnsupportedModule: The module couples examples, ties parameters, is random, or changes in
            a forward pass.
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
        public_examples=public_examples,
        residuals=residuals,
    ) as training:
        training.run()
        return training.finish()
