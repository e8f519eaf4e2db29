"""Networks of every kind of layer, and the slow but plain way to sums of clipped gradients."""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from noisefloor.publication.private_sgd import (
    Automatic,
    Clipping,
    SgdPlan,
    cross_entropy,
    initialise,
)
from noisefloor.publication.private_sgd.bookkeeping import BookKeeping, Loss
from noisefloor.publication.private_sgd.parameters import FlatParameters
from noisefloor.publication.private_sgd.per_example import PerExample
from noisefloor.randomness import SeededSource

EXAMPLES = 7
CLASSES = 3


class Pooled(nn.Module):
    """Means over positions, so that sequences end as one row of classes."""

    def forward(self, values: Tensor) -> Tensor:
        return values.mean(1)


class Recurrent(nn.Module):
    """Tokens, an LSTM, classes; reads outputs and last states."""

    def __init__(self, *, layers: int = 1, bias: bool = True) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 6, padding_idx=0)
        self.lstm = nn.LSTM(6, 5, num_layers=layers, batch_first=True, bias=bias)
        self.head = nn.Linear(15, CLASSES)

    def forward(self, tokens: Tensor) -> Tensor:
        outputs, (hidden, cells) = self.lstm(self.embedding(tokens))
        logits: Tensor = self.head(torch.cat([outputs.mean(1), hidden[-1], cells[0]], 1))
        return logits


class Generator(nn.Module):
    """Tokens to the logits of the next token, at every position."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 6)
        self.lstm = nn.LSTM(6, 5, batch_first=True)
        self.head = nn.Linear(5, 11)

    def forward(self, tokens: Tensor) -> Tensor:
        logits: Tensor = self.head(self.lstm(self.embedding(tokens))[0])
        return logits


class Reproduced(nn.Module):
    """An encoder's last states start a decoder; a second decoder starts from looked-up states."""

    def __init__(self, *, layers: int = 1, is_gated: bool = False, tied: bool = False) -> None:
        super().__init__()
        kind: type[nn.LSTM | nn.GRU] = nn.GRU if is_gated else nn.LSTM
        self.embedding, self.starts = nn.Embedding(11, 5), nn.Embedding(11, 5)
        self.encoder, self.decoder, self.other = (
            kind(5, 5, num_layers=layers, batch_first=True) for _ in range(3)
        )
        self.head = nn.Linear(5, 11)
        if tied:
            self.head.weight = self.embedding.weight

    def forward(self, tokens: Tensor) -> Tensor:
        values = self.embedding(tokens)
        _, ends = self.encoder(values)
        begun = self.starts(tokens[:, 0]).expand(self.encoder.num_layers, -1, -1)
        looked_up = begun if isinstance(self.encoder, nn.GRU) else (begun, torch.tanh(begun))
        outputs = self.decoder(values, ends)[0] + self.other(values, looked_up)[0]
        logits: Tensor = self.head(outputs)
        return logits


class Gated(nn.Module):
    """Tokens, a GRU, classes; reads outputs and last states."""

    def __init__(self, *, layers: int = 1, bias: bool = True) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 6)
        self.gru = nn.GRU(6, 5, num_layers=layers, batch_first=True, bias=bias)
        self.head = nn.Linear(10, CLASSES)

    def forward(self, tokens: Tensor) -> Tensor:
        outputs, hidden = self.gru(self.embedding(tokens))
        logits: Tensor = self.head(torch.cat([outputs.mean(1), hidden[0]], 1))
        return logits


