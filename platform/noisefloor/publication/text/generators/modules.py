"""Generators as plain modules, made of layers that private SGD clips by book-keeping.

Each takes pieces and gives, at every position, the logits of the next piece. Nothing in them is
random: what dropout leaves out is an input of the module (``keep``), drawn for each text by
the training, so that a gradient is a function of one text and its own draws.

Besides ``forward`` over whole texts there is ``begin`` and ``advance``, one piece at a time for
many texts at once.
"""

from typing import Protocol, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

from noisefloor.publication.text.generators.shapes import GeneratorShape

States: TypeAlias = tuple[Tensor, ...]
"""What is kept between pieces. Of an LSTM: hidden and cell states, [layers, texts, values]. Of a
transformer: the next position, what the label adds to every piece, then keys and values of each
block, with texts first; ``advance`` writes to these."""


class PieceModule(Protocol):
    """What generators have in common."""

    head: nn.Linear
    embedding: nn.Embedding

    def __call__(self, inputs: Tensor, read: Tensor, labels: Tensor, keep: Tensor) -> Tensor:
        """Return logits, [texts, positions, places].

        Args:
            inputs: Places of pieces, [texts, positions].
            read: What an encoder reads, -1 where nothing is; no columns without an encoder.
            labels: Of each text.
            keep: Factors of dropout, [texts, both widths]; no columns without dropout.
        """

    def begin(self, read: Tensor, labels: Tensor) -> States:
        """Return what is known before the first piece."""

    def advance(self, pieces: Tensor, states: States) -> tuple[Tensor, States]:
        """Take one piece of each text; return the logits of the next ones, and what is kept."""

    def first(self, states: States, count: int) -> States:
        """Return what is kept of the first texts."""


def module_of(shape: GeneratorShape) -> "LstmGenerator | TransformerGenerator":
    """Return a module of a shape, with weights that mean nothing yet."""
    return TransformerGenerator(shape) if shape.kind == "transformer" else LstmGenerator(shape)


class LstmGenerator(nn.Module):
    """An LSTM that predicts pieces, started by an encoder's last state, by a label, or by zeros.

    Args:
        shape: Of kind ``encoder-decoder`` or ``language-model``.
    """

    def __init__(self, shape: GeneratorShape) -> None:
        super().__init__()
        self._layers, self._width = shape.layers, shape.embedding
        self.embedding = nn.Embedding(shape.vocabulary, shape.embedding)
        sizes = (shape.embedding, shape.hidden, shape.layers)
        self.encoder = (
            nn.LSTM(*sizes, batch_first=True) if shape.kind == "encoder-decoder" else None
        )
        self.decoder = nn.LSTM(*sizes, batch_first=True)
        wide = 2 * shape.layers * shape.hidden
        self.starts = nn.Embedding(shape.classes, wide) if shape.classes else None
        self.bridge = nn.Linear(shape.hidden, shape.embedding) if shape.is_tied else None
        self.head = _head(self.embedding, shape, shape.hidden)

    def forward(self, inputs: Tensor, read: Tensor, labels: Tensor, keep: Tensor) -> Tensor:
        """Return logits at every position."""
        values = _masked(self.embedding(inputs), keep[:, : self._width])
        outputs, _ = self.decoder(values, self.begin(read, labels))
        return self._logits(outputs, keep[:, self._width :])

    def begin(self, read: Tensor, labels: Tensor) -> States:
        """Return the decoder's first states."""
        size = (self._layers, len(labels), self.decoder.hidden_size)
        hidden = cells = self.embedding.weight.new_zeros(size)
        if self.encoder is not None:
            is_piece = (read >= 0).unsqueeze(2)
            _, (hidden, cells) = self.encoder(self.embedding(read.clamp(min=0)) * is_piece)
        if self.starts is not None:
            own = self.starts(labels).view(len(labels), 2, self._layers, -1)
            more, more_cells = own.permute(1, 2, 0, 3).contiguous().unbind()
            hidden, cells = hidden + more, cells + more_cells
        return hidden, cells

    def advance(self, pieces: Tensor, states: States) -> tuple[Tensor, States]:
        """Take one piece of each text; return the logits of the next ones, and the states."""
        outputs, after = self.decoder(self.embedding(pieces.unsqueeze(1)), states)
        return self._logits(outputs, pieces.new_empty(len(pieces), 0))[:, 0], after

    def first(self, states: States, count: int) -> States:
        """Return the states of the first texts."""
        return tuple(one[:, :count].contiguous() for one in states)

    def _logits(self, outputs: Tensor, keep: Tensor) -> Tensor:
        outputs = outputs if self.bridge is None else self.bridge(outputs)
        logits: Tensor = self.head(_masked(outputs, keep))
        return logits


