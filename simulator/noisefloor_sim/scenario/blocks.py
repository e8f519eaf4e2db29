"""How a pipeline plugs its own block into the scenario.

A pipeline declares one model derived from ``PipelineBlock``, with its attacks by name, and is
handed to the reader in a mapping from its name to the model. Nothing in this package names a
pipeline.

    class Clicks(PipelineBlock):
        attacks: ClassVar[Attacks] = {"single-bit": Attack("one click or none")}
        epsilon: float = Field(gt=0, le=40, description="Per report.")

    load("quickstart.yaml", {"clicks": Clicks})

What every section of a scenario shares: frozen, strict, no unknown keys; common types.
"""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, ClassVar, NamedTuple

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints
from pydantic_core import PydanticCustomError

from noisefloor.checks import check_extra
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


class Attack(NamedTuple):
    """An attack of a pipeline, which a scenario may select by name.

    Attributes:
        about: What is guessed.
        games: The games it plays, whose metrics are ``attack.GAME.*``; one of its own name if
            nothing is given.
        is_audit: Whether claims of the pipeline have their audited epsilon from it.
    """

    about: str
    games: tuple[str, ...] = ()
    is_audit: bool = False


Attacks = Mapping[str, Attack]
"""By name: small letters, digits and hyphens."""


def game_of(attack: str) -> str:
    """Return the game that has an attack's own name, as metrics write it."""
    return attack.replace("-", "_")


class PipelineBlock(BaseModel):
    """Base of a pipeline's settings.

    Fields have bounds, descriptions and units in their names, as in the sections of the scenario;
    a validator that compares fields raises ``rule_error``.
    """

    model_config = FROZEN

    attacks: ClassVar[Attacks] = {}
    needs_ads: ClassVar[bool] = False
    """Whether the pipeline needs what people are shown and click; a world has ads if one does."""
    spends_budgets: ClassVar[bool] = True
    """Whether users pay for releases from their own budgets; a data set may have one instead."""
    metric_names: ClassVar[tuple[str, ...]] = ("*",)
    """The metrics that the pipeline can produce, for gates; ``*`` stands for anything."""
    unseen_names: ClassVar[tuple[str, ...]] = ()
    """Those that are measured only where the publisher runs in the run's own process."""
    claim_names: ClassVar[tuple[str, ...]] = ("*",)
    """The mechanisms that it makes claims about, likewise."""

    @property
    def libraries(self) -> Mapping[str, tuple[str, ...]]:
        """Libraries that these settings need, by the extra of noisefloor that brings them."""
        return {}

    def check_extras(self, pipeline: str) -> None:
        """Raise MissingExtra if these settings, of a pipeline, need a library that is missing."""
        for extra, libraries in self.libraries.items():
            check_extra(f"The pipeline {pipeline}", extra, *libraries)

    def open_files(self) -> None:
        """Raise BadTable if a file that these settings name is missing or breaks a rule."""

    def is_experiment(self, variant: str) -> bool:
        """Say whether a publisher has to be started for experiments.

        It does where what it has to publish has no guarantee, or needs something made up.
        """
        return False


Blocks = Mapping[str, type[PipelineBlock]]


def attack_names(names: Iterable[str], blocks: Blocks) -> list[str]:
    """Return the attacks of named pipelines as a scenario selects them, in order."""
    return [
        f"{name}.{attack}"
        for name in sorted(names)
        if name in blocks
        for attack in sorted(blocks[name].attacks)
    ]