class Heads(nn.Module):
    """Tokens with a table of positions, and attention of two heads from linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(11, 8), nn.Embedding(12, 8)
        self.norm, self.all, self.out = nn.LayerNorm(8), nn.Linear(8, 24), nn.Linear(8, 8)
        self.head = nn.Linear(8, CLASSES)

    def forward(self, tokens: Tensor, is_text: Tensor | None = None) -> Tensor:
        places = torch.arange(tokens.shape[1]).unsqueeze(0)  # one row for the whole batch
        values = self.norm(self.tokens(tokens) + self.positions(places))
        parts = self.all(values).unflatten(2, (3, 2, 4)).permute(2, 0, 3, 1, 4)
        flags = torch.ones_like(tokens) if is_text is None else is_text
        query, key, value = parts.unbind()
        seen = nn.functional.scaled_dot_product_attention(
            query, key, value, attn_mask=flags.bool()[:, None, None, :]
        )
        values = values + self.out(seen.transpose(1, 2).flatten(2))
        weights = flags.to(values.dtype).unsqueeze(2)
        logits: Tensor = self.head((values * weights).sum(1) / weights.sum(1).clamp(min=1))
        return logits


class Tied(nn.Module):
    """The next token, by the table that tokens are looked up in; and a linear layer used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.body = nn.Embedding(11, 6, padding_idx=2), nn.Linear(6, 6)
        self.again, self.head = nn.Linear(6, 6), nn.Linear(6, 11)
        self.again.weight, self.head.weight = self.body.weight, self.embedding.weight

    def forward(self, tokens: Tensor) -> Tensor:
        values = torch.tanh(self.body(self.embedding(tokens)))
        logits: Tensor = self.head(torch.tanh(self.again(values)))
        return logits


class Attention(nn.Module):
    """A block of a transformer from plain layers."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.after = nn.LayerNorm(8), nn.LayerNorm(8)
        self.query, self.key, self.value = (nn.Linear(8, 8) for _ in range(3))
        self.wide, self.narrow = nn.Linear(8, 20), nn.Linear(20, 8)
        self.head = nn.Linear(8, CLASSES)

    def forward(self, values: Tensor) -> Tensor:
        seen = self.before(values)
        scores = self.query(seen) @ self.key(seen).transpose(1, 2) / 8**0.5
        values = values + scores.softmax(-1) @ self.value(seen)
        values = values + self.narrow(nn.functional.gelu(self.wide(self.after(values))))
        logits: Tensor = self.head(values.mean(1))
        return logits


class Twice(nn.Module):
    """Uses the same layers more than once in a pass."""

    def __init__(self) -> None:
        super().__init__()
        self.shared, self.norm = nn.Linear(8, 8), nn.LayerNorm(8)
        self.head = nn.Linear(8, CLASSES)

    def forward(self, values: Tensor) -> Tensor:
        for _ in range(3):
            values = self.norm(torch.tanh(self.shared(values)))
        logits: Tensor = self.head(values)
        return logits


class InPlace(nn.Module):
    """Changes in place what comes out of layers, where torch itself can bear it."""

    def __init__(self) -> None:
        super().__init__()
        self.wide, self.norm = nn.Conv1d(3, 4, 3), nn.LayerNorm(8)
        self.lstm = nn.LSTM(8, 6, num_layers=2, batch_first=True)
        self.head = nn.Linear(6, CLASSES)

    def forward(self, values: Tensor) -> Tensor:
        values = self.norm(self.wide(values).relu_()).tanh_()
        logits: Tensor = self.head(self.lstm(values)[0].sum(1))
        return logits.mul_(2.0)


class TimeFirst(nn.Module):
    """An LSTM that takes time along the first axis; given examples there if it is not turned."""

    def __init__(self, *, turned: bool) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(8, 5), nn.Linear(5, CLASSES)
        self.turned = turned

    def forward(self, values: Tensor) -> Tensor:
        outputs = self.lstm(values.transpose(0, 1) if self.turned else values)[0]
        logits: Tensor = self.head(outputs[-1] if self.turned else outputs[:, -1])
        return logits


class SelfAttention(nn.Module):
    """Attention as torch has it."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, dropout=dropout, batch_first=True)
        self.head = nn.Linear(8, CLASSES)
        for one in self.parameters():
            nn.init.normal_(one, generator=torch.Generator().manual_seed(one.numel()))

    def forward(self, values: Tensor) -> Tensor:
        seen = self.attention(values, values, values, need_weights=False)[0]
        logits: Tensor = self.head(seen.mean(1))
        return logits


