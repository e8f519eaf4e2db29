"""An LSTM unrolled by hand, so that the gradients of its gates' pre-activations can be had.

Hochreiter and Schmidhuber's cell as ``nn.LSTM`` computes it. The backward pass first works out all
local derivatives at once; what is left for each step is one product and a few passes.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from noisefloor.errors import UnsupportedModule
from noisefloor.publication.private_sgd.contributions import Contribution, SummedOuterProducts
from noisefloor.publication.private_sgd.layer_taps import Sums, Tap


class LstmTrace:
    """What one layer of an LSTM notes in one pass; time comes first in all of it."""

    __slots__ = ("gradients", "hidden", "inputs")

    def __init__(self, inputs: Tensor) -> None:
        self.inputs = inputs
        self.hidden: Tensor = inputs  # set by the forward pass: one more than there are steps
        self.gradients: Tensor | None = None  # set by the backward pass, of the four gates


class UnrolledLstm(torch.autograd.Function):
    """One layer over all steps; gives the hidden states and the last cell state."""

    @staticmethod
    def forward(
        ctx: Any,  # what torch passes has no type
        inputs: Tensor,
        start: tuple[Tensor, Tensor],
        weights: tuple[Tensor, Tensor, Tensor | None],
        trace: LstmTrace,
        anchor: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Compute the states, and keep what the backward pass needs."""
        across, back, bias = weights
        gates = nn.functional.linear(inputs, across, bias)
        steps, examples, _ = gates.shape
        size = back.shape[1]
        hidden, cells = gates.new_empty(2, steps + 1, examples, size)
        squashed = gates.new_empty(steps, examples, size)
        hidden[0], cells[0] = start
        turned = back.t()
        parts = gates.view(steps, examples, 4, size)
        for gate, part, before, after, cell, new, out in zip(
            *(gates.unbind(), parts.unbind()),
            *(hidden[:-1].unbind(), hidden[1:].unbind(), cells[:-1].unbind(), cells[1:].unbind()),
            squashed.unbind(),
            strict=True,
        ):
            gate.addmm_(before, turned)
            take, forget, offer, show = part.unbind(1)
            gate[:, : 2 * size].sigmoid_()
            offer.tanh_()
            show.sigmoid_()
            torch.mul(forget, cell, out=new).addcmul_(take, offer)
            torch.mul(show, torch.tanh(new, out=out), out=after)
        trace.hidden = hidden
        ctx.trace, ctx.weights = trace, (across, back)
        ctx.kept = (parts, cells, squashed)
        ctx.set_materialize_grads(False)
        return hidden[1:], cells[-1]

    @staticmethod
    def backward(ctx: Any, outer: Tensor | None, last: Tensor | None) -> tuple[Tensor | None, ...]:
        """Note the gradients of the gates, and hand on that of the inputs."""
        parts, cells, squashed = ctx.kept
        across, back = ctx.weights
        take, forget, offer, show = parts.unbind(2)
        # d gate = local * d cell for the first three; the last one's has the output's gradient.
        local = torch.empty_like(parts)
        torch.mul(offer, take - take * take, out=local[:, :, 0])
        torch.mul(cells[:-1], forget - forget * forget, out=local[:, :, 1])
        torch.mul(take, 1 - offer * offer, out=local[:, :, 2])
        torch.mul(squashed, show - show * show, out=local[:, :, 3])
        through = show * (1 - squashed * squashed)
        steps, examples, _, size = parts.shape
        gradients = local.view(steps, examples, 4 * size)
        carried = torch.zeros_like(cells[0]) if last is None else last
        inner: Tensor | None = None
        for step in reversed(range(steps)):
            arriving = None if outer is None else outer[step]
            if inner is not None:
                arriving = inner if arriving is None else arriving + inner
            shares = local[step]
            if arriving is None:
                cell, shown = carried, torch.zeros_like(carried)
            else:
                cell, shown = torch.addcmul(carried, arriving, through[step]), arriving
            shares[:, :3].mul_(cell.unsqueeze(1))
            shares[:, 3].mul_(shown)
            carried = cell * forget[step]
            inner = torch.mm(gradients[step], back)
        ctx.trace.gradients = gradients
        ctx.kept = None
        handed = torch.matmul(gradients, across) if ctx.needs_input_grad[0] else None
        return handed, None, None, None, None


