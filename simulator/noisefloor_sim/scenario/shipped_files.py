"""The scenarios that come with the package, found by their name in any folder.

They are plain files in ``shipped/`` beside this module. The comments above the first key of each
say what is asked, what is expected and how long the run takes.
"""

import difflib
import os
import re
from collections.abc import Mapping
from pathlib import Path

from noisefloor.errors import BadScenario, Fault
from noisefloor_sim.scenario.error_text import show_name

SHIPPED_FOLDER = Path(__file__).parent / "shipped"

_TAKES = re.compile(r"^# Takes: (?P<number>[1-9][0-9]*) (?P<unit>s|min)$", re.MULTILINE)
_SECONDS = {"s": 1, "min": 60}
_MOST_COMPARED = 100  # characters: names are shorter, and comparing takes time


def shipped_scenarios() -> Mapping[str, Path]:
    """Return the files of the shipped scenarios by name, in the order of the names."""
    return {path.stem: path for path in sorted(SHIPPED_FOLDER.glob("*.yaml"))}


def find_scenario(given: str | os.PathLike[str]) -> Path:
    """Return the file that is meant: one of that name, or else the shipped scenario.

    Args:
        given: A path, or the name of a shipped scenario without folder and ending.

    Raises:
        BadScenario: It is a name, and neither a file here nor a shipped scenario has it.
    """
    path = Path(given)
    is_name = str(path) == path.stem
    return path if path.is_file() or not is_name else shipped_scenario(path.name)


def shipped_scenario(name: str) -> Path:
    """Return the file of a shipped scenario.

    Raises:
        BadScenario: There is none of that name; it names those that are near.
    """
    shipped = shipped_scenarios()
    if name in shipped:
        return shipped[name]
    near = difflib.get_close_matches(name[:_MOST_COMPARED], shipped)
    near = [own for own in (f"{name}.yaml",) if Path(own).is_file()] + near
    guess = f" Did you mean {' or '.join(near)}?" if near else ""
    rule = f"No file here and no shipped scenario has this name.{guess}"
    listing = "See them by `noisefloor scenarios`."
    raise BadScenario(show_name(name), [Fault("", f"{rule} {listing}")])


def takes_s(path: Path) -> int:
    """Return the processor time that a shipped scenario says it takes, in seconds.

    It is in a comment such as ``# Takes: 9 s`` and no key of the scenario: it belongs to the
    machine that it was measured on, and must not change the scenario's hash.

    Raises:
        BadScenario: There is no such comment.
    """
    found = _TAKES.search(path.read_text(encoding="utf-8"))
    if found is None:
        rule = "Expected a comment such as `# Takes: 9 s` or `# Takes: 2 min`, found none."
        raise BadScenario(show_name(path.name), [Fault("", rule)])
    return int(found["number"]) * _SECONDS[found["unit"]]