def frozen_norm(*, trained: bool) -> nn.Module:
    """Batch normalisation by statistics that came from somewhere else."""
    norm = nn.BatchNorm1d(9)
    norm.running_mean.copy_(torch.linspace(-1, 1, 9))  # type: ignore[union-attr]
    norm.running_var.copy_(torch.linspace(0.5, 2, 9))  # type: ignore[union-attr]
    norm.requires_grad_(trained)
    return nn.Sequential(nn.Linear(8, 9), norm.eval(), nn.ReLU(), nn.Linear(9, CLASSES))


class LowRank(nn.Module):
    """A frozen layer with a trained correction of low rank."""

    def __init__(self) -> None:
        super().__init__()
        self.base = nn.Linear(8, 8)
        self.down, self.up = nn.Linear(8, 2, bias=False), nn.Linear(2, 8, bias=False)
        self.head = nn.Linear(8, CLASSES)
        for parameter in self.base.parameters():
            parameter.requires_grad_(False)

    def forward(self, values: Tensor) -> Tensor:
        values = torch.relu(self.base(values) + self.up(self.down(values)))
        logits: Tensor = self.head(values)
        return logits


def token_loss(outputs: Tensor, targets: Tensor) -> Tensor:
    """Sum the cross-entropies of all positions of an example."""
    return nn.functional.cross_entropy(outputs.transpose(1, 2), targets, reduction="none").sum(1)


def mlp() -> nn.Module:
    return nn.Sequential(
        nn.Linear(8, 9), nn.ReLU(), nn.Linear(9, 9), nn.Tanh(), nn.Linear(9, CLASSES)
    )


def half_frozen() -> nn.Module:
    module = mlp()
    module[0].weight.requires_grad_(False)  # type: ignore[index]
    module[2].bias.requires_grad_(False)  # type: ignore[index]
    return module


def cnn() -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 5, (3, 2), stride=2)),
        *(nn.ReLU(), nn.Flatten(), nn.Linear(60, CLASSES)),
    )


def windows(padding_mode: Literal["zeros", "circular"] = "zeros") -> nn.Module:
    return nn.Sequential(
        nn.Conv1d(3, 4, 3, dilation=2, padding="same", padding_mode=padding_mode),
        *(nn.ReLU(), nn.Conv1d(4, 30, 2, stride=3, padding=1, bias=False), nn.Flatten()),
        nn.Linear(120, CLASSES),
    )


def grouped(groups: int) -> nn.Module:
    """Convolutions whose channels are in groups, and group normalisation."""
    return nn.Sequential(
        *(nn.Conv2d(4, 8, 3, groups=groups, padding=1, bias=groups < 4), nn.GroupNorm(2, 8)),
        *(nn.ReLU(), nn.Conv2d(8, 8, (2, 3), stride=2, groups=8), nn.Flatten(2), Pooled()),
        nn.Linear(9, CLASSES),
    )


class Case(NamedTuple):
    """A network, the shape of one input, how many tokens there are, and the loss."""

    make: Callable[[], nn.Module]
    shape: tuple[int, ...]
    tokens: int = 0
    loss: Loss = cross_entropy


