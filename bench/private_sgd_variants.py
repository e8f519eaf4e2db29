"""What masks, groups, carriers and cut batches cost: steps of one engine against each other.

Two networks. The MLP of ``private_sgd.py``, all of it trained; and an encoder of MiniLM's width
(384, 12 heads, 1,536 inside) with two layers and LoRA of rank 8 on its six matrices each, over
64 texts of 32 of 5,000 tokens, all of them in each step: samples of other sizes would blur what
single steps take. Sides take steps in turn, in one process and one thread; a ratio is
the median over rounds of a side's CPU time over that of its baseline in the same round. Masks
leave out 0.3 of all units, or of all entries, and are renewed before each step where it says so.
"""

import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from bench.table import aligned, figure
from torch import Tensor, nn
from torch.nn import functional

from noisefloor.publication import private_sgd as engine
from noisefloor.randomness import SeededSource, new_run

WIDTH, HEADS, INSIDE, LAYERS, RANK = 384, 12, 1_536, 2, 8
TOKENS, LENGTH, LONGEST, BATCH = 5_000, 32, 48, 64
EXAMPLES = {"mlp": 2_000, "lora": BATCH, "full": BATCH}
SHARE = 0.3


class Adapted(nn.Module):
    """A frozen linear layer with a trained correction of low rank, or trained itself."""

    def __init__(self, inputs: int, outputs: int, *, rank: int) -> None:
        super().__init__()
        self.base = nn.Linear(inputs, outputs)
        self.rank = rank
        if rank:
            self.base.requires_grad_(False)
            self.right = nn.Linear(inputs, rank, bias=False)
            self.left = nn.Linear(rank, outputs, bias=False)

    def forward(self, values: Tensor) -> Tensor:
        outputs: Tensor = self.base(values)
        return outputs + self.left(self.right(values)) if self.rank else outputs