class LstmTap(Tap):
    """Keeps the book of an LSTM of one or more layers; weights are tied over time."""

    def __init__(self, layer: nn.LSTM, sums: Sums) -> None:
        super().__init__(layer, sums)
        self._traces: list[list[LstmTrace]] = []
        self._anchors: list[Tensor] = []

    @staticmethod
    def takes(layer: nn.LSTM) -> bool:
        """Whether this tap can stand in: plain ones, one direction, examples first."""
        return layer.batch_first and not layer.bidirectional and not layer.proj_size

    def forget(self) -> None:
        """Drop what was noted."""
        super().forget()
        self._traces.clear()
        self._anchors.clear()

    def forward(  # type: ignore[override] # an LSTM returns its states, too
        self, inputs: Tensor, states: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Do what the layer does, step by step."""
        if not isinstance(inputs, Tensor) or inputs.dim() != 3:
            raise UnsupportedModule("An LSTM takes [examples, steps, values], not packed.")
        if states is not None and any(state.requires_grad for state in states):
            raise UnsupportedModule("The first states of an LSTM are not trained: detach them.")
        is_noted = torch.is_grad_enabled()
        anchor = inputs.new_empty(0, requires_grad=is_noted)
        values, traces, ends = inputs.transpose(0, 1).contiguous(), [], []
        for number in range(self.layer.num_layers):
            trace = LstmTrace(values.detach())
            start = self._start(inputs, states, number)
            values, cell = UnrolledLstm.apply(  # type: ignore[no-untyped-call] # torch's own
                values, start, self._weights(number), trace, anchor
            )
            traces.append(trace)
            ends.append((values[-1], cell))
        hidden, cells = (torch.stack(states) for states in zip(*ends, strict=True))
        outputs = values.transpose(0, 1)
        if is_noted:
            outputs = self._noted(inputs, outputs)
            self._traces.append(traces)
            self._anchors.append(anchor)
        return outputs, (hidden, cells)

    def tracked_outputs(self) -> list[Tensor]:
        """Return what is on the way to which every backward pass comes by all gates."""
        super().tracked_outputs()
        return self._anchors

    def contribution(self, gradients: Sequence[Tensor | None]) -> Contribution | None:
        """Return what the examples say about the layers, from the gates' gradients."""
        found = []
        for number in range(self.layer.num_layers):
            traces = [traces[number] for traces in self._traces]
            used = [trace for trace in traces if trace.gradients is not None]
            if used:
                found.append(self._rows(number, used))
        return JointContribution(found) if found else None

    def _rows(self, number: int, used: Sequence[LstmTrace]) -> SummedOuterProducts:
        def joined(parts: list[Tensor]) -> Tensor:
            return (parts[0] if len(parts) == 1 else torch.cat(parts)).transpose(0, 1)

        gradients = joined([trace.gradients for trace in used if trace.gradients is not None])
        inputs = joined([trace.inputs for trace in used])
        before = joined([trace.hidden[:-1] for trace in used])
        named = {f"weight_ih_l{number}": inputs, f"weight_hh_l{number}": before}
        pairs = [(one, self.sums[name]) for name, one in named.items() if name in self.sums]
        biases = (f"bias_ih_l{number}", f"bias_hh_l{number}")
        return SummedOuterProducts(
            pairs, gradients, [self.sums[name] for name in biases if name in self.sums]
        )

    def _start(
        self, inputs: Tensor, states: tuple[Tensor, Tensor] | None, number: int
    ) -> tuple[Tensor, Tensor]:
        if states is not None:
            return states[0][number], states[1][number]
        nothing = inputs.new_zeros(len(inputs), self.layer.hidden_size)
        return nothing, nothing

    def _weights(self, number: int) -> tuple[Tensor, Tensor, Tensor | None]:
        layer = self.layer
        across = getattr(layer, f"weight_ih_l{number}")
        back = getattr(layer, f"weight_hh_l{number}")
        if not layer.bias:
            return across, back, None
        bias = getattr(layer, f"bias_ih_l{number}") + getattr(layer, f"bias_hh_l{number}")
        return across, back, bias


class JointContribution:
    """Contributions to several parameters, as one.

    Args:
        parts: At least one.
    """

    def __init__(self, parts: Sequence[Contribution]) -> None:
        self._parts = parts

    def squares(self) -> Tensor:
        """Return the sums of the parts' squared norms."""
        return torch.stack([part.squares() for part in self._parts]).sum(0)

    def add(self, factors: Tensor) -> None:
        """Add each part."""
        for part in self._parts:
            part.add(factors)