CASES = {
    "linear": Case(lambda: nn.Linear(8, CLASSES), (8,)),
    "linear without bias": Case(lambda: nn.Linear(8, CLASSES, bias=False), (8,)),
    "linear on few positions": Case(
        lambda: nn.Sequential(nn.Linear(30, 40), nn.Tanh(), nn.Linear(40, CLASSES), Pooled()),
        (3, 30),
    ),
    "linear on many positions": Case(
        lambda: nn.Sequential(nn.Linear(8, CLASSES), Pooled()), (25, 8)
    ),
    "linear on a grid": Case(
        lambda: nn.Sequential(
            nn.Linear(8, 20), nn.Flatten(1, 2), nn.Linear(20, CLASSES), Pooled()
        ),
        (2, 3, 8),
    ),
    "embedding": Case(
        lambda: nn.Sequential(nn.Embedding(5, 6), Pooled(), nn.Linear(6, CLASSES)), (9,), 5
    ),
    "layer norm": Case(
        lambda: nn.Sequential(nn.LayerNorm((5, 8)), nn.Linear(8, CLASSES), Pooled()), (5, 8)
    ),
    "convolution 1d": Case(windows, (3, 10)),
    # Opacus 1.6.0 pads with zeros whatever the mode says: the loop is the oracle of this one.
    "convolution 1d in a ring": Case(lambda: windows("circular"), (3, 10)),
    "cnn": Case(cnn, (1, 8, 9)),
    "mlp": Case(mlp, (8,)),
    "half frozen": Case(half_frozen, (8,)),
    "low rank": Case(LowRank, (8,)),
    "used twice": Case(Twice, (8,)),
    "lstm": Case(Recurrent, (9,), 11),
    "lstm, short": Case(Recurrent, (2,), 11),
    "lstm of two layers": Case(lambda: Recurrent(layers=2), (6,), 11),
    "lstm without bias": Case(lambda: Recurrent(bias=False), (6,), 11),
    "gru": Case(Gated, (9,), 11),
    "gru of two layers": Case(lambda: Gated(layers=2), (6,), 11),
    "gru without bias": Case(lambda: Gated(bias=False), (6,), 11),
    "two groups": Case(lambda: grouped(2), (4, 6, 7)),
    "depthwise": Case(lambda: grouped(4), (4, 6, 7)),
    "group norm of rows": Case(
        lambda: nn.Sequential(nn.Linear(8, 12), nn.GroupNorm(2, 12), nn.Linear(12, CLASSES)),
        (8,),
    ),
    "heads and positions": Case(Heads, (9,), 11),
    "tied": Case(Tied, (7,), 11, token_loss),
    "generator": Case(Generator, (7,), 11, token_loss),
    "encoder-decoder": Case(Reproduced, (7,), 11, token_loss),
    "encoder-decoder of two layers": Case(lambda: Reproduced(layers=2), (6,), 11, token_loss),
    "encoder-decoder, tied": Case(lambda: Reproduced(tied=True), (6,), 11, token_loss),
    "gru encoder-decoder": Case(lambda: Reproduced(layers=2, is_gated=True), (6,), 11, token_loss),
    "attention": Case(Attention, (6, 8)),
    "in place": Case(InPlace, (3, 10)),
    "first layer, then in place": Case(
        lambda: nn.Sequential(nn.Linear(8, 9), nn.ReLU(inplace=True), nn.Linear(9, CLASSES)), (8,)
    ),
    "frozen batch norm": Case(lambda: frozen_norm(trained=False), (8,)),
}
"""Those of which a book can be kept."""

SLOW_CASES = {
    "trained batch norm": Case(lambda: frozen_norm(trained=True), (8,)),
    "lstm, time first": Case(lambda: TimeFirst(turned=True), (5, 8)),
    "self-attention": Case(lambda: SelfAttention(0.5).eval(), (6, 8)),
}
"""Those that need the slow road."""


def made(case: Case, *path: str | int, scale: float = 1.0) -> tuple[nn.Module, Tensor, Tensor]:
    """Return a network, inputs and targets, all from seeded draws."""
    source = SeededSource(5, "case", *path)
    module = case.make()
    frozen = [one for one in module.parameters() if not one.requires_grad]
    for one in frozen:
        one.requires_grad_(True)
    if not isinstance(module, SelfAttention):  # of whose layer there is no distribution
        initialise(module, source.child("weights"))
    for one in frozen:
        one.requires_grad_(False)
    generator = source.child("examples").generator()
    if case.tokens:
        inputs = torch.from_numpy(generator.integers(0, case.tokens, (EXAMPLES, *case.shape)))
    else:
        drawn = scale * generator.standard_normal((EXAMPLES, *case.shape))
        inputs = torch.from_numpy(drawn).float()
    if case.loss is token_loss:
        return module, inputs, torch.from_numpy(generator.integers(0, 11, (EXAMPLES, *case.shape)))
    return module, inputs, torch.from_numpy(generator.integers(0, CLASSES, EXAMPLES))


