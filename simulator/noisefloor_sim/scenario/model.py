"""The scenario: one question to the simulator, as frozen values.

Only name, seed, question and pipelines have to be given. Everything here is data; how it is read
stands in ``loading``, what follows from it in the engine.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    InstanceOf,
    SerializeAsAny,
    WithJsonSchema,
    model_validator,
)

from noisefloor_sim.scenario.blocks import (
    FROZEN,
    PipelineBlock,
    PlainText,
    rule_error,
)
from noisefloor_sim.scenario.findings import Finding
from noisefloor_sim.scenario.formats import SCENARIO_FORMAT
from noisefloor_sim.scenario.gates import parse_gate, words_of
from noisefloor_sim.scenario.load import Load
from noisefloor_sim.scenario.sections import (
    LONGEST_H,
    Behaviour,
    Devices,
    Network,
    Population,
    Tastes,
    Threat,
    Witnesses,
)

MOST_POINTS = 10_000
MOST_ATTACKS = 100
LARGEST_SEED = 2**53 - 1
"""What every JSON reader holds exactly."""

Values = Annotated[tuple[object, ...], Field(min_length=1)]
"""What a swept key takes, one after the other; checked where the key belongs."""


class Sweep(BaseModel):
    """Dotted keys of the scenario with a list of values each, crossed; and replicates."""

    model_config = ConfigDict(**{**FROZEN, "extra": "allow"})
    __pydantic_extra__: dict[str, Values] = Field(init=False)

    seeds: int = Field(
        default=1,
        ge=1,
        le=MOST_POINTS,
        description="Replicates of every point, with seed, seed + 1, and so on.",
    )

    @property
    def axes(self) -> tuple[tuple[str, tuple[object, ...]], ...]:
        """The swept keys with their values, by key: the order in the file does not matter."""
        return tuple(sorted(self.__pydantic_extra__.items()))


def _checked_gate(text: str) -> str:
    """Return a gate's text with single spaces, if it can be read."""
    try:
        parse_gate(text)
    except ValueError as error:
        raise rule_error(str(error)) from None
    return " ".join(words_of(text))


# Blocks are built by their own models before; the schema's part comes from there as well.
PipelineBlocks = Annotated[
    Mapping[str, SerializeAsAny[InstanceOf[PipelineBlock]]],
    WithJsonSchema({"type": "object", "minProperties": 1}),
]
GateText = Annotated[str, AfterValidator(_checked_gate)]


class Scenario(BaseModel):
    """A noisefloor scenario: one question, the world it is asked of, and what answers it."""

    model_config = FROZEN

    format: int = Field(
        default=SCENARIO_FORMAT,
        ge=SCENARIO_FORMAT,
        le=SCENARIO_FORMAT,
        description="Version of the format of this file; the current one if left out.",
    )
    name: str = Field(
        pattern=r"^[a-z0-9-]{1,64}$",
        description="Small letters, digits and hyphens; names the run.",
    )
    question: PlainText = Field(
        min_length=1, max_length=500, description="What is asked; the report begins with it."
    )
    expectation: PlainText = Field(
        default="", max_length=1_000, description="The answer that is expected, for the report."
    )
    seed: int = Field(
        ge=0, le=LARGEST_SEED, description="Of all randomness: the same seed, the same run."
    )
    days: int = Field(default=7, ge=1, le=366, description="How long the world runs.")
    variant: Literal["paper", "corrected"] = Field(
        default="corrected", description="Mechanisms as printed, or as they have to be."
    )
    population: Population = Field(default=Population(), description="Who there is.")
    devices: Devices = Field(default=Devices(), description="What users own.")
    tastes: Tastes = Field(default=Tastes(), description="What users truly like.")
    behaviour: Behaviour | None = Field(
        default=None,
        description="What users are shown and click, where a pipeline needs ads; defaults if it "
        "is left out. A world without such a pipeline has no ads, and this key must be left out.",
    )
    network: Network = Field(default=Network(), description="What happens on the way.")
    grace_h: float = Field(
        default=24.0,
        ge=0,
        le=LONGEST_H,
        description="Hours that an epoch stays open after its period; later frames are refused.",
    )
    budget: float = Field(
        default=1_000.0,
        gt=0,
        le=1e6,
        description="Epsilon that a user may spend in the whole run, over all own devices and "
        "all pipelines.",
    )
    pipelines: PipelineBlocks = Field(
        min_length=1, description="Pipelines that run, each with its own block."
    )
    attacks: tuple[str, ...] = Field(
        default=(),
        max_length=MOST_ATTACKS,
        description="Attacks to mount, as pipeline.attack; none listed: all. What is not mounted "
        "is not measured, and a claim whose audit is left out is not audited.",
    )
    threat: Threat = Field(default=Threat(), description="What the adversary sees.")
    witnesses: Witnesses = Field(
        default=Witnesses(), description="Users by whom a run's own reports are audited."
    )
    sweep: Sweep = Field(
        default=Sweep(), description="Dotted keys to lists of values, crossed; seeds: replicates."
    )
    gates: tuple[GateText, ...] = Field(
        default=(), max_length=100, description="Conditions that decide the exit code of a run."
    )
    findings: tuple[Finding, ...] = Field(
        default=(),
        max_length=20,
        description="Sentences that answer the question, each with the condition under which it "
        "is true; printed with their figures, and without effect on the exit code.",
    )
    load: Load | None = Field(
        default=None,
        description="What `noisefloor stress` sends to the services; a run ignores it.",
    )

    def mounts(self, pipeline: str, game: str) -> bool:
        """Whether an attack is selected, by its pipeline and its name or game."""
        return not self.attacks or f"{pipeline}.{game.replace('_', '-')}" in self.attacks

    @model_validator(mode="before")
    @classmethod
    def _show_ads_where_needed(cls, data: object) -> object:
        """Fill in the default behaviour where a pipeline needs ads."""
        if not isinstance(data, Mapping) or data.get("behaviour") is not None:
            return data
        blocks = data.get("pipelines")
        listed = blocks.values() if isinstance(blocks, Mapping) else ()
        has_ads = any(isinstance(one, PipelineBlock) and one.needs_ads for one in listed)
        return {**data, "behaviour": Behaviour()} if has_ads else data

    @property
    def ad_behaviour(self) -> Behaviour:
        """What users are shown and click, in a world with ads."""
        if self.behaviour is None:
            raise TypeError("This scenario's world has no ads.")
        return self.behaviour
