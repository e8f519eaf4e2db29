"""What our Dockerfile has to keep, read line by line; every breach is reported in a line."""

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from compose_rules import is_exact

_WORDS = frozenset(
    "ARG FROM ENV WORKDIR COPY RUN USER EXPOSE HEALTHCHECK ENTRYPOINT LABEL".split()
)
_COMPILERS = re.compile(r"\b(gcc|g\+\+|clang|build-essential|make|apt-get|apk)\b")


@dataclass(frozen=True, slots=True)
class Line:
    """One instruction, with its continuation lines."""

    word: str
    text: str

    @property
    def words(self) -> list[str]:
        """Its arguments but for options."""
        return [one for one in shlex.split(self.text) if not one.startswith("--")]

    def option(self, name: str) -> str | None:
        """Return the value of an option."""
        found = re.search(rf"--{name}=(\S+)", self.text)
        return found[1] if found else None


@dataclass(frozen=True, slots=True)
class Stage:
    """The instructions from one FROM to the next."""

    image: str
    name: str
    lines: tuple[Line, ...]

    def last(self, word: str) -> str:
        """Return the text of the last instruction of a kind, or nothing."""
        found = [line.text for line in self.lines if line.word == word]
        return found[-1] if found else ""

    @property
    def variables(self) -> dict[str, str]:
        """What ENV sets."""
        pairs = (
            one for line in self.lines if line.word == "ENV" for one in shlex.split(line.text)
        )
        return dict(one.split("=", 1) for one in pairs)


def read_lines(text: str) -> list[Line]:
    """Read instructions: comments are left out, lines that go on are put together."""
    kept = (line for line in text.splitlines() if line.strip() and not line.startswith("#"))
    whole = re.sub(r"\\\n\s*", "", "\n".join(kept))
    parts = (line.split(None, 1) for line in whole.splitlines())
    return [Line(part[0], part[1] if len(part) > 1 else "") for part in parts]


def read_stages(text: str) -> list[Stage]:
    """Read the stages; what ARG says before the first one is put in."""
    lines = read_lines(text)
    starts = [at for at, line in enumerate(lines) if line.word == "FROM"]
    arguments = dict(one.text.split("=", 1) for one in lines[: starts[0]] if one.word == "ARG")
    stages = []
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        image, *rest = lines[start].words
        image = re.sub(r"\$\{(\w+)\}", lambda found: arguments.get(found[1], ""), image)
        name = rest[1] if len(rest) == 2 and rest[0] == "AS" else ""
        stages.append(Stage(image, name, tuple(lines[start + 1 : end])))
    return stages


def exec_form(text: str) -> list[str]:
    """Return a command that is given as a JSON list; nothing if it is not."""
    try:
        words = json.loads(text[text.index("[") :])
    except ValueError:
        return []
    return words if all(isinstance(word, str) for word in words) else []


def is_ignored(path: str, patterns: str) -> bool:
    """Say whether the builder gets a path: the last pattern that fits it or a parent decides."""
    listed = [line for line in patterns.splitlines() if line and not line.startswith("#")]
    parts = path.split("/")
    wholes = ["/".join(parts[: length + 1]) for length in range(len(parts))]
    ignored = False
    for line in listed:
        pattern = _pattern(line.removeprefix("!"))
        if any(pattern.fullmatch(whole) for whole in wholes):
            ignored = not line.startswith("!")
    return ignored


def _pattern(text: str) -> re.Pattern[str]:
    pieces = {"**/": "(.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]", ".": r"\."}
    return re.compile(re.sub(r"\*\*/|\*\*|\*|\?|\.", lambda found: pieces[found[0]], text))


def faults(text: str, ignore: str, root: Path) -> list[str]:
    """Return every breach.

    Args:
        text: Of the Dockerfile.
        ignore: Of .dockerignore.
        root: The folder that it is built from.
    """
    stages = read_stages(text)
    found = [f"{line.word}: not used here" for line in read_lines(text) if line.word not in _WORDS]
    if len(stages) < 2:
        found.append("FROM: one stage keeps what only building needs")
    for at, stage in enumerate(stages):
        earlier = [one.name for one in stages[:at]]
        found_here = [*_base(stage), *_copies(stage, earlier, ignore, root), *_installs(stage)]
        found += [f"{stage.name or at}: {one}" for one in found_here]
    return [*found, *_end(stages[-1])]


def _base(stage: Stage) -> Iterator[str]:
    if not stage.name:
        yield "FROM: without a name"
    if not is_exact(stage.image):
        yield "FROM: not an exact version"


def _copies(stage: Stage, earlier: Sequence[str], ignore: str, root: Path) -> Iterator[str]:
    for line in (one for one in stage.lines if one.word == "COPY"):
        origin = line.option("from")
        if origin is not None:
            if origin not in earlier:
                yield f"COPY: {origin} is no earlier stage"
            continue
        for source in line.words[:-1]:
            if not (root / source).exists():
                yield f"COPY: {source} is not there"
            elif is_ignored(source, ignore):
                yield f"COPY: {source} is ignored"


def _installs(stage: Stage) -> Iterator[str]:
    for line in (one for one in stage.lines if one.word == "RUN"):
        if _COMPILERS.search(line.text):
            yield "RUN: a compiler or a package of the system"
        for command in _pip_commands(line.text):
            if not _is_good_install(command):
                yield "RUN: pip has to take wheels by the hashes of a lock, or our own; no cache"
    if stage.name == "build" and "-r locks/services.txt" not in _commands(stage):
        yield "RUN: pip does not install what the services need"


def _commands(stage: Stage) -> str:
    return "\n".join(line.text for line in stage.lines if line.word == "RUN")


def _pip_commands(text: str) -> list[str]:
    return [one for one in text.split("&&") if re.search(r"(?<!-)\bpip\b", one)]


def _is_good_install(command: str) -> bool:
    """Say whether every file is checked by its hash or was made here from the sources."""
    by_hash = ("--only-binary :all:", "--require-hashes", "-r locks/")
    our_own = ("--no-index", "--no-deps")
    is_fixed = any(all(one in command for one in words) for words in (by_hash, our_own))
    files = set(re.findall(r"-r (\S+)", command))
    allowed = {"locks/services.txt", "locks/build.txt"}
    return is_fixed and "--no-cache-dir" in command and files <= allowed


def _end(stage: Stage) -> Iterator[str]:
    user, variables = stage.last("USER"), stage.variables
    if not re.fullmatch(r"[1-9]\d*:[1-9]\d*", user):
        yield "USER: the last is no fixed number other than 0"
    if variables.get("PYTHONDONTWRITEBYTECODE") != "1":
        yield "ENV: PYTHONDONTWRITEBYTECODE is not 1"
    if stage.last("EXPOSE") != variables.get("NOISEFLOOR_PORT"):
        yield "EXPOSE: not NOISEFLOOR_PORT"
    for word in ("HEALTHCHECK", "ENTRYPOINT"):
        command = exec_form(stage.last(word))
        if not command or command[0] != "python":
            yield f"{word}: no list of words that begins with python"
