"""LSTM and GRU unrolled by hand, so that the gradients of gates' pre-activations can be had.

The cells as ``nn.LSTM`` (Hochreiter and Schmidhuber) and ``nn.GRU`` (Cho and others 2014) compute
them. The backward passes first work out all local derivatives at once; what is left for each step
is one product and a few passes. First states may follow from parameters: their gradients are
handed on like those of the inputs, so that a decoder can start where an encoder ended.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from noisefloor.errors import UnsupportedModule
from noisefloor.publication.private_sgd.layer_taps import Tap
from noisefloor.publication.private_sgd.matrix_gradients import BlockSums, Parted, matrix_gradients


class RecurrentTrace:
    """What one layer of an LSTM or GRU notes in one pass; time comes first in all of it."""

    __slots__ = ("back_gradients", "gradients", "hidden", "inputs")

    def __init__(self, inputs: Tensor) -> None:
        self.inputs = inputs
        self.hidden: Tensor = inputs  # set by the forward pass: one more than there are steps
        # Set by the backward pass: of the gates, as the inputs and as the last state reach them.
        self.gradients: Tensor | None = None
        self.back_gradients: Tensor | None = None


class UnrolledLstm(torch.autograd.Function):
    """One layer over all steps; gives the hidden states and the last cell state."""

    @staticmethod
    def forward(
        ctx: Any,  # what torch passes has no type
        inputs: Tensor,
        hidden_start: Tensor,
        cell_start: Tensor,
        weights: tuple[Tensor, Tensor, Tensor | None],
        trace: RecurrentTrace,
        anchor: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Compute the states, and keep what the backward pass needs."""
        across, back, bias = weights
        gates = nn.functional.linear(inputs, across, bias)
        steps, examples, _ = gates.shape
        size = back.shape[1]
        hidden, cells = gates.new_empty(2, steps + 1, examples, size)
        squashed = gates.new_empty(steps, examples, size)
        hidden[0], cells[0] = hidden_start, cell_start
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
        """Note the gradients of the gates, and hand on those of inputs and first states."""
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
        ctx.trace.gradients = ctx.trace.back_gradients = gradients
        ctx.kept = None
        handed = torch.matmul(gradients, across) if ctx.needs_input_grad[0] else None
        # After the last turn of the loop these are of the states before the first step.
        return handed, inner, carried, None, None, None


class UnrolledGru(torch.autograd.Function):
    """One layer over all steps; gives the hidden states.

    With r, z = sigmoid and n = tanh(inputs' part + r * state's part), h' = n + z (h - n). The
    state's part of n is multiplied by r, so that the two matrices get other gradients.
    """

    @staticmethod
    def forward(
        ctx: Any,  # what torch passes has no type
        inputs: Tensor,
        start: Tensor,
        weights: tuple[Tensor, Tensor, Tensor | None, Tensor | None],
        trace: RecurrentTrace,
        anchor: Tensor,
    ) -> Tensor:
        """Compute the states, and keep what the backward pass needs."""
        across, back, bias, back_bias = weights
        gates = nn.functional.linear(inputs, across, bias)
        steps, examples, _ = gates.shape
        size = back.shape[1]
        hidden = gates.new_empty(steps + 1, examples, size)
        offered = gates.new_empty(steps, examples, size)
        hidden[0] = start
        for step in range(steps):
            before, gate = hidden[step], gates[step]
            reached = nn.functional.linear(before, back, back_bias)
            gate[:, : 2 * size].add_(reached[:, : 2 * size]).sigmoid_()
            reset, keep, offer = gate.view(examples, 3, size).unbind(1)
            offered[step] = reached[:, 2 * size :]
            offer.addcmul_(reset, offered[step]).tanh_()
            torch.lerp(offer, before, keep, out=hidden[step + 1])
        trace.hidden = hidden
        ctx.trace, ctx.weights = trace, (across, back)
        ctx.kept = (gates.view(steps, examples, 3, size), offered)
        return hidden[1:]

    @staticmethod
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor | None, ...]:
        """Note the gradients of the gates, and hand on those of inputs and first state."""
        gates, offered = ctx.kept
        across, back = ctx.weights
        hidden = ctx.trace.hidden
        reset, keep, offer = gates.unbind(2)
        steps, examples, _, size = gates.shape
        # From dh': d n = (1 - z)(1 - n^2) dh', d z = (h - n) z (1 - z) dh', d r = d n * part.
        local = torch.empty_like(gates)
        torch.mul(1 - keep, 1 - offer * offer, out=local[:, :, 2])
        torch.mul(hidden[:-1] - offer, keep - keep * keep, out=local[:, :, 1])
        torch.mul(local[:, :, 2] * offered, reset - reset * reset, out=local[:, :, 0])
        reached = local.clone()
        reached[:, :, 2].mul_(reset)
        gradients, back_gradients = (
            one.view(steps, examples, 3 * size) for one in (local, reached)
        )
        arriving = torch.zeros_like(hidden[0])
        for step in reversed(range(steps)):
            arriving = arriving + outer[step]
            for one in (local, reached):
                one[step].mul_(arriving.unsqueeze(1))
            arriving = torch.addmm(arriving * keep[step], back_gradients[step], back)
        ctx.trace.gradients, ctx.trace.back_gradients = gradients, back_gradients
        ctx.kept = None
        handed = torch.matmul(gradients, across) if ctx.needs_input_grad[0] else None
        return handed, arriving, None, None, None


