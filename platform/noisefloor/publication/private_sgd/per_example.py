"""Sums of clipped gradients, with the gradient of each example written out: the slow road.

For modules with layers that have no tap. All gradients of a batch are in memory at once, so cut
batches into small parts.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap

from noisefloor.publication.private_sgd.bookkeeping import Inputs, Loss, check_losses, check_total
from noisefloor.publication.private_sgd.clipping import Clipping
from noisefloor.publication.private_sgd.contributions import (
    ClippedBatch,
    NonFiniteExamples,
    clip_factors,
    squares_by_group,
)
from noisefloor.publication.private_sgd.coordinates import GradientLayout
from noisefloor.publication.private_sgd.matrix_gradients import BlockSums, written_gradients
from noisefloor.publication.private_sgd.module_state import ModuleState
from noisefloor.publication.private_sgd.parameters import FlatParameters


class PerExample:
    """Adds up clipped gradients by torch.func, or one by one where that cannot be; a context.

    Args:
        module: Any that does not couple examples.
        flat: Its parameters.
        sums: A vector like ``flat.vector``, to which gradients are added.
        loss: Gives the loss of each example.
        clipping: How gradients are clipped.
        layout: Which coordinates there are; all of them, of scale 1, if left out.
    """

    name = "per-example"

    def __init__(
        self,
        module: nn.Module,
        flat: FlatParameters,
        sums: Tensor,
        *,
        loss: Loss,
        clipping: Clipping,
        layout: GradientLayout | None = None,
    ) -> None:
        self._module, self._loss, self._flat = module, loss, flat
        self.clipping = clipping
        self._parameters: dict[str, Tensor] = dict(zip(flat.names, flat.parameters, strict=True))
        self._can_map = True
        self.use(GradientLayout(flat.named, clipping) if layout is None else layout, sums)

    def use(self, layout: GradientLayout, sums: Tensor) -> None:
        """Say which coordinates there are from now on, and where their sums go."""
        self.layout = layout
        views = zip(layout.blocks, layout.views(sums), strict=True)
        self._places = [[*map(BlockSums, *some)] for some in views]

    def __enter__(self) -> "PerExample":
        self._state = ModuleState(
            [one for one in (self._module, self._loss) if isinstance(one, nn.Module)], self._flat
        )
        return self

    def __exit__(self, *_: object) -> None:
        return None

    @contextmanager
    def by_autograd(self) -> Iterator[list[nn.Parameter]]:
        """Return the parameters: they ask for gradients already."""
        yield self._flat.parameters

    def settle(self) -> None:
        """Do nothing: there are no taps."""

    def clip(self, inputs: Inputs, targets: Tensor) -> ClippedBatch:
        """Return the clipped gradients of a batch; the module is as it was afterwards.

        Raises:
            BrokenExamples: A loss or a gradient is not finite.
        """
        gradients = self._gradients(inputs, targets)
        with torch.no_grad():
            found = written_gradients([*zip(gradients, self._places, strict=True)])
            parts, groups = self.layout.parts, len(self.clipping.bounds)
            nothing = torch.zeros(len(targets), dtype=gradients[0].dtype)
            squares = squares_by_group(found, parts, groups, nothing)
            return ClippedBatch(found, squares, clip_factors(self.clipping, squares), parts)

    def _gradients(self, inputs: Inputs, targets: Tensor) -> list[Tensor]:
        """Return the gradients of each parameter, an example in each row."""
        if self._can_map:
            try:
                return self._mapped(inputs, targets)
            except NonFiniteExamples:
                raise
            except Exception:  # some operations have no rule for vmap, and say so in many ways
                self._can_map = False
        return self._one_by_one(inputs, targets)

    def _mapped(self, inputs: Inputs, targets: Tensor) -> list[Tensor]:
        def of_one(parameters: Mapping[str, Tensor], target: Tensor, *values: Tensor) -> Tensor:
            outputs = functional_call(
                self._module, dict(parameters), tuple(value.unsqueeze(0) for value in values)
            )
            return self._loss(outputs, target.unsqueeze(0)).sum()

        detached = {name: one.detach() for name, one in self._parameters.items()}
        mapped = vmap(grad_and_value(of_one), in_dims=(None, *(0 for _ in (targets, *inputs))))
        with self._state.preserved():
            found, losses = mapped(detached, targets, *inputs)
        check_total(losses)
        return [found[name].reshape(len(targets), -1) for name in self._parameters]

    def _one_by_one(self, inputs: Inputs, targets: Tensor) -> list[Tensor]:
        parameters = self._flat.parameters
        rows: list[Tensor] = []
        losses: list[Tensor] = []
        for place in range(len(targets)):
            some = slice(place, place + 1)
            with self._state.preserved():
                outputs = self._module(*(one[some] for one in inputs))
                loss = check_losses(self._loss(outputs, targets[some]), 1)
                found = torch.autograd.grad(loss.sum(), parameters, allow_unused=True)
            losses.append(loss.detach())
            rows.append(self._flat.joined(found))
        check_total(torch.cat(losses))
        sizes = [one.numel() for one in parameters]
        return list(torch.split(torch.stack(rows), sizes, dim=1))
