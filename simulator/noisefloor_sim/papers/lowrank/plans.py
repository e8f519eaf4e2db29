"""What a reproduction of the low-rank paper runs: cells of two tables, and what each trains with.

**Settings were fixed beforehand.** Ranks and sparsities are those of the paper. Steps, batch and
clip are those that the benchmark of fine-tuning had from the start; the rate of each private
family did best, within noise, of four on IMDB reviews (``bench/lowrank_settings.py``); those of
the private head are the defaults of ``HeadSettings``, also fixed on IMDB. No text that judges here
chose anything.

The paper trains all matrices of RoBERTa-base for 20 epochs in batches of 2,000 at C = 10 and a
rate of 0.001. Here the last layer of the backbone is trained, on kept outputs of those below it,
for 4 epochs in batches of a fifth of the records, so that a cell takes about two minutes of one
core.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal, TypeAlias

from noisefloor.publication.fine_tuning.methods import METHODS, MethodSettings
from noisefloor.publication.private_sgd import ParameterGroup
from noisefloor_sim.papers.lowrank import printed

CellKind: TypeAlias = Literal["training", "factors", "audit"]
CellClipping: TypeAlias = Literal["joint", "printed"]

PARTS = 5
"""One split is four fifths to train on and one to judge, as in five-fold cross-validation."""

POOLED = 3
"""How many top layers' means are features of the head."""

RATES: Mapping[str, float] = MappingProxyType(
    {"full": 3e-3, "sparse": 3e-3, "plain": 1e-4, "rgp": 3e-3, "lora": 3e-3}
)
"""Of Adam, by family. N.P. has a usual one of fine-tuning, which was not searched for."""

PLAIN_BATCHES = 20
"""N.P. makes as many passes in batches of a twentieth: nothing is averaged over noise there."""

HEAD_FACTOR = 10.0
SPARSE_SHARES = (0.1, 0.3, 0.5)
SPARSE_SHARE = 0.3
"""The paper does not print the share of Sparse DP-SGD; the middle one is its line."""


@dataclass(frozen=True, slots=True)
class LowRankCell:
    """One thing that is run and stored.

    Attributes:
        method: ``full``, ``sparse``, ``rgp``, ``lora``, ``head`` or ``plain``; masks make the
            combined methods of rgp and lora. For audits the shapes: ``roberta`` or ``backbone``.
        epsilon: That is claimed; 0 without privacy.
        rank: Of factors; 0 without.
        sparsity: The share that masks leave out; 0 without.
        clipping: ``joint``, or ``printed``: each matrix at C and noise for C alone.
        split: Which fifth judges.
        kind: ``training``; ``factors``: the same with a look at clip factors and masks;
            ``audit``: a canary against the clipping.
    """

    method: str
    epsilon: float
    rank: int = 0
    sparsity: float = 0.0
    clipping: CellClipping = "joint"
    split: int = 0
    kind: CellKind = "training"

    @property
    def key(self) -> str:
        """The name of its file."""
        sizes = f"k{self.rank}-p{self.sparsity:g}"
        words = (self.kind, self.method, f"e{self.epsilon:g}", sizes, self.clipping)
        return "-".join((*words, f"s{self.split}"))

    @property
    def engine_method(self) -> str:
        """The engine's name of the method."""
        name = f"combined-{self.method}"
        return name if self.sparsity and name in METHODS else self.method

    @property
    def title(self) -> str:
        """As a table has it."""
        names = {"full": "DP-SGD", "sparse": "Sparse DP-SGD", "rgp": "RGP", "lora": "LoRA"}
        names |= {"head": "Private head", "plain": "N.P."}
        name = names[self.method]
        return f"Ours({name})" if self.sparsity and self.method in ("rgp", "lora") else name

    def at(self, epsilon: float) -> "LowRankCell":
        """Return the same at another epsilon."""
        return replace(self, epsilon=epsilon)


@dataclass(frozen=True, slots=True)
class LowRankPlan:
    """How much is run; public choices.

    Attributes:
        name: ``full`` or ``quick``.
        seed: Of the split and of all draws.
        records: How many are used at most; all of them if 0.
        steps: Of every training but that of the private head.
        batch_share: Of the training records, in a step.
        head_steps: Of the private head, by full batches.
        epsilons: Of the second table.
        rgp_ranks: Of the first table.
        lora_ranks: Of the first table.
        sparsities: Of the first table.
        more_splits: Besides the first one, for the private head, LoRA and Ours(LoRA).
        train_layers: Top layers that are trained.
        audited: Epsilons of the audits.
        games: Of an audit, on each input.
        listed: Examples whose clip factors are looked at.
    """

    name: str
    seed: int = 1
    records: int = 0
    steps: int = 20
    batch_share: float = 0.2
    head_steps: int = 60
    epsilons: tuple[float, ...] = printed.EPSILONS
    rgp_ranks: tuple[int, ...] = printed.RGP_RANKS
    lora_ranks: tuple[int, ...] = printed.LORA_RANKS
    sparsities: tuple[float, ...] = printed.SPARSITIES
    more_splits: int = PARTS - 1
    train_layers: int = 1
    audited: tuple[float, ...] = printed.EPSILONS
    games: int = 20_000
    listed: int = 512

    def ranks(self, method: str) -> tuple[int, ...]:
        """Return the ranks of the first table."""
        return self.rgp_ranks if method == "rgp" else self.lora_ranks


