"""A scenario as it was read: plain data, and where each key stands.

Whoever finds a flaw names the path and the rule; the document turns both into an error with the
file, the dotted key and the line.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from noisefloor.errors import BadScenario, Fault
from noisefloor_sim.scenario.keys import Path, dotted


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