def gradients_one_by_one(
    module: nn.Module, inputs: Tensor, targets: Tensor, loss: Loss
) -> dict[str, Tensor]:
    """Return the gradient of each example by plain autograd, in float64, by parameter."""
    names = [name for name, one in module.named_parameters() if one.requires_grad]
    parameters = [one for one in module.parameters() if one.requires_grad]
    rows: dict[str, list[Tensor]] = {name: [] for name in names}
    for place in range(len(targets)):
        some = slice(place, place + 1)
        total = loss(module(inputs[some]), targets[some]).sum()
        found = torch.autograd.grad(total, parameters, allow_unused=True)
        for name, one, like in zip(names, found, parameters, strict=True):
            row = torch.zeros_like(like) if one is None else one
            rows[name].append(row.detach().reshape(-1).double())
    return {name: torch.stack(some) for name, some in rows.items()}


def clipped_sum(gradients: dict[str, Tensor], clipping: Clipping) -> dict[str, Tensor]:
    """Clip each example's gradient and add them up, as the definition says."""
    groups = {name: clipping.group_of(name) for name in gradients}
    sums = {}
    for name, rows in gradients.items():
        group = groups[name]
        together = torch.cat([gradients[one] for one in gradients if groups[one] == group], 1)
        norms = together.norm(dim=1)
        bound = clipping.bounds[group]
        if isinstance(clipping, Automatic):
            factors = bound / (norms + clipping.stability)
        else:
            factors = (bound / norms.clamp(min=1e-300)).clamp(max=1.0)
        sums[name] = factors @ rows
    return sums


def engine_sum(
    module: nn.Module,
    inputs: Tensor,
    targets: Tensor,
    *,
    loss: Loss,
    clipping: Clipping,
    road: type[BookKeeping] | type[PerExample] = BookKeeping,
    parts: Sequence[slice] = (slice(None),),
) -> dict[str, Tensor]:
    """Return the engine's sum, by parameter, of all coordinates."""
    flat = FlatParameters(module)
    sums = torch.zeros_like(flat.vector)
    with road(module, flat, sums, loss=loss, clipping=clipping) as adding:
        for part in parts:
            adding.clip((inputs[part],), targets[part]).add()
    names = [name for name, one in module.named_parameters() if one.requires_grad]
    by_id = dict(zip(map(id, flat.parameters), flat.views(sums), strict=True))
    kept = dict(module.named_parameters())
    flat.release()
    return {name: by_id[id(kept[name])].reshape(-1).double() for name in names}


def gap(one: dict[str, Tensor], other: dict[str, Tensor]) -> float:
    """Return the largest difference of two sums in any coordinate."""
    assert one.keys() == other.keys()
    return max(float((one[name] - other[name]).abs().max()) for name in one)


PLAN = SgdPlan(examples=7, expected_batch=3, steps=12, noise_multiplier=0.5, averaging=0.5)
"""A short training of few examples."""


def weights(module: nn.Module) -> Tensor:
    return torch.cat([one.detach().reshape(-1) for one in module.parameters()])


def blobs(count: int, *path: str | int) -> tuple[Tensor, Tensor]:
    """Return three clouds of points in eight dimensions, easy to tell apart."""
    generator = SeededSource(3, "blobs", *path).generator()
    labels = generator.integers(0, CLASSES, count)
    centres = 3.0 * np.eye(CLASSES, 8)
    values = centres[labels] + 0.5 * generator.standard_normal((count, 8))
    return torch.from_numpy(values).float(), torch.from_numpy(labels)
