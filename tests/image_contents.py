"""What our image has in it: the packages of one extra and what they need, and nothing else."""

import re
import tomllib
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]


def pins() -> dict[str, str]:
    """Return the versions that constraints.txt fixes, by normalised name."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = (line.split("==", 1) for line in lines if line and not line.startswith("#"))
    return {normal_name(name): version for name, version in pairs}


def requirements(extra: str) -> dict[str, Distribution]:
    """Return all that the project with one extra needs, as it is installed here."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    waiting = [*project["dependencies"], *project["optional-dependencies"][extra]]
    found: dict[str, Distribution] = {}
    done: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        requirement = Requirement(waiting.pop())
        name, extras = normal_name(requirement.name), frozenset(requirement.extras)
        if (name, extras) in done:
            continue
        done.add((name, extras))
        found[name] = distribution(name)
        needs = map(Requirement, found[name].requires or ())
        waiting += [str(one).split(";")[0] for one in needs if _is_needed(one, extras)]
    return found


def link_packages(folder: Path, extra: str) -> Path:
    """Fill a folder with links to the packages of an extra: a path that has nothing else."""
    for found in requirements(extra).values():
        for name in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
            link = folder / name
            if not link.exists():
                link.symlink_to(Path(str(found.locate_file(name))))
    return folder


def normal_name(name: str) -> str:
    """Return the one form of a package's name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _is_needed(requirement: Requirement, extras: frozenset[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": one}) for one in ("", *extras))
