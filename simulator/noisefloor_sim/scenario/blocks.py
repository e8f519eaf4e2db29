"""How a pipeline plugs its own block into the scenario.

A pipeline declares one model derived from ``PipelineBlock``, with its attacks as models derived
from ``AttackBlock``, and is handed to the reader in a mapping from its name to the model. Nothing
in this package knows a pipeline by name.

    class Clicks(PipelineBlock):
        attacks: ClassVar[Attacks] = {"single-bit": SingleBit}
        epsilon: float = Field(gt=0, le=40, description="Per report.")

    load("quickstart.yaml", {"clicks": Clicks})

What every section of a scenario shares: frozen, strict, no unknown keys; common types.
"""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, ClassVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints
from pydantic_core import PydanticCustomError

from noisefloor.tables import is_table_file

FROZEN = ConfigDict(
    frozen=True,
    extra="forbid",
    strict=True,  # "3" is no number, 1 is no boolean; whole numbers are read as floats, though
    allow_inf_nan=False,
    validate_default=True,
    protected_namespaces=(),
)
"""The configuration of every section and block. Lists are read as tuples: declare
``tuple[float, ...]``, and ``Literal`` rather than an enumeration."""

Probability = Annotated[float, Field(ge=0, le=1)]


def rule_error(rule: str, key: str = "") -> PydanticCustomError:
    """Make the error that a validator of a section raises.

    Args:
        rule: What was expected and what was found, a sentence with its full stop.
        key: The key inside the section that is to be named, if it is not the section itself.
    """
    return PydanticCustomError("rule", "{rule}", {"rule": rule, "key": key})


def check_source(source: str, named: Sequence[str]) -> None:
    """Refuse a source of records that is neither named nor a file of tables."""
    if source not in named and not is_table_file(source):
        listed = ", ".join(named)
        raise rule_error(
            f"Expected {listed}, or a file that ends in .csv, .tsv or .parquet.", "source"
        )


def _plain_text(text: str) -> str:
    """Return a text, unless a page could not show it as it stands."""
    for letter in text:
        is_joiner = letter in "\u200c\u200d"  # some scripts need them
        if unicodedata.category(letter) in _UNSHOWN and letter != "\n" and not is_joiner:
            raise rule_error(f"Expected plain text, found the character U+{ord(letter):04X}.")
    return text


# Control, format (which can turn the reading direction), surrogate, private, line separators.
_UNSHOWN = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}

PlainText = Annotated[str, StringConstraints(strip_whitespace=True), AfterValidator(_plain_text)]


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
    needs_ads: ClassVar[bool] = False
    """Whether the pipeline needs what people are shown and click; a world has ads if one does."""

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
