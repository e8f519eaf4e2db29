"""A scenario as it was read: plain data, and where each key stands.

A check that finds a flaw names the path and the rule; the document turns both into an error with
the file, the dotted key and the line.

Dotted keys: split, written, looked up and set in plain data, and found in a model.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from noisefloor.errors import BadScenario, Fault
from noisefloor_sim.scenario.error_text import did_you_mean, show, show_key

Path = tuple[str | int, ...]

MAX_DEPTH = 32
"""Levels of nesting that are read."""


def dotted(path: Path) -> str:
    """Write a path for a reader: printable, its parts cut short."""
    return ".".join(str(part) if isinstance(part, int) else show_key(part) for part in path)


def split(key: str) -> Path:
    """Return the path of a dotted key; what follows ``sweep.`` is one key, dots and all.

    Raises:
        ValueError: A part is empty or there are too many.
    """
    path = tuple(key.split(".", 1 if key.startswith("sweep.") else -1))
    if not all(path):
        raise ValueError("Expected names with a dot between them, such as population.users.")
    if len(path) > MAX_DEPTH:
        raise ValueError(f"Expected at most {MAX_DEPTH} names with a dot between them.")
    return path


def has(data: object, path: Path) -> bool:
    """Whether plain data have a value at a path of names."""
    for part in path:
        if not isinstance(data, Mapping) or part not in data:
            return False
        data = data[part]
    return True


def get(data: object, path: Path) -> object:
    """Return the value at a path of names; None where there is none."""
    for part in path:
        data = data.get(part) if isinstance(data, Mapping) else None
    return data


def put(data: object, path: Path, value: object) -> object:
    """Return data with a value set, making sections on the way; the original stays as it is.

    Raises:
        ValueError: The path leads through something that is no section.
    """
    if not path:
        return value
    if not isinstance(data, Mapping):
        raise ValueError(f"Expected a section to set {dotted(path)} in, found {show(data)}.")
    first, rest = path[0], path[1:]
    if not rest:
        return {**data, first: value}
    return {**data, first: put(data.get(first, {}), rest, value)}


def paths(data: object, path: Path = ()) -> Iterable[Path]:
    """Return the path of every section and of every value below it, in order."""
    if isinstance(data, Mapping):
        for name, value in data.items():
            yield (*path, name)
            yield from paths(value, (*path, name))


def unknown_key(key: str, data: Mapping[str, object]) -> str:
    """Write the rule that a dotted key breaks which the data do not have."""
    path = tuple(key.split("."))
    while path and not isinstance(get(data, path), Mapping):
        path = path[:-1]
    section = get(data, path)
    names = section if isinstance(section, Mapping) else ()
    allowed = [dotted((*path, name)) for name in names]
    others = (dotted(other) for other in paths(data))
    return f"Unknown key {show(key)}. {did_you_mean(key, allowed, others)}"


def field_at(model: type[BaseModel], path: Path) -> FieldInfo | None:
    """Return the field that a path of a model's data leads to, if it names one."""
    if not path:
        return None
    owners = _models_at(model, path[:-1])
    found = [field for owner in owners if (field := owner.model_fields.get(str(path[-1])))]
    return found[0] if found else None


def names_at(model: type[BaseModel], path: Path) -> list[str]:
    """Return the names that are allowed in the section a path leads to."""
    return list(dict.fromkeys(name for at in _models_at(model, path) for name in at.model_fields))


def _models_at(model: type[BaseModel], path: Path) -> list[type[BaseModel]]:
    """Follow a path through fields; indices of lists and keys of mappings stay where they are."""
    here = [model]
    for part in path:
        fields = [field for at in here if (field := at.model_fields.get(str(part)))]
        here = [found for field in fields for found in _models_in(field.annotation)] or here
    return here


def _models_in(annotation: object) -> list[type[BaseModel]]:
    """Return the models that a type mentions: in unions, lists, mappings."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for part in get_args(annotation) for found in _models_in(part)]


class Flaw(NamedTuple):
    """A rule that plain data break at a path."""

    path: Path
    rule: str


@dataclass(frozen=True, slots=True)
class Document:
    """Plain data with their places.

    Attributes:
        file: What errors call the file.
        data: Dictionaries with text keys, tuples and scalars.
        lines: The line of every key and list item.
        overridden: Paths whose value came from the command line.
    """

    file: str
    data: object
    lines: Mapping[Path, int]
    overridden: tuple[Path, ...] = ()

    def line_of(self, path: Path) -> int | None:
        """Return the line of a path, or of the nearest section around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path)

    def error(self, flaws: Iterable[Flaw]) -> BadScenario:
        """Make the error that lists the flaws, each once, in the order of their lines."""
        faults = dict.fromkeys(self._placed(flaw) for flaw in flaws)
        return BadScenario(self.file, sorted(faults, key=lambda fault: fault.line or 0))

    def _placed(self, flaw: Flaw) -> Fault:
        if any(flaw.path[: len(path)] == path for path in self.overridden):
            return Fault(dotted(flaw.path), f"{flaw.rule} (The value was set by --set.)")
        return Fault(dotted(flaw.path), flaw.rule, self.line_of(flaw.path))
