"""The settings of private fine-tuning on users' texts in a scenario."""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.publication.fine_tuning import DEFAULT_BACKBONE
from noisefloor.publication.fine_tuning.methods import METHODS
from noisefloor_sim.pipelines.finetuning.result_names import CLAIM_NAMES, METRIC_NAMES
from noisefloor_sim.scenario import (
    Attack,
    Attacks,
    PipelineBlock,
    PlainText,
    Scenario,
    check_source,
    rule_error,
)

MADE_UP = "made-up"
NAMED = ("rotten-tomatoes", "imdb", MADE_UP)

HEAD, BOTH, PLAIN = "text-head", "head-then-adapters", "plain"

PRINTED = "printed"

ATTACKS: Attacks = {
    "canary": Attack(
        "a record whose gradient fills every clipping group, in one release and in all of them",
        ("canary", "stayer", "null", "planted"),
        is_audit=True,
    ),
    "members": Attack(
        "whose text is in the data set, by shadow models on kept outputs of the frozen layers",
        ("loss", "lira", "null", "planted"),
        is_audit=True,
    ),
}
"""What the adversary guesses, by the name of the attack."""


class FinetuningBlock(PipelineBlock):
    """A data holder that publishes a classifier of its users' texts, once or again and again."""

    metric_names: ClassVar[tuple[str, ...]] = METRIC_NAMES
    unseen_names: ClassVar[tuple[str, ...]] = ("residuals.*", "clipping.*")
    claim_names: ClassVar[tuple[str, ...]] = CLAIM_NAMES
    spends_budgets: ClassVar[bool] = False  # the data set has a budget, and its ledger
    attacks: ClassVar[Attacks] = ATTACKS

    source: PlainText = Field(
        default="rotten-tomatoes",
        max_length=1_000,
        description="Where texts come from: rotten-tomatoes or imdb, which are fetched; a file of "
        "your own that ends in .csv, .tsv or .parquet, with its schema beside it; or made-up.",
    )
    backbone: PlainText = Field(
        default=DEFAULT_BACKBONE,
        max_length=1_000,
        description="The pretrained encoder: minilm-l6, which is fetched; a directory of your "
        "own; or made-up, a small random one.",
    )
    method: Literal[
        "text-head",
        "full",
        "sparse",
        "rgp",
        "lora",
        "ffa-lora",
        "bias-only",
        "combined-rgp",
        "combined-lora",
        "head-then-adapters",
        "plain",
    ] = Field(
        default="text-head",
        description="What is trained: a head alone, top layers, adapters on them, or a head that "
        "adapters go on from; 'plain' trains layers without any noise.",
    )
    epsilon: float = Field(default=2.0, gt=0, le=1_000, description="Claimed of each release.")
    delta: float = Field(default=1e-5, gt=0, lt=0.01, description="Of each release.")
    neighbours: Literal["add-remove", "substitute"] = Field(
        default="add-remove",
        description="What is hidden: whether there is a text, or which one somebody has.",
    )
    clipping: Literal["joint", "equal", "groups", "printed"] = Field(
        default="joint",
        description="How gradients are clipped: jointly; each of G groups at clip / sqrt(G); each "
        "at clip, with noise for all of them; or, as printed, with noise for one of them.",
    )
    clip: float = Field(default=1.0, gt=0, le=1_000, description="The clipping bound.")
    train_layers: int = Field(
        default=1, ge=1, le=48, description="Top layers that are trained, or have adapters."
    )
    rank: int = Field(
        default=0, ge=0, le=4_096, description="Of factors; 0: the method's own choice."
    )
    sparsity: float = Field(
        default=0.0, ge=0, lt=1, description="Share that masks leave out; 0: the method's choice."
    )
    steps: int = Field(
        default=0, ge=0, le=20_000, description="Of the training; 0: the method's own choice."
    )
    batch: int = Field(
        default=0, ge=0, le=1_000_000, description="Records a step, on average; 0: all of them."
    )
    learning_rate: float = Field(
        default=0.0, ge=0, le=1_000, description="Of a step; 0: the method's own choice."
    )
    budget: float = Field(
        default=8.0,
        gt=0,
        le=100_000,
        description="Epsilon of the data set, over all releases; the rest is refused.",
    )
    budget_delta: float = Field(
        default=1e-4, ge=0, lt=0.1, description="Delta of the data set, over all releases."
    )
    release_every_days: int = Field(
        default=7, ge=1, le=366, description="Days from one release to the next."
    )
    join_over_days: int = Field(
        default=1, ge=1, le=366, description="Users join evenly over this number of days."
    )
    test_share: float = Field(
        default=0.2, gt=0, lt=1, description="Share of users whose texts are kept back."
    )
    shadows: int = Field(
        default=24, ge=16, le=256, description="Models that the adversary trains."
    )
    pool: int = Field(
        default=200, ge=40, le=10_000, description="Texts, half of which each shadow model gets."
    )
    canaries: int = Field(
        default=4_000,
        ge=500,
        le=1_000_000,
        description="Games on either of two inputs in an audit, fewer where one game is long.",
    )
    experiment: bool = Field(
        default=False,
        description="Whether to write diagnostics (clip factors, masks, weights), which show "
        "private examples without any noise.",
    )

    @model_validator(mode="after")
    def _settings_go_together(self) -> Self:
        check_source(self.source, NAMED)
        if self.rank and not self._has_rank:
            raise rule_error(f"Expected no rank: {self.method} has no factors.", "rank")
        if self.sparsity and not self._has_masks:
            raise rule_error(f"Expected no sparsity: {self.method} has no masks.", "sparsity")
        if self.method == PLAIN and self.clipping != "joint":
            raise rule_error("Expected joint: nothing is clipped by 'plain'.", "clipping")
        if self.method == BOTH and self.clipping == PRINTED:
            raise rule_error(f"Expected joint, equal or groups for {BOTH}.", "clipping")
        if self.experiment and not self.has_gradient_diagnostics:
            rule = f"Expected a private method that trains layers, for diagnostics: {self.method}."
            raise rule_error(rule, "experiment")
        return self

    @property
    def _has_rank(self) -> bool:
        return self.method == BOTH or (self.method in METHODS and METHODS[self.method].has_rank)

    @property
    def _has_masks(self) -> bool:
        return self.method in METHODS and METHODS[self.method].masked != "nothing"

    @property
    def trains_layers(self) -> bool:
        """Whether more than a head is trained."""
        return self.method != HEAD

    @property
    def is_private(self) -> bool:
        """Whether gradients are clipped and noised."""
        return self.method != PLAIN

    @property
    def kept_layers(self) -> int:
        """Top layers whose inputs are kept, since trainings start from them; 0 for a head."""
        return self.train_layers if self.trains_layers else 0

    @property
    def has_gradient_diagnostics(self) -> bool:
        """Whether a training has clip factors and layers to be shown."""
        return self.method not in (HEAD, BOTH, PLAIN)

    @property
    def cost(self) -> Guarantee:
        """What one release is claimed to cost; this is what the ledger debits."""
        return Guarantee(self.epsilon, self.relation, delta=self.delta, model=TrustModel.CENTRAL)

    @property
    def relation(self) -> Neighbours:
        """What is hidden."""
        return Neighbours(f"record-{self.neighbours}")

    @property
    def total_budget(self) -> Guarantee:
        """What all releases of the data set may cost together."""
        return Guarantee(
            self.budget, self.relation, delta=self.budget_delta, model=TrustModel.CENTRAL
        )

    @property
    def libraries(self) -> Mapping[str, tuple[str, ...]]:
        """Libraries that these settings need, by the extra of noisefloor that brings them."""
        return {"text-models": ("safetensors", "tokenizers", "torch", "transformers")}

    def open_files(self) -> None:
        """Raise BadTable or BadBackbone if an own file is missing or breaks a rule."""
        # Imported here because the loader needs this module.
        from noisefloor_sim.pipelines.finetuning.text_assignment import load_source

        if self.source not in NAMED:
            load_source(self)
        if self.backbone not in (DEFAULT_BACKBONE, MADE_UP):
            check_backbone_folder(Path(self.backbone))

    def is_experiment(self, variant: str) -> bool:
        """Say whether more may be claimed than is proved."""
        return self.method == PLAIN or (self.trains_layers and self.clipping == PRINTED)


def check_backbone_folder(folder: Path) -> None:
    """Raise BadBackbone if a directory is none that a model could be in."""
    from noisefloor.errors import BadBackbone

    if not (folder / "config.json").is_file():
        raise BadBackbone(folder, "is no directory of a model: it has no config.json")


def block_of(scenario: Scenario) -> FinetuningBlock:
    """Return the settings of fine-tuning in a scenario."""
    block = scenario.pipelines["finetuning"]
    if not isinstance(block, FinetuningBlock):
        raise TypeError("The scenario was read with other pipelines than these.")
    return block