class EncoderLayer(nn.Module):
    """Attention and a wide layer, each with its normalisation, as BERT has them."""

    def __init__(self, rank: int) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (
            Adapted(WIDTH, WIDTH, rank=rank) for _ in range(4)
        )
        self.wide = Adapted(WIDTH, INSIDE, rank=rank)
        self.narrow = Adapted(INSIDE, WIDTH, rank=rank)
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, values: Tensor, flags: Tensor) -> Tensor:
        shape = (*values.shape[:2], HEADS, WIDTH // HEADS)
        query, key, value = (
            layer(values).view(shape).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        seen = functional.scaled_dot_product_attention(query, key, value, attn_mask=flags)
        values = self.first(values + self.out(seen.transpose(1, 2).flatten(2)))
        changed: Tensor = self.second(values + self.narrow(functional.gelu(self.wide(values))))
        return changed


class Encoder(nn.Module):
    """Tokens, positions, layers, the mean over the text, two classes."""

    def __init__(self, rank: int = RANK) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(TOKENS, WIDTH), nn.Embedding(LONGEST, WIDTH)
        self.layers = nn.ModuleList([EncoderLayer(rank) for _ in range(LAYERS)])
        self.head = nn.Linear(WIDTH, 2)
        for one in (self.tokens, self.positions, *self.modules()):
            if isinstance(one, nn.Embedding | nn.LayerNorm):
                one.requires_grad_(False)

    def forward(self, tokens: Tensor, is_text: Tensor) -> Tensor:
        places = torch.arange(tokens.shape[1]).unsqueeze(0)
        values = self.tokens(tokens) + self.positions(places)
        flags = is_text.bool()[:, None, None, :]
        for layer in self.layers:
            values = layer(values, flags)
        shares = is_text.to(values.dtype).unsqueeze(2)
        logits: Tensor = self.head((values * shares).sum(1) / shares.sum(1))
        return logits


@dataclass(frozen=True, slots=True)
class SgdVariant:
    """One side: what is trained, and how.

    Attributes:
        network: ``"mlp"``, ``"lora"`` or ``"full"``.
        masks: Share of units or entries that is left out; None for no masks.
        renews: Whether masks follow the weights.
        plan: What is other than in the plain plan.
        length: Positions of each text, of which ``LENGTH`` are text on average if it is more.
        is_cut: Whether texts are cut to about their own length.
    """

    network: str
    masks: str | None = None
    renews: bool = False
    plan: Mapping[str, Any] = field(default_factory=dict)  # Any: attributes of a plan
    length: int = LENGTH
    is_cut: bool = False


LORA = SgdVariant("lora")
MLP = SgdVariant("mlp")
FULL = SgdVariant("full")
CASES: dict[str, tuple[SgdVariant, SgdVariant | None, float | None]] = {
    "mlp, units left out": (replace(MLP, masks="units"), MLP, 1.05),
    "mlp, units left out, renewed": (replace(MLP, masks="units", renews=True), MLP, 1.05),
    "mlp, entries left out": (replace(MLP, masks="entries"), MLP, 1.05),
    "mlp, scales and rates": (
        replace(MLP, plan={"groups": (engine.ParameterGroup("*.bias", 0.1, 0.5),)}),
        MLP,
        None,
    ),
    "mlp, each matrix apart": (replace(MLP, plan={"clipping": "apart"}), MLP, None),
    "LoRA, units left out": (replace(LORA, masks="units"), LORA, 1.05),
    "LoRA, units left out, renewed": (replace(LORA, masks="units", renews=True), LORA, 1.05),
    "LoRA, entries left out": (replace(LORA, masks="entries"), LORA, 1.05),
    "LoRA, each matrix apart": (replace(LORA, plan={"clipping": "apart"}), LORA, None),
    "LoRA against a plain step": (LORA, None, 1.25),
    "RGP against a plain full step": (
        replace(FULL, plan={"carriers": (("layers", RANK),)}),
        None,
        2.0,
    ),
    "all weights against a plain full step": (FULL, None, None),
    "texts of 48, cut, against padded": (
        replace(LORA, length=LONGEST, is_cut=True),
        replace(LORA, length=LONGEST),
        1 / 1.3,
    ),
}
"""A variant, its baseline (a plain step without privacy if None), and the most it may take."""


def losses(outputs: Tensor, targets: Tensor) -> Tensor:
    return functional.cross_entropy(outputs, targets, reduction="none")


def module_of(variant: SgdVariant) -> nn.Module:
    if variant.network == "mlp":
        widths = (167, 64, 64, 2)
        return nn.Sequential(
            *(nn.Linear(widths[0], widths[1]), nn.ReLU(), nn.Linear(widths[1], widths[2])),
            *(nn.ReLU(), nn.Linear(widths[2], widths[3])),
        )
    return Encoder(RANK if variant.network == "lora" else 0)


def examples_of(variant: SgdVariant) -> tuple[tuple[Tensor, ...], Tensor, Tensor]:
    """Return inputs, labels and lengths at random: what they say does not matter to the clock."""
    draw = SeededSource(1, "variants", variant.network).generator()
    count = EXAMPLES[variant.network]
    labels = torch.from_numpy(draw.integers(0, 2, count))
    if variant.network == "mlp":
        values = torch.from_numpy(draw.random((count, 167), dtype="float32"))
        return (values,), labels, torch.zeros(count)
    tokens = torch.from_numpy(draw.integers(0, TOKENS, (count, variant.length)))
    lengths = torch.full((count,), variant.length)
    if variant.length > LENGTH:  # about as long as sentences of film reviews are
        drawn = torch.from_numpy(draw.normal(27, 11, count))
        lengths = drawn.round().clamp(3, variant.length).long()
    is_text = (torch.arange(variant.length) < lengths.unsqueeze(1)).long()
    return (tokens, is_text), labels, lengths


def rule_of(variant: SgdVariant) -> Callable[[Mapping[str, Tensor]], dict[str, Any]] | None:
    """Return masks of all trained matrices; Any: units or entries."""
    if variant.masks is None:
        return None
    made = (
        engine.without_smallest_units
        if variant.masks == "units"
        else engine.without_smallest_entries
    )

    def rule(released: Mapping[str, Tensor]) -> dict[str, Any]:
        return {
            name: _inner_kept(name, made(one, SHARE))
            for name, one in released.items()
            if one.dim() == 2 and min(one.shape) > 2
        }

    return rule


def _inner_kept(name: str, kept: Any) -> Any:  # Any: units or entries
    """Of a factor only the outer units are left out: the rank stays."""
    if not isinstance(kept, engine.KeptUnits):
        return kept
    if "left" in name:
        return engine.KeptUnits(rows=kept.rows)
    return engine.KeptUnits(columns=kept.columns) if "right" in name else kept


Steps = Callable[[int], None]


def private(variant: SgdVariant) -> Steps:
    """Return steps of the engine."""
    module = module_of(variant)
    inputs, labels, lengths = examples_of(variant)
    settings = dict(variant.plan)
    if settings.get("clipping") == "apart":
        names = [name for name, one in module.named_parameters() if one.requires_grad]
        settings["clipping"] = engine.SplitBound(1.0, tuple(names))
    plan = engine.SgdPlan(
        examples=len(labels),
        expected_batch=BATCH,
        steps=1 << 20,
        noise_multiplier=1.0,
        **settings,
    )
    training = engine.PrivateTraining(
        module,
        inputs,
        labels,
        plan,
        SeededSource(3, "variants", repr(variant)),
        loss=losses,
        masks=rule_of(variant),
        renews_masks=variant.renews,
        padding=engine.PaddedInputs(lengths, (0, 1)) if variant.is_cut else None,
    )
    training.__enter__()  # for as long as the process lives
    return lambda steps: training.run(training.step + steps)


def without_privacy(variant: SgdVariant) -> Steps:
    """Return steps of a plain loop over the same module."""
    module = module_of(variant)
    inputs, labels, _ = examples_of(variant)
    optimiser = torch.optim.Adam([one for one in module.parameters() if one.requires_grad])

    def take(steps: int) -> None:
        for _ in range(steps):
            places = torch.randperm(len(labels))[:BATCH]
            optimiser.zero_grad()
            outputs = module(*(one[places] for one in inputs))
            losses(outputs, labels[places]).mean().backward()  # type: ignore[no-untyped-call] # torch's
            optimiser.step()

    return take


@dataclass(slots=True)
class VariantRow:
    """One comparison.

    Attributes:
        name: Of the case.
        ratio: The median over rounds, of CPU times.
        target: The most it may be, if there is one.
        step_ms: The median of the variant's own step.
    """

    name: str
    ratio: float
    target: float | None
    step_ms: float


def measure_variants(*, quick: bool = False, only: str = "") -> list[VariantRow]:
    """Let each variant and its baseline take steps in turn."""
    torch.set_num_threads(1)
    rows = []
    for name in CASES:
        if only in name:
            print(f"measuring {name}", file=sys.stderr)
            with new_run():
                rows.append(measure_variant(name, quick=quick))
    return rows


def measure_variant(name: str, *, quick: bool) -> VariantRow:
    """Let one variant and its baseline take steps in turn."""
    variant, baseline, target = CASES[name]
    sides = [
        private(variant),
        without_privacy(variant) if baseline is None else private(baseline),
    ]
    rounds, steps = (41, 20) if variant.network == "mlp" else (11, 1)
    times: list[list[float]] = [[], []]
    for round_number in range(1 + (rounds // 3 if quick else rounds)):
        for side, taken in zip(sides, times, strict=True):
            start = time.process_time()
            side(steps)
            if round_number:  # the first one warms up
                taken.append((time.process_time() - start) / steps)
    ratio = statistics.median(one / other for one, other in zip(*times, strict=True))
    return VariantRow(name, ratio, target, 1000 * statistics.median(times[0]))


def printed_variants(rows: list[VariantRow]) -> str:
    """Return the table."""
    header = ["variant", "step ms", "ratio", "target", "verdict"]
    lines = []
    for row in rows:
        verdict = "" if row.target is None else "met" if row.ratio <= row.target else "missed"
        figures = [figure(row.step_ms), figure(row.ratio), figure(row.target)]
        lines.append([row.name, *figures, verdict])
    return aligned(header, lines)
