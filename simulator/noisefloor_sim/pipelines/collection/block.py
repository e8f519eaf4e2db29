"""The settings of the collection of records in a scenario."""

from collections.abc import Mapping
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from noisefloor_sim.pipelines.collection.result_names import CLAIM_NAMES, METRIC_NAMES
from noisefloor_sim.scenario import (
    Attack,
    Attacks,
    PipelineBlock,
    PlainText,
    Probability,
    Scenario,
    check_source,
    rule_error,
)

NAMED = ("synthetic", "wdbc", "ionosphere", "adult")


ATTACKS: Attacks = {
    "attribute": Attack("whether one value is low or high, from one report in training"),
    "label": Attack("the label, from one report in training"),
    "label-known": Attack("the label from its own report, its shares known before"),
    "record": Attack("the whole record, among 16, from one report in training"),
    "class-zero": Attack("a report that proves a minimum or a negative label"),
    "products": Attack("the label, from products of class and label without noise"),
    "repeated": Attack("one decision or low or high value, from all questions of a user"),
    "members": Attack("whether an owner took part, from support vectors of 40 owners"),
    "audit": Attack(
        "which of two records a witness reports about, to audit the claims", is_audit=True
    ),
}
"""What the adversary guesses, by the name of the attack."""


class CollectionBlock(PipelineBlock):
    """Records of wearables, collected to learn a classifier, and questions to it."""

    metric_names: ClassVar[tuple[str, ...]] = METRIC_NAMES
    claim_names: ClassVar[tuple[str, ...]] = CLAIM_NAMES
    attacks: ClassVar[Attacks] = ATTACKS

    source: PlainText = Field(
        default="synthetic",
        max_length=1_000,
        description="Where records come from: synthetic, wdbc, ionosphere, adult, or a file of "
        "your own that ends in .csv, .tsv or .parquet.",
    )
    schema_file: PlainText = Field(
        default="",
        max_length=1_000,
        description="Types, ranges and categories of a file of your own, as YAML or JSON.",
    )
    method: Literal["joint-bayes", "joint-counts", "joint-svm", "unified", "weak", "piecewise"] = (
        Field(
            default="joint-bayes",
            description="What owners send and what is learnt from it; 'joint-bayes' learns by "
            "likelihood what 'joint-counts' learns from debiased counts, both for labels of any "
            "number of classes; 'weak' sends classes without noise, and the paper's variant of "
            "'unified' is as printed.",
        )
    )
    epsilon: float = Field(
        default=2.0,
        gt=0,
        le=100,
        description="Claimed for each phase: a report to the selection, one in training, one "
        "question.",
    )
    ranges: Literal["declared", "private"] = Field(
        default="declared",
        description="Whether ranges are those declared, or are learnt within them by a round of "
        "its own, before all others, under 'range_share' of epsilon.",
    )
    range_share: float = Field(
        default=0.25,
        gt=0,
        lt=1,
        description="Part of epsilon for private ranges; a report in training has the rest.",
    )
    attributes: int = Field(
        default=0, ge=0, le=4_096, description="Attributes reported; 0: by the public rule."
    )
    classes: int = Field(
        default=0, ge=0, le=4_096, description="Classes of an attribute; 0: by the public rule."
    )
    selection: Literal["none", "random", "piecewise", "response", "weak"] = Field(
        default="random",
        description="How attributes are chosen: all, at random, or by a round of its own through "
        "the piecewise mechanism, by randomised response, or without noise.",
    )
    form: Literal["prod", "cosine", "corr"] = Field(
        default="prod", description="How the selections 'response' and 'weak' score attributes."
    )
    classifier: Literal[
        "svm",
        "linear-svm",
        "logistic",
        "forest",
        "boosting",
        "tree",
        "neighbours",
        "naive-bayes",
    ] = Field(default="svm", description="Of all methods but naive Bayes, which has its own.")
    weight: float = Field(default=1.0, gt=0, le=1e6, description="C of the classifier.")
    test_share: float = Field(
        default=0.2,
        gt=0,
        lt=1,
        description="Share of the records that nobody trains on: rows are split before users "
        "draw them.",
    )
    questions: Literal["device", "protected"] = Field(
        default="device",
        description="Whether the published model is asked on the device, which costs nothing, or "
        "the server by protected questions.",
    )
    questions_per_day: int = Field(
        default=1, ge=1, le=100, description="Protected questions of each user who asks, a day."
    )
    askers: Literal["test", "everyone"] = Field(
        default="test",
        description="Who asks: those who did not train, or the owners of training records, too.",
    )
    round_h: float = Field(default=24.0, gt=0, le=240, description="Hours that a round is open.")
    drop_out: Probability = Field(
        default=0.0, description="Probability that a device in contact takes no part in a round."
    )
    canaries: int = Field(
        default=4_000,
        ge=1_000,
        le=1_000_000,
        description="Owners with known records that the adversary is tested on, for each guess.",
    )

    @model_validator(mode="after")
    def _settings_go_together(self) -> Self:
        check_source(self.source, NAMED)
        if bool(self.schema_file) is (self.source in NAMED):
            raise rule_error(
                "Expected a schema with a file of your own, and only there.", "schema_file"
            )
        if self.is_bayes and self.selection not in ("none", "random"):
            raise rule_error(
                f"Expected random: each owner of {self.method} draws attributes.", "selection"
            )
        if self.classes == 1:
            raise rule_error("Expected 2 or more, or 0: one class tells nothing.", "classes")
        return self

    @property
    def is_bayes(self) -> bool:
        """Whether naive Bayes is learnt."""
        return self.method in ("joint-bayes", "joint-counts")

    @property
    def libraries(self) -> Mapping[str, tuple[str, ...]]:
        """Libraries that these settings need, by the extra of noisefloor that brings them."""
        # Naive Bayes is learnt by counting; WDBC comes with the library.
        is_light = self.is_bayes and self.source != "wdbc"
        return {} if is_light else {"collection": ("scikit-learn",)}

    def open_files(self) -> None:
        """Raise BadTable if the own table or its schema is missing or breaks a rule."""
        # Imported here because the loader needs this module.
        from noisefloor_sim.pipelines.collection.record_assignment import load_source

        if self.source not in NAMED:
            load_source(self.source, self.schema_file)


def block_of(scenario: Scenario) -> CollectionBlock:
    """Return the settings of the collection in a scenario."""
    block = scenario.pipelines["collection"]
    if not isinstance(block, CollectionBlock):
        raise TypeError("The scenario was read with other pipelines than these.")
    return block
