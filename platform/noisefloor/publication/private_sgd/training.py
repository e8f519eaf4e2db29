"""A private training, step by step, that can be stopped and taken up again."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

from noisefloor.checks import check_count
from noisefloor.errors import BadSnapshot, OutOfDomain
from noisefloor.publication.noised_vectors import NoisedVector, ResidualObserver
from noisefloor.publication.private_sgd.bookkeeping import BookKeeping, Loss, find_untapped_layers
from noisefloor.publication.private_sgd.checkpoints import read_checkpoint, write_checkpoint
from noisefloor.publication.private_sgd.contributions import LongestPart, NonFiniteExamples
from noisefloor.publication.private_sgd.module_checks import (
    ExampleBatch,
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
from noisefloor.publication.private_sgd.padded_inputs import PaddedInputs
from noisefloor.publication.private_sgd.parameters import FlatParameters
from noisefloor.publication.private_sgd.per_example import PerExample
from noisefloor.publication.private_sgd.plan import SgdPlan
from noisefloor.publication.private_sgd.step_layouts import MaskRule, StepLayouts
from noisefloor.publication.private_sgd.subsampled_gaussian import (
    add_step_noise,
    micro_batches,
    poisson_sample,
)
from noisefloor.randomness import Source

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
        coordinates: How many numbers were noised in a step, at last: fewer where some are left out
            or matrices are carried.
        moved: How far they are from where they started, in L2.
        road: ``"book-keeping"``, or ``"per-example"``, the slow one.
        untapped_layers: The layers that are the reason for the slow road.
    """

    plan: SgdPlan
    steps: int
    parameters: int
    coordinates: int
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
        masks: Says what is trained of some parameters, from weights that are released; the rest
            is left out of norms, sums, noise and optimiser, and stands still. Called before the
            first step with the first weights, and before each later one if ``renews_masks``. It
            sees nothing else, and must not: a mask made from gradients would not be covered.
        renews_masks: Whether masks follow the weights, or stay as they are.
        padding: Which inputs are padded sequences: they are cut to about their own length.
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
        masks: MaskRule | None = None,
        renews_masks: bool = False,
        padding: PaddedInputs | None = None,
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
        self._start = self._weights.clone()
        self._layouts = StepLayouts(self._flat, plan, masks, is_renewed=renews_masks)
        self._padding = padding
        if padding is not None:
            padding.check(self._examples)
        self._optimiser = optimiser_for(plan, self._weights, self._rates())
        self._averaged_from = plan.steps - round(plan.averaging * plan.steps)
        self._average = torch.zeros_like(self._weights) if plan.averaging else None
        self._step = 0
        self._longest = None if residuals is None else LongestPart()
        self._residuals = residuals
        self._without = tuple(find_untapped_layers(module, self._flat))
        self._layout = self._layouts.first(self._weights)
        self._sums = torch.zeros(self._layout.size, dtype=self._weights.dtype)
        road = PerExample if self._without or per_example else BookKeeping
        self._road = road(
            module,
            self._flat,
            self._sums,
            loss=loss,
            clipping=plan.clipping,
            layout=self._layout,
        )

    def _rates(self) -> Tensor | None:
        """Return the rate of each weight as a multiple of the plan's; None if all are one."""
        rates = [self._plan.group_of(name).rate for name in self._flat.names]
        if all(rate == 1 for rate in rates):
            return None
        views = self._flat.views(torch.empty_like(self._weights))
        return torch.cat(
            [torch.full_like(view, rate).view(-1) for view, rate in zip(views, rates, strict=True)]
        )

    def _renew(self, step_source: Source) -> None:
        """Lay coordinates out anew if they change from step to step, or on the first one."""
        layout = self._layouts.next(self._weights, self._start, step_source)
        if layout is not None:
            self._layout = layout
            if layout.size != len(self._sums):
                self._sums = torch.zeros(layout.size, dtype=self._weights.dtype)
            self._road.use(layout, self._sums)

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
        largest = min(self._most, ceil(self._plan.expected_batch))
        checks.check(self._public_kinds(), largest)
        if self._padding is not None:  # a module that takes no shorter ones would raise later
            checks.check(map(self._padding.cut_most, self._public_kinds()), largest)

    def _public_kinds(self) -> Iterable[ExampleBatch]:
        return placeholder_examples(self._examples) if self._public is None else [self._public]

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
        self._renew(step_source)  # before a sample is drawn: nothing of it can come in
        self._sums.zero_()
        count = len(self._examples.targets)
        places = poisson_sample(self._plan, count, step_source.stage("sample"))
        for part in self._parts(places):
            self._add(part)
        clean = None if self._residuals is None else self._sums.clone()
        add_step_noise(self._plan, self._sums, step_source.stage("noise"))
        if clean is not None:
            self._hand_out(clean, count if places is None else len(places))
        # Not divided by the size of the sample: that depends on which records there are.
        self._move(self._sums.mul_(1 / self._plan.expected_batch))

    def _parts(self, places: Tensor | None) -> Iterable[Tensor | slice]:
        count = len(self._examples.targets)
        if self._padding is None:
            return micro_batches(places, count, self._most)
        return self._padding.micro_batches(places, self._most)

    def _taken(self, part: Tensor | slice) -> ExampleBatch:
        taken = self._examples.taken(part)
        return taken if self._padding is None else self._padding.cut(taken, part)

    def _add(self, part: Tensor | slice) -> None:
        """Add the clipped gradients of some examples; what cannot be computed counts as zero."""
        try:
            clipped = self._road.clip(*self._taken(part))
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

    def _move(self, noised: Tensor) -> None:
        """Hand the noisy mean to the optimiser; from here on everything is post-processing."""
        gradient, moving = self._layout.gradient(noised), self._layout.moving
        if self._plan.weight_decay:
            weights = self._weights if moving is None else self._weights[moving]
            gradient.add_(weights, alpha=self._plan.weight_decay)
        self._step += 1
        self._optimiser.move(self._weights, gradient, self._step, moving)
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
            coordinates=self._layout.size,
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
        return write_checkpoint(dict(weights), vectors, self._step, self._plan)

    def restore(self, content: bytes) -> None:
        """Go on from a snapshot of the same plan, module and examples, with the same masks.

        With a source that is not seeded, steps that are taken again from an older snapshot get
        other noise: if the first ones were seen by anybody, more was released than the plan says.

        Raises:
            BadSnapshot: It is none, or of another plan or another module.
        """
        kept = read_checkpoint(content)
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
        self._layouts.forget()


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
    masks: MaskRule | None = None,
    renews_masks: bool = False,
    padding: PaddedInputs | None = None,
    residuals: ResidualObserver | None = None,
) -> SgdReport:
    """Train a module privately, in place; the arguments are those of ``PrivateTraining``.

    Returns:
        What may be released. What was proved is ``plan.guarantee(delta)``.

    Raises:
        TrainingFailed: Weights are NaN or infinite or did not move, or the loss does not reach
            them.
        UnsupportedModule: The module couples examples, is random, or changes in a forward pass.
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
        masks=masks,
        renews_masks=renews_masks,
        padding=padding,
        residuals=residuals,
    ) as training:
        training.run()
        return training.finish()
