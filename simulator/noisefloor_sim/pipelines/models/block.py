"""The settings of the publication of models in a scenario."""

from collections.abc import Mapping
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor_sim.pipelines.models.result_names import CLAIM_NAMES, METRIC_NAMES
from noisefloor_sim.scenario import (
    Attack,
    Attacks,
    PipelineBlock,
    PlainText,
    Scenario,
    check_source,
    rule_error,
)

NAMED = ("synthetic", "adult")

SUBSTITUTE_ONLY = ("learning-first", "anonymised-learning")
"""Methods with a proof for a record that becomes another, and for no other relation."""

NEED_DELTA = ("logistic", "private-sgd")


ATTACKS: Attacks = {
    "canary": Attack(
        "one record that changes as much as any can, in one release and in all of them",
        ("canary", "stayer", "null", "planted"),
        is_audit=True,
    ),
    "members": Attack(
        "who is in the data set, by shadow models",
        ("loss", "lira", "null", "planted"),
        is_audit=True,
    ),
    "newcomer": Attack("who came between two releases", ("newcomer", "newcomer_alone")),
    "missing-value": Attack("one value of a known record"),
    "nearest": Attack("who is near a synthetic record", ("nearest", "planted")),
    "missing-record": Attack("which of four records is missing, all others known"),
    "difference": Attack("which of four came between two releases, no other record known"),
}
"""What the adversary guesses, by the name of the attack."""


class ModelsBlock(PipelineBlock):
    """A data holder that publishes a classifier of its users' records, again and again."""

    metric_names: ClassVar[tuple[str, ...]] = METRIC_NAMES
    unseen_names: ClassVar[tuple[str, ...]] = ("residuals.*",)
    claim_names: ClassVar[tuple[str, ...]] = CLAIM_NAMES
    spends_budgets: ClassVar[bool] = False  # the data set has a budget, and its ledger
    attacks: ClassVar[Attacks] = ATTACKS

    source: PlainText = Field(
        default="synthetic",
        max_length=1_000,
        description="Where records come from: synthetic, adult, or a file of your own that ends "
        "in .csv, .tsv or .parquet, with its schema beside it.",
    )
    label: PlainText = Field(
        default="",
        max_length=100,
        description="The column to be learnt; may be left out for the named sources.",
    )
    method: Literal[
        "plain",
        "logistic",
        "private-sgd",
        "anonymising-first",
        "synthetic-table",
        "learning-first",
        "anonymised-learning",
    ] = Field(
        default="logistic",
        description="How it is published; 'plain' has no noise at all, and learning-first and "
        "anonymised-learning in the paper's variant are noised parameter by parameter.",
    )
    form: Literal["clamped", "printed"] = Field(
        default="clamped",
        description="Of the paper's variant: clamped to its thresholds before the noise, which "
        "proves epsilon for each parameter, or as printed, which proves nothing.",
    )
    epsilon: float = Field(
        default=1.0, gt=0, le=1_000, description="Claimed of each release of the model."
    )
    delta: float = Field(
        default=1e-6,
        ge=0,
        lt=0.01,
        description="Of each release, for methods that use one; 0 gives tables Laplace noise.",
    )
    neighbours: Literal["substitute", "add-remove"] = Field(
        default="substitute",
        description="What is hidden: which record somebody has, or whether there is one.",
    )
    budget: float = Field(
        default=4.0,
        gt=0,
        le=100_000,
        description="Epsilon of the data set, over all releases; what it does not cover is "
        "refused.",
    )
    budget_delta: float = Field(
        default=1e-4, ge=0, lt=0.1, description="Delta of the data set, over all releases."
    )
    release_every_days: int = Field(
        default=7, ge=1, le=366, description="Days from one release to the next."
    )
    join_over_days: int = Field(
        default=1,
        ge=1,
        le=366,
        description="Users join evenly over this number of days; a record arrives at the first "
        "contact from then on.",
    )
    test_share: float = Field(
        default=0.3,
        gt=0,
        lt=1,
        description="Share of the users whose records are never given to the data holder.",
    )
    tables: Literal["marginal-tree", "label-histograms", "cells"] = Field(
        default="marginal-tree", description="Which tables anonymising-first counts."
    )
    columns: PlainText = Field(
        default="",
        max_length=1_000,
        description="The columns of 'cells', with commas between them.",
    )
    hidden: str = Field(
        default="16",
        pattern=r"^(none|[0-9]+(,[0-9]+)*)$",
        max_length=40,
        description="Widths of hidden layers with commas between them, or none; of the plain "
        "network, private-sgd, learning-first and anonymised-learning.",
    )
    epochs: int = Field(
        default=20, ge=1, le=200, description="How often a network sees each record."
    )
    batch: int = Field(
        default=0, ge=0, le=65_536, description="Records of a step; 0: the method's own choice."
    )
    learning_rate: float = Field(
        default=0.0, ge=0, le=10, description="Of networks; 0: the method's own choice."
    )
    bound: float = Field(
        default=1.0, gt=0, le=1_000, description="Threshold of each parameter in learning-first."
    )
    shadows: int = Field(
        default=24,
        ge=16,
        le=256,
        description="Models that the adversary trains to learn what membership looks like.",
    )
    pool: int = Field(
        default=300,
        ge=50,
        le=10_000,
        description="Records that half of are in each shadow model.",
    )
    canaries: int = Field(
        default=4_000,
        ge=500,
        le=1_000_000,
        description="Games on either of two inputs in an audit, fewer where one game is long.",
    )

    @model_validator(mode="after")
    def _settings_go_together(self) -> Self:
        check_source(self.source, NAMED)
        if self.source not in NAMED and not self.label:
            raise rule_error("Expected the column to be learnt from a file of your own.", "label")
        if self.method in SUBSTITUTE_ONLY and self.neighbours != "substitute":
            raise rule_error(
                f"Expected substitute: {self.method} has a proof for no other relation.",
                "neighbours",
            )
        if self.method in NEED_DELTA and not self.delta:
            raise rule_error(
                f"Expected more than 0: the noise of {self.method} needs one.", "delta"
            )
        if bool(self.columns) is not (self.tables == "cells"):
            raise rule_error(
                "Expected columns with the tables 'cells', and only there.", "columns"
            )
        return self

    @property
    def libraries(self) -> Mapping[str, tuple[str, ...]]:
        """Libraries that these settings need, by the extra of noisefloor that brings them."""
        needs_torch = self.method == "private-sgd"
        return {"models": ("safetensors", "torch") if needs_torch else ("safetensors",)}

    def open_files(self) -> None:
        """Raise BadTable if the own table or its schema is missing or breaks a rule."""
        # Imported here because the loader needs this module.
        from noisefloor_sim.pipelines.models.record_assignment import load_source

        if self.source not in NAMED:
            load_source(self)

    @property
    def total_budget(self) -> Guarantee:
        """What all releases of the data set may cost together."""
        relation = Neighbours(f"record-{self.neighbours}")
        return Guarantee(self.budget, relation, delta=self.budget_delta, model=TrustModel.CENTRAL)

    def is_experiment(self, variant: str) -> bool:
        """Say whether more may be claimed than is proved: for papers, and without noise."""
        return self.method == "plain" or variant == "paper"


def block_of(scenario: Scenario) -> ModelsBlock:
    """Return the settings of the publication of models in a scenario."""
    block = scenario.pipelines["models"]
    if not isinstance(block, ModelsBlock):
        raise TypeError("The scenario was read with other pipelines than these.")
    return block
