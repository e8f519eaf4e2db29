"""The specification of a model, in public terms, and a strict reader of its parameters."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType
from typing import TypeAlias

from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.tables import MOST_ROWS, OneHot, Schema

Parameter: TypeAlias = str | int | float | bool
"""Parameters of a method beside the budget."""

RELATIONS = (Neighbours.RECORD_ADD_REMOVE, Neighbours.RECORD_SUBSTITUTE)

MOST_LAYERS = 4
MOST_WIDTH = 1024
MOST_WEIGHTS = 1 << 22
"""Bounds of what a request may ask for: a training may take long, it may not take everything."""


class PublicTerms:
    """What a request says in public beside its method: checks that all specifications share."""

    __slots__ = ()
    cost: Guarantee
    size: int | None

    def check_terms(self) -> None:
        """Refuse a cost that no method can keep to."""
        if self.cost.model is not TrustModel.CENTRAL:
            raise BadParameter("model", self.cost.model.value, "central: a curator learns")
        self.check_relation(*RELATIONS)
        if not self.cost.is_finite or self.cost.epsilon <= 0:
            raise BadParameter("epsilon", self.cost.epsilon, "> 0 and finite")

    def check_relation(self, *known: Neighbours, why: str = "") -> None:
        """Refuse a relation that a method has no proof for."""
        if self.cost.neighbours not in known:
            names = " or ".join(one.value for one in known)
            rule = f"{names}{': ' if why else ''}{why}"
            raise BadParameter("neighbours", self.cost.neighbours.value, rule)

    def check_delta(self) -> None:
        """Refuse a cost without delta, for noise that needs one."""
        if not 0 < self.cost.delta < 1:
            raise BadParameter("delta", self.cost.delta, "> 0: the noise of this method needs one")

    @property
    def declared_size(self) -> int:
        """The public number of records, or an error that says to declare one."""
        if self.size is None:
            raise BadParameter(
                "size",
                "<none>",
                "declared, a whole number: where a record may be added or removed the number of "
                "records is not public, and training steps are scaled by it",
            )
        return self.size


@dataclass(frozen=True, slots=True)
class ModelSpec(PublicTerms):
    """A classifier that somebody wants of a labelled table; nothing in it looks at records.

    Attributes:
        encoding: The public schema, and which column is the label.
        cost: What the release may cost, and under which relation.
        size: How many records there are, if that is public: declared, or true where one record
            is substituted by another, for neighbours then have as many.
        parameters: What the method has to know beside that.
    """

    encoding: OneHot
    cost: Guarantee
    size: int | None = None
    parameters: Mapping[str, Parameter] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.check_terms()
        if self.encoding.classes < 2:
            raise BadParameter("label", "<text>", "a column of at least two values")
        object.__setattr__(self, "parameters", MappingProxyType(dict(self.parameters)))

    @classmethod
    def read(
        cls,
        schema: Schema,
        cost: Guarantee,
        parameters: Mapping[str, Parameter],
        size: int | None = None,
    ) -> "ModelSpec":
        """Read ``label`` and ``size`` of some parameters; the others are left to the method.

        Args:
            schema: What is public of the table.
            cost: What the release may cost.
            parameters: ``label`` has to be among them, unless the schema has one; ``size`` may be.
            size: How many records there are, if that is public.
        """
        rest = dict(parameters)
        label = rest.pop("label", schema.label)
        if not isinstance(label, str) or label not in schema.columns:
            raise BadParameter("label", "<text>", f"one of {', '.join(schema.columns)}")
        size = pop_size(rest, size)
        return cls(OneHot(schema, label), cost, size, rest)


class ParameterReader:
    """Reads parameters strictly: names that are not known, and values out of bounds, are errors.

    Errors name parameter and rule. They hold numbers, which are bounded, and never texts.

    Args:
        parameters: As they came.
        known: The names that may be there.
    """

    def __init__(self, parameters: Mapping[str, Parameter], known: tuple[str, ...]) -> None:
        if set(parameters) - set(known):
            rule = f"some of {', '.join(known)}" if known else "none: the method takes none"
            raise BadParameter("parameters", "<name>", rule)
        self._given = parameters

    def __contains__(self, name: str) -> bool:
        return name in self._given

    def whole(self, name: str, default: int, least: int, most: int) -> int:
        """Return a whole number within bounds."""
        value = self._given.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise BadParameter(name, _shown(value), f"a whole number in [{least}, {most}]")
        return value

    def number(self, name: str, default: float, least: float, most: float) -> float:
        """Return a number within bounds."""
        value = self._given.get(name, default)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not least <= float(value) <= most:
            raise BadParameter(name, _shown(value), f"a number in [{least:g}, {most:g}]")
        return float(value)

    def choice(self, name: str, default: str, *known: str) -> str:
        """Return one of some texts."""
        value = self._given.get(name, default)
        if not isinstance(value, str) or value not in known:
            raise BadParameter(name, _shown(value), f"one of {', '.join(known)}")
        return value

    def line(self, name: str, default: str, most: int) -> str:
        """Return a text of one line, of printable characters."""
        value = self._given.get(name, default)
        if not isinstance(value, str) or not value.isprintable() or not 0 < len(value) <= most:
            rule = f"a line of at most {most} printable characters"
            raise BadParameter(name, _shown(value), rule)
        return value

    def flag(self, name: str, default: bool) -> bool:
        """Return a truth value."""
        value = self._given.get(name, default)
        if not isinstance(value, bool):
            raise BadParameter(name, _shown(value), "true or false")
        return value

    def names(self, name: str, default: str = "") -> tuple[str, ...]:
        """Return names with commas between them."""
        value = self._given.get(name, default)
        if not isinstance(value, str):
            raise BadParameter(name, _shown(value), "names with commas between them")
        return tuple(one.strip() for one in value.split(",") if one.strip())

    def layers(self, name: str, default: tuple[int, ...]) -> tuple[int, ...]:
        """Return numbers of layers: ``4,5,6`` or one number."""
        value = self._given.get(name, ",".join(map(str, default)))
        parts = str(value).split(",") if isinstance(value, str | int) else [""]
        if isinstance(value, bool) or not all(_is_width(part) for part in parts):
            raise BadParameter(name, _shown(value), "numbers of layers with commas between them")
        return tuple(int(part) for part in parts)

    def widths(self, name: str, default: str, encoding: OneHot) -> tuple[int, ...]:
        """Return the widths of hidden layers: ``64,32``, one number, or ``none``."""
        value = self._given.get(name, default)
        rule = (
            f"none, or at most {MOST_LAYERS} widths in [1, {MOST_WIDTH}] with commas between them"
        )
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise BadParameter(name, _shown(value), rule)
        parts = [] if value == "none" else str(value).split(",")
        if len(parts) > MOST_LAYERS or not all(_is_width(part) for part in parts):
            raise BadParameter(name, _shown(value), rule)
        widths = tuple(int(part) for part in parts)
        if dense_parameter_count((encoding.width, *widths, encoding.classes)) > MOST_WEIGHTS:
            raise BadParameter(name, _shown(value), f"so that at most {MOST_WEIGHTS} weights come")
        return widths


def pop_size(parameters: dict[str, Parameter], size: int | None) -> int | None:
    """Take the declared number of records out of some parameters, or return the public one."""
    if "size" not in parameters:
        return size
    reader = ParameterReader({"size": parameters.pop("size")}, ("size",))
    return reader.whole("size", 1, 1, MOST_ROWS)


def dense_parameter_count(widths: tuple[int, ...]) -> int:
    """Return how many parameters dense layers of these widths have."""
    return sum((before + 1) * after for before, after in pairwise(widths))


def _is_width(part: str) -> bool:
    text = part.strip()
    return text.isascii() and text.isdigit() and len(text) < 6 and 1 <= int(text) <= MOST_WIDTH


def _shown(value: Parameter) -> object:
    """Show numbers only: a text may be anything."""
    if isinstance(value, str):
        return "<text>"
    return value if isinstance(value, bool) or math.isfinite(value) else "<number>"
