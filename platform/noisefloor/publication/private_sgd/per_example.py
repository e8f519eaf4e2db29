"""Sums of clipped gradients, with the gradient of each example written out: the slow road.

For modules with layers that have no tap. All gradients of a batch are in memory at once, so cut
batches into small parts.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap

from noisefloor.publication.private_sgd.bookkeeping import (
    Inputs,
    Loss,
    check_losses,
    check_total,
)
from noisefloor.publication.private_sgd.clipping import Clipping
from noisefloor.publication.private_sgd.contributions import squared_norms
from noisefloor.publication.private_sgd.factors import clip_factors
from noisefloor.publication.private_sgd.parameters import FlatParameters


class PerExample:
    """Adds up clipped gradients by torch.func, or one by one where that cannot be; a context.

    Args:
        module: Any that does not couple examples.
        flat: Its parameters.
        sums: A vector like ``flat.vector``, to which gradients are added.
        loss: Gives the loss of each example.
        clipping: How gradients are clipped.
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
    ) -> None:
        self._module, self._loss, self._clipping = module, loss, clipping
        self._sums = flat.views(sums)
        self._parameters: dict[str, Tensor] = {}
        self._groups: list[int] = []
        for layer, own in flat.owners.items():
            for name, parameter in own.items():
                self._parameters[f"{layer}.{name}" if layer else name] = parameter
                self._groups.append(clipping.group_of(layer))
        self._can_map = True

    def __enter__(self) -> "PerExample":
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def add(self, inputs: Inputs, targets: Tensor) -> Tensor:
        """Add the clipped gradients of a batch; return each example's squared norm, unclipped."""
        gradients = self._gradients(inputs, targets)
        with torch.no_grad():
            squares = [
                torch.zeros(len(targets), dtype=self._sums[0].dtype) for _ in self._clipping.bounds
            ]
            for one, group in zip(gradients, self._groups, strict=True):
                squares[group] += squared_norms(one)
            factors = clip_factors(self._clipping, squares)
            for one, sums, group in zip(gradients, self._sums, self._groups, strict=True):
                sums.view(-1).addmv_(one.t(), factors[group])
        return torch.stack(squares).sum(0)

    def _gradients(self, inputs: Inputs, targets: Tensor) -> list[Tensor]:
        """Return the gradients of each parameter, an example in each row."""
        if self._can_map:
            try:
                return self._mapped(inputs, targets)
            except (RuntimeError, NotImplementedError):
                self._can_map = False  # some operations have no rule for vmap
        return self._one_by_one(inputs, targets)

    def _mapped(self, inputs: Inputs, targets: Tensor) -> list[Tensor]:
        def of_one(parameters: Mapping[str, Tensor], target: Tensor, *values: Tensor) -> Tensor:
            outputs = functional_call(
                self._module, dict(parameters), tuple(value.unsqueeze(0) for value in values)
            )
            return self._loss(outputs, target.unsqueeze(0)).sum()

        detached = {name: one.detach() for name, one in self._parameters.items()}
        found, losses = vmap(
            grad_and_value(of_one), in_dims=(None, *(0 for _ in (targets, *inputs)))
        )(detached, targets, *inputs)
        check_total(losses)
        return [found[name].reshape(len(targets), -1) for name in self._parameters]

    def _one_by_one(self, inputs: Inputs, targets: Tensor) -> list[Tensor]:
        parameters = list(self._parameters.values())
        rows: list[Tensor] = []
        for place in range(len(targets)):
            some = slice(place, place + 1)
            outputs = self._module(*(one[some] for one in inputs))
            loss = check_total(check_losses(self._loss(outputs, targets[some]), 1))
            found = torch.autograd.grad(loss, parameters, allow_unused=True)
            rows.append(
                torch.cat(
                    [
                        (torch.zeros_like(like) if one is None else one).reshape(-1)
                        for one, like in zip(found, parameters, strict=True)
                    ]
                )
            )
        sizes = [one.numel() for one in parameters]
        return list(torch.split(torch.stack(rows), sizes, dim=1))
