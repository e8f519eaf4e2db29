"""How a pipeline plugs its own block into the scenario.

A pipeline declares one model derived from ``PipelineBlock``, with its attacks as models derived
from ``AttackBlock``, and is handed to the reader in a mapping from its name to the model. Nothing
in this package knows a pipeline by name.

    class Clicks(PipelineBlock):
        attacks: ClassVar[Attacks] = {"single-bit": SingleBit}
        epsilon: float = Field(gt=0, le=40, description="Per report.")

    load("quickstart.yaml", {"clicks": Clicks})
"""

from collections.abc import Iterable, Mapping
from typing import ClassVar

from pydantic import BaseModel, Field

from noisefloor_sim.scenario.section import FROZEN


class AttackBlock(BaseModel):
    """Base of an attack's settings; a scenario that gives only the name gets the defaults."""

    model_config = FROZEN

    name: str = Field(description="Pipeline and attack with a dot between them.")


Attacks = Mapping[str, type[AttackBlock]]


class PipelineBlock(BaseModel):
    """Base of a pipeline's settings.

    Fields have bounds, descriptions and units in their names, as in the sections of the scenario;
    a validator that compares fields raises ``section.broken``.
    """

    model_config = FROZEN

    attacks: ClassVar[Attacks] = {}

    def check_extras(self) -> None:
        """Raise MissingExtra if these settings need a library that is not installed."""


Blocks = Mapping[str, type[PipelineBlock]]


def attack_models(names: Iterable[str], blocks: Blocks) -> dict[str, type[AttackBlock]]:
    """Return the attacks that named pipelines bring, by full name, in order."""
    return {
        f"{name}.{attack}": model
        for name in sorted(names)
        if name in blocks
        for attack, model in sorted(blocks[name].attacks.items())
    }