FULL = LowRankPlan("full")
QUICK = LowRankPlan(
    "quick",
    records=1_250,
    steps=3,
    head_steps=20,
    epsilons=(2.0, 8.0),
    rgp_ranks=(4, 8),
    lora_ranks=(8, 32),
    sparsities=(0.0, 0.5, 0.7),
    more_splits=1,
    games=2_000,
    listed=64,
)

RGP = LowRankCell("rgp", 2.0, printed.RGP_BASELINE)
LORA = LowRankCell("lora", 2.0, printed.LORA_BASELINE)
OURS_RGP = LowRankCell("rgp", 2.0, *printed.RGP_CHOICE)
OURS_LORA = LowRankCell("lora", 2.0, *printed.LORA_CHOICE)
DP_SGD = LowRankCell("full", 2.0)
SPARSE = LowRankCell("sparse", 2.0, sparsity=SPARSE_SHARE)
HEAD = LowRankCell("head", 2.0)
PLAIN = LowRankCell("plain", 0.0)
FACTORS = LowRankCell("rgp", 2.0, printed.RGP_BASELINE, 0.3, kind="factors")
CLIPPINGS: tuple[CellClipping, ...] = ("printed", "joint")
LOW_RANK = (RGP, LORA, OURS_RGP, OURS_LORA)
SPLIT_METHODS = (HEAD, LORA, OURS_LORA)
_AUDITED: tuple[tuple[str, CellClipping], ...] = (
    ("roberta", "printed"),
    ("roberta", "joint"),
    ("backbone", "printed"),
)


def audits_of(plan: LowRankPlan) -> list[LowRankCell]:
    """Return the audits: the paper's run with each clipping, on two shapes."""
    return [
        LowRankCell(shapes, epsilon, printed.RGP_BASELINE, clipping=clipping, kind="audit")
        for epsilon in plan.audited
        for shapes, clipping in _AUDITED
    ]


def rank_table(plan: LowRankPlan, method: str, clipping: CellClipping) -> list[LowRankCell]:
    """Return the cells of rank by sparsity of one method at epsilon 2."""
    return [
        LowRankCell(method, 2.0, rank, share, clipping)
        for share in plan.sparsities
        for rank in plan.ranks(method)
    ]


def epsilon_table(plan: LowRankPlan, clipping: CellClipping) -> list[LowRankCell]:
    """Return the cells of accuracy over epsilon, method by method."""
    free = [one.at(epsilon) for one in (DP_SGD, SPARSE, HEAD) for epsilon in plan.epsilons]
    low = [
        replace(one.at(epsilon), clipping=clipping)
        for one in LOW_RANK
        for epsilon in plan.epsilons
    ]
    return free + low


def _cells(plan: LowRankPlan) -> Iterator[LowRankCell]:
    yield from (PLAIN, FACTORS, *audits_of(plan))
    for clipping in CLIPPINGS[::-1]:
        yield from (one for one in epsilon_table(plan, clipping) if one.epsilon == 2)
    for clipping in CLIPPINGS:
        for method in ("rgp", "lora"):
            yield from rank_table(plan, method, clipping)
    for clipping in CLIPPINGS:
        yield from epsilon_table(plan, clipping)
    yield from (replace(SPARSE, sparsity=share) for share in SPARSE_SHARES)
    for split in range(1, 1 + plan.more_splits):
        for one in SPLIT_METHODS:
            yield from (replace(one.at(epsilon), split=split) for epsilon in plan.epsilons)


def cells_of(plan: LowRankPlan) -> list[LowRankCell]:
    """Return everything that is run, each once; what most claims need comes first."""
    return list(dict.fromkeys(_cells(plan)))


def settings_of(cell: LowRankCell, plan: LowRankPlan, examples: int) -> MethodSettings:
    """Return what a cell trains with."""
    if cell.method == "head":
        return MethodSettings(
            steps=plan.head_steps,
            optimiser="sgd",
            learning_rate=3.0,
            momentum=0.9,
            averaging=0.5,
            clip=1.0,
        )
    is_private = bool(cell.epsilon)
    more = 1 if is_private else PLAIN_BATCHES
    return MethodSettings(
        rank=cell.rank or None,
        sparsity=cell.sparsity or None,
        clipping=cell.clipping if is_private else "joint",
        clip=1.0,
        batch=max(1, round(plan.batch_share * examples / more)),
        steps=plan.steps * more,
        learning_rate=RATES[cell.method],
        averaging=0.5 if is_private else 0.0,
        groups=(ParameterGroup("head", rate=HEAD_FACTOR),) if is_private else (),
    )
