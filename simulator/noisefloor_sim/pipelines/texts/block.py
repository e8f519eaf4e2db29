"""The settings of the publication of texts in a scenario."""

from collections.abc import Mapping
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor_sim.pipelines.texts.result_names import CLAIM_NAMES, METRIC_NAMES
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

ATTACKS: Attacks = {
    "canary": Attack(
        "a text that moves every noisy table as far as any can, in one release and in all",
        ("canary", "stayer", "null", "planted"),
        is_audit=True,
    ),
    "rare-word": Attack(
        "whether somebody posted who alone uses a word, by the words that were published",
        ("rare_word", "seed", "search"),
        is_audit=True,
    ),
    "members": Attack("whose text is in the corpus", ("nearest", "runs", "copied")),
    "lengths": Attack("whose text is in the corpus, by its length alone", ("length",)),
    "exposure": Attack("which of many secrets somebody posted", ("exposure",)),
    "author": Attack("who wrote the corpus, by style", ("author",)),
    "k-boundary": Attack(
        "whether there is a k-th text that names a place, by how it is written in the others",
        ("boundary",),
        is_audit=True,
    ),
}
"""What the adversary guesses, by the name of the attack."""


class TextsBlock(PipelineBlock):
    """A publisher that collects its users' posts, and publishes made-up texts like them."""

    metric_names: ClassVar[tuple[str, ...]] = METRIC_NAMES
    unseen_names: ClassVar[tuple[str, ...]] = ("residuals.*", "counting.*")
    claim_names: ClassVar[tuple[str, ...]] = CLAIM_NAMES
    spends_budgets: ClassVar[bool] = False  # the data set has a budget, and its ledger
    attacks: ClassVar[Attacks] = ATTACKS

    source: PlainText = Field(
        default=MADE_UP,
        max_length=1_000,
        description="Where texts come from: made-up, with a style of each user; rotten-tomatoes "
        "or imdb, which are fetched; or a file of your own that ends in .csv, .tsv or .parquet, "
        "with its schema beside it.",
    )
    public: Literal["made-up", "rotten-tomatoes", "imdb"] = Field(
        default="made-up",
        description="Public texts that say what is frequent; made-up with made-up texts alone.",
    )
    public_weight: float = Field(
        default=0.0, ge=0, le=1, description="The chance that a piece is taken from public text."
    )
    epsilon: float = Field(default=2.0, gt=0, le=1_000, description="Claimed of each release.")
    delta: float = Field(
        default=1e-5,
        gt=0,
        lt=0.01,
        description="Of each release; far below the confidence of audits, or these show nothing.",
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
    post_over_days: int = Field(
        default=1, ge=1, le=366, description="Posts are written evenly over this number of days."
    )
    posts: int = Field(
        default=1,
        ge=1,
        le=100,
        description="Texts of a user at most: devices post no more, and the guarantee of an "
        "author counts on it. How many each has is drawn.",
    )
    text_bytes: int = Field(
        default=2_048, ge=16, le=65_536, description="Bytes of a post; the rest is cut off."
    )
    pieces: int = Field(
        default=60, ge=2, le=512, description="Of a text that are counted; the rest is left out."
    )
    texts: int = Field(
        default=2_000, ge=16, le=1_000_000, description="How many made-up texts are published."
    )
    test_share: float = Field(
        default=0.2, gt=0, lt=1, description="Share of users whose texts are never posted."
    )
    style: float = Field(
        default=0.3,
        ge=0,
        lt=1,
        description="Share of words of a made-up text that its author prefers to other words.",
    )
    canaries: int = Field(
        default=4_000,
        ge=500,
        le=1_000_000,
        description="Games on either of two inputs in an audit, fewer where one game is long.",
    )
    rare_words: int = Field(
        default=60,
        ge=20,
        le=500,
        description="Posts with a word that nobody else uses, each posted with probability 1/2.",
    )
    searched: int = Field(
        default=0,
        ge=0,
        le=1_000_000,
        description="Texts, made as those that are published, in which rare words are sought as "
        "well; 0: none.",
    )
    secrets: int = Field(
        default=20, ge=4, le=200, description="Posts of a secret, one of many that it could be."
    )
    candidates: int = Field(default=64, ge=4, le=4_096, description="Secrets it could be.")
    authors: int = Field(
        default=8,
        ge=2,
        le=64,
        description="Among whom the author of a corpus is sought; made-up texts alone.",
    )
    author_games: int = Field(
        default=24, ge=8, le=1_000, description="Corpora whose author is sought."
    )
    k: int = Field(
        default=5, ge=2, le=1_000, description="Texts that share a place; of the paper's variant."
    )
    judged: int = Field(
        default=600, ge=40, le=100_000, description="Texts of each kind that are compared."
    )

    @model_validator(mode="after")
    def _settings_go_together(self) -> Self:
        check_source(self.source, NAMED)
        if (self.public == MADE_UP) is not (self.source == MADE_UP):
            rule = "Expected made-up public texts with made-up posts, and only there."
            raise rule_error(rule, "public")
        if self.public == self.source and not self.is_made_up:
            rule = f"Expected other texts than the posts, found {self.source} for both."
            raise rule_error(rule, "public")
        return self

    @property
    def is_made_up(self) -> bool:
        """Whether posts are made up, with places and styles that are known."""
        return self.source == MADE_UP

    @property
    def relation(self) -> Neighbours:
        """What is hidden: whether there is a text."""
        return Neighbours.RECORD_ADD_REMOVE

    @property
    def cost(self) -> Guarantee:
        """What one release is claimed to cost; this is what the ledger debits."""
        return Guarantee(self.epsilon, self.relation, delta=self.delta, model=TrustModel.CENTRAL)

    @property
    def total_budget(self) -> Guarantee:
        """What all releases of the data set may cost together."""
        return Guarantee(
            self.budget, self.relation, delta=self.budget_delta, model=TrustModel.CENTRAL
        )

    @property
    def libraries(self) -> Mapping[str, tuple[str, ...]]:
        """Libraries that these settings need, by the extra of noisefloor that brings them."""
        return {"text": ("scikit-learn", "tokenizers")}

    def open_files(self) -> None:
        """Raise BadTable if an own file is missing or breaks a rule."""
        # Imported here because the loader needs this module.
        from noisefloor_sim.pipelines.texts.posts import load_source

        if self.source not in NAMED:
            load_source(self)

    def is_experiment(self, variant: str) -> bool:
        """Say whether more may be claimed than is proved, or the publisher has to be prepared.

        Public texts that are made up are known to publishers that are started for experiments.
        """
        return variant == "paper" or self.is_made_up


def block_of(scenario: Scenario) -> TextsBlock:
    """Return the settings of published texts in a scenario."""
    block = scenario.pipelines["texts"]
    if not isinstance(block, TextsBlock):
        raise TypeError("The scenario was read with other pipelines than these.")
    return block
