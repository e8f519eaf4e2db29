"""What every section of a scenario shares: frozen, strict, no unknown keys; common types."""

import unicodedata
from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints
from pydantic_core import PydanticCustomError

from noisefloor.data import is_table_file

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


def broken(rule: str, key: str = "") -> PydanticCustomError:
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
        raise broken(
            f"Expected {listed}, or a file that ends in .csv, .tsv or .parquet.", "source"
        )


def _plain_text(text: str) -> str:
    """Return a text, unless a page could not show it as it stands."""
    for letter in text:
        is_joiner = letter in "\u200c\u200d"  # some scripts need them
        if unicodedata.category(letter) in _UNSHOWN and letter != "\n" and not is_joiner:
            raise broken(f"Expected plain text, found the character U+{ord(letter):04X}.")
    return text


# Control, format (which can turn the reading direction), surrogate, private, line separators.
_UNSHOWN = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}

PlainText = Annotated[str, StringConstraints(strip_whitespace=True), AfterValidator(_plain_text)]
