"""What a mutant is: one small change of one file, and what the run has to say of it."""

import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOTS = ("platform", "simulator", "services")
"""The source roots, below the folder of the project."""

PROJECT = Path(__file__).resolve().parents[2]
"""The folder of the project."""

MISFIT, UNACCOUNTED, BROKEN, GATE = "misfit", "unaccounted", "broken", "gate"
"""How a run may fail: by a verdict, or by a gate where no verdict speaks of what is broken."""

REFUSED = "refused"
"""How a run fails whose frames a service does not take."""


@dataclass(frozen=True, slots=True)
class SmallScenario:
    """A scenario that runs in seconds.

    Attributes:
        name: Of the file.
        text: The YAML text.
    """

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of the code that the run has to find.

    Attributes:
        name: Lower-case words with hyphens, the flow first.
        broken: What is broken, in one sentence.
        file: The changed file, below the folder of the project.
        old: The text that is replaced; it occurs once in the file.
        new: What replaces it.
        scenario: The scenario that has to fail.
        flow: The flow that the verdict has to name; for a gate, its text.
        verdicts: Verdicts that the run may end with, each of which names the flow.
        settings: Set in the scenario, ``key=value``.
        on_device: Whether a device does it: then it is run against the services, too.
        is_refused: Whether services refuse what such a device sends, before anything is counted.
        in_suite: Whether the test suite runs it.
    """

    name: str
    broken: str
    file: str
    old: str
    new: str
    scenario: SmallScenario
    flow: str
    verdicts: tuple[str, ...] = (MISFIT,)
    settings: tuple[str, ...] = ()
    on_device: bool = False
    is_refused: bool = False
    in_suite: bool = False

    @property
    def case(self) -> tuple[str, tuple[str, ...]]:
        """What the honest twin runs: the scenario with its settings."""
        return self.scenario.name, self.settings

    def occurrences(self, project: Path = PROJECT) -> int:
        """Return how often the replaced text occurs in the file."""
        return (project / self.file).read_text(encoding="utf-8").count(self.old)


def scenario(name: str, text: str) -> SmallScenario:
    """Make a scenario from an indented text without name, question and seed."""
    head = f"name: {name}\nquestion: Is a small change of the code found?\nseed: 7\n"
    return SmallScenario(name, head + textwrap.dedent(text).lstrip("\n"))


def drawn_again(name: str, stream: str, indent: int = 8) -> str:
    """Return code that opens a stream although it was opened before in the run.

    ``SeededSource`` refuses that, so that noise is not used twice by mistake: a mutant has to go
    around it, as a device would that keeps its noise.
    """
    lines = (
        "from noisefloor.randomness import new_run",
        f"{name} = {stream}",
        "with new_run():",
        f'    {name}.stage("opened again")',
    )
    return ("\n" + " " * indent).join(lines)