class RecurrentTap(Tap):
    """Keeps the book of recurrent layers, one above another; weights are tied over time."""

    def __init__(self, layer: nn.LSTM | nn.GRU) -> None:
        super().__init__(layer)
        self._traces: list[list[RecurrentTrace]] = []
        self._anchors: list[Tensor] = []

    @staticmethod
    def takes(layer: nn.LSTM | nn.GRU) -> bool:
        """Whether this tap can stand in: plain ones, one direction, examples first."""
        return layer.batch_first and not layer.bidirectional and not layer.proj_size

    def forget(self) -> None:
        """Drop what was noted."""
        super().forget()
        self._traces.clear()
        self._anchors.clear()

    def tracked_outputs(self) -> list[Tensor]:
        """Return what is on the way to which every backward pass comes by all gates."""
        super().tracked_outputs()
        return self._anchors

    def parts(self, gradients: Sequence[Tensor | None]) -> Parted:
        """Return what the examples say about the layers, from the gates' gradients."""
        found = []
        for number in range(self.layer.num_layers):
            traces = [traces[number] for traces in self._traces]
            used = [trace for trace in traces if trace.gradients is not None]
            if used:
                found += self._rows(number, used)
        return found

    def _rows(self, number: int, used: Sequence[RecurrentTrace]) -> Parted:
        def joined(parts: list[Tensor | None]) -> Tensor:
            some = [part for part in parts if part is not None]
            return (some[0] if len(some) == 1 else torch.cat(some)).transpose(0, 1)

        inputs = (joined([trace.inputs for trace in used]), self._blocks("weight_ih", number))
        before = (joined([trace.hidden[:-1] for trace in used]), self._blocks("weight_hh", number))
        biases = [self._blocks(name, number) for name in ("bias_ih", "bias_hh")]
        gradients = joined([trace.gradients for trace in used])
        if used[0].back_gradients is used[0].gradients:  # one product of both with themselves
            return matrix_gradients([inputs, before], gradients, biases)
        back_gradients = joined([trace.back_gradients for trace in used])
        return matrix_gradients([inputs], gradients, biases[:1]) + matrix_gradients(
            [before], back_gradients, biases[1:]
        )

    def _blocks(self, name: str, number: int) -> Sequence[BlockSums]:
        return self.places.get(f"{name}_l{number}", ())

    def _weight(self, name: str, number: int) -> Tensor:
        weight: Tensor = getattr(self.layer, f"{name}_l{number}")
        return weight

    def _begun(self, inputs: object) -> tuple[Tensor, Tensor]:
        """Check what a layer is given; return the inputs with time first, and an anchor."""
        kind = type(self.layer).__name__
        if not isinstance(inputs, Tensor) or inputs.dim() != 3:
            raise UnsupportedModule(f"{kind}: takes [examples, steps, values], not packed.")
        anchor = inputs.new_empty(0, requires_grad=torch.is_grad_enabled())
        return inputs.transpose(0, 1).contiguous(), anchor

    def _ended(
        self, inputs: Tensor, values: Tensor, traces: list[RecurrentTrace], anchor: Tensor
    ) -> Tensor:
        """Note a use if gradients are tracked; return the outputs with examples first."""
        outputs = values.transpose(0, 1)
        if anchor.requires_grad:
            outputs = self._noted(inputs, outputs)
            self._traces.append(traces)
            self._anchors.append(anchor)
        return outputs

    def _start(self, inputs: Tensor, states: Tensor | None, number: int) -> Tensor:
        if states is None:
            return inputs.new_zeros(len(inputs), self.layer.hidden_size)
        if states.dim() != 3 or states.shape[1] != len(inputs):
            kind = type(self.layer).__name__
            raise UnsupportedModule(f"{kind}: takes first states as [layers, examples, values].")
        return states[number]


class LstmTap(RecurrentTap):
    """Keeps the book of an LSTM of one or more layers."""

    def forward(  # type: ignore[override] # an LSTM returns its states, too
        self, inputs: Tensor, states: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Do what the layer does, step by step."""
        values, anchor = self._begun(inputs)
        first, second = states or (None, None)
        traces, ends = [], []
        for number in range(self.layer.num_layers):
            trace = RecurrentTrace(values.detach())
            start = self._start(inputs, first, number), self._start(inputs, second, number)
            values, cell = UnrolledLstm.apply(  # type: ignore[no-untyped-call] # torch's own
                values, *start, self._weights(number), trace, anchor
            )
            traces.append(trace)
            ends.append((values[-1], cell))
        hidden, cells = (torch.stack(states) for states in zip(*ends, strict=True))
        return self._ended(inputs, values, traces, anchor), (hidden, cells)

    def _weights(self, number: int) -> tuple[Tensor, Tensor, Tensor | None]:
        across, back = (self._weight(name, number) for name in ("weight_ih", "weight_hh"))
        if not self.layer.bias:
            return across, back, None
        return across, back, self._weight("bias_ih", number) + self._weight("bias_hh", number)


class GruTap(RecurrentTap):
    """Keeps the book of a GRU of one or more layers."""

    def forward(  # type: ignore[override] # a GRU returns its states, too
        self, inputs: Tensor, states: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Do what the layer does, step by step."""
        values, anchor = self._begun(inputs)
        traces, ends = [], []
        for number in range(self.layer.num_layers):
            trace = RecurrentTrace(values.detach())
            start = self._start(inputs, states, number)
            values = UnrolledGru.apply(  # type: ignore[no-untyped-call] # torch's own
                values, start, self._weights(number), trace, anchor
            )
            traces.append(trace)
            ends.append(values[-1])
        return self._ended(inputs, values, traces, anchor), torch.stack(ends)

    def _weights(self, number: int) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
        across, back = (self._weight(name, number) for name in ("weight_ih", "weight_hh"))
        if not self.layer.bias:
            return across, back, None, None
        return across, back, self._weight("bias_ih", number), self._weight("bias_hh", number)