class CausalBlock(nn.Module):
    """Attention to the pieces so far, and a wide layer; both after a normalisation.

    Args:
        shape: Its width, heads and wide layer are taken.
    """

    def __init__(self, shape: GeneratorShape) -> None:
        super().__init__()
        width, self._heads = shape.embedding, shape.heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mixed, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, shape.hidden), nn.Linear(shape.hidden, width)

    def forward(self, values: Tensor) -> Tensor:
        """Return the values of all positions."""
        query, key, value = self.parts(values)
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.joined(values, seen)

    def parts(self, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values, [texts, heads, positions, values]."""
        mixed = self.mixed(self.before(values)).unflatten(2, (3, self._heads, -1))
        query, key, value = mixed.permute(2, 0, 3, 1, 4).unbind()
        return query, key, value

    def joined(self, values: Tensor, seen: Tensor) -> Tensor:
        """Add what attention saw, and what the wide layer makes of it."""
        values = values + self.out(seen.transpose(1, 2).flatten(2))
        added: Tensor = self.narrow(functional.gelu(self.wide(self.between(values))))
        return values + added


class TransformerGenerator(nn.Module):
    """Blocks of causal attention over pieces, positions and the label.

    Args:
        shape: Of kind ``transformer``.
    """

    def __init__(self, shape: GeneratorShape) -> None:
        super().__init__()
        width = self._width = shape.embedding
        self.embedding = nn.Embedding(shape.vocabulary, width)
        self.positions = nn.Embedding(shape.positions, width)
        self.starts = nn.Embedding(shape.classes, width) if shape.classes else None
        self._heads = shape.heads
        self.blocks = nn.ModuleList(CausalBlock(shape) for _ in range(shape.layers))
        self.last = nn.LayerNorm(width)
        self.head = _head(self.embedding, shape, width)

    def forward(self, inputs: Tensor, read: Tensor, labels: Tensor, keep: Tensor) -> Tensor:
        """Return logits at every position."""
        places = torch.arange(inputs.shape[1]).unsqueeze(0)  # one row for the whole batch
        values = self.embedding(inputs) + self.positions(places)
        if self.starts is not None:
            values = values + self.starts(labels).unsqueeze(1)
        values = _masked(values, keep[:, : self._width])
        for block in self.blocks:
            values = block(values)
        logits: Tensor = self.head(_masked(self.last(values), keep[:, self._width :]))
        return logits

    def begin(self, read: Tensor, labels: Tensor) -> States:
        """Return the first position, what the label adds, and room for keys and values."""
        like, count = self.embedding.weight, len(labels)
        added = like.new_zeros(count, self._width) if self.starts is None else self.starts(labels)
        longest, width = self.positions.weight.shape
        size = (count, self._heads, longest, width // self._heads)
        room = [like.new_empty(size) for _ in range(2 * len(self.blocks))]
        return (torch.tensor([0]), added, *room)

    def advance(self, pieces: Tensor, states: States) -> tuple[Tensor, States]:
        """Take one piece of each text; return the logits of the next ones, and all keys."""
        position, added, *room = states
        values = (self.embedding(pieces) + self.positions(position) + added).unsqueeze(1)
        place = int(position)
        for number, block in enumerate(self.blocks):
            keys, kept = room[2 * number : 2 * number + 2]
            query, key, value = block.parts(values)  # type: ignore[operator] # a block's own
            keys[:, :, place : place + 1], kept[:, :, place : place + 1] = key, value
            seen = functional.scaled_dot_product_attention(
                query, keys[:, :, : place + 1], kept[:, :, : place + 1]
            )
            values = block.joined(values, seen)  # type: ignore[operator] # a block's own
        return self.head(self.last(values))[:, 0], (position + 1, added, *room)

    def first(self, states: States, count: int) -> States:
        """Return what is kept of the first texts."""
        position, *others = states
        return (position, *(one[:count] for one in others))


def _head(embedding: nn.Embedding, shape: GeneratorShape, width: int) -> nn.Linear:
    head = nn.Linear(shape.embedding if shape.is_tied else width, shape.vocabulary)
    if shape.is_tied:
        head.weight = embedding.weight
    return head


def _masked(values: Tensor, keep: Tensor) -> Tensor:
    """Multiply each text's values by its own factors, if there are any."""
    return values * keep.unsqueeze(1) if keep.shape[1] else values
