"""The text of a scenario, from a file, bytes or a string, into plain data with line numbers.

Refused here: more than 256 KiB, anything but UTF-8, text that is no YAML. What is refused inside
the YAML is said in ``building``. Every refusal is a ``BadScenario`` with file, key, rule and line.

YAML events into plain data: what a scenario may hold, and the line of every key.

What comes out is dictionaries with text keys, tuples, texts, numbers, booleans and None, and
nothing else. Refused: more than 32 levels, anchors and aliases altogether (so nothing can
multiply), explicit tags, directives, merge keys, keys that are lists or mappings, a key given
twice, a second document. Unquoted words are read by ``scalars``.

The events are those of PyYAML's Python parser, which is the same everywhere; none of its
constructors ever runs.
"""

import os
from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import Any

import yaml

from noisefloor.errors import BadScenario, Fault
from noisefloor_sim.scenario.document import MAX_DEPTH, Document, Path, dotted
from noisefloor_sim.scenario.error_text import show, show_key, show_name
from noisefloor_sim.scenario.scalars import Scalar, resolve

_Event = Any  # the stubs give events no attributes


class RefusedYaml(Exception):
    """A rule of this file is broken at the place where the builder stands."""


class YamlBuilder:
    """Makes plain data of a text.

    Attributes:
        path: Where the builder stands; after an error, where it happened.
        line: The line it stands on, counted from one.
        lines: The line of every key and list item so far.
    """

    def __init__(self, text: str) -> None:
        self.path: Path = ()
        self.line = 1
        self.lines: dict[Path, int] = {}
        self._events: Iterator[_Event] = iter(yaml.parse(text, Loader=yaml.SafeLoader))

    def document(self) -> object:
        """Return what the one document holds; None if there is none.

        Raises:
            Refused: A rule of this file is broken.
            yaml.YAMLError: The text is no YAML.
            ValueError: Likewise; PyYAML does not check every number.
        """
        self._next()  # the stream starts
        start = self._next()
        if isinstance(start, yaml.StreamEndEvent):
            return None
        if start.version or start.tags:
            raise RefusedYaml("Directives (%) are not read; leave the line out.")
        data = self._value(self._next())
        self._next()  # the document ends
        if not isinstance(self._next(), yaml.StreamEndEvent):
            raise RefusedYaml("Expected one document, found a second one.")
        return data

    def _next(self) -> _Event:
        event = next(self._events)
        self.line = event.start_mark.line + 1
        return event

    def _value(self, event: _Event) -> object:
        _check_bare(event)
        if isinstance(event, yaml.ScalarEvent):
            return _scalar(event)
        if len(self.path) >= MAX_DEPTH:
            raise RefusedYaml(f"Expected at most {MAX_DEPTH} levels of nesting, found more.")
        return self._mapping() if isinstance(event, yaml.MappingStartEvent) else self._list()

    def _list(self) -> tuple[object, ...]:
        items: list[object] = []
        base = self.path
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            self.path = (*base, len(items))
            self.lines[self.path] = self.line
            items.append(self._value(event))
            self.path = base
        return tuple(items)

    def _mapping(self) -> dict[str, object]:
        items: dict[str, object] = {}
        base = self.path
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            name = _key(event)
            self.path = (*base, name)
            if name in items:
                raise RefusedYaml(f"This key was given before, on line {self.lines[self.path]}.")
            self.lines[self.path] = self.line
            items[name] = self._value(self._next())
            self.path = base
        return items


def _check_bare(event: _Event) -> None:
    """Refuse what makes a value more than it says."""
    if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
        raise RefusedYaml("Anchors and aliases (& and *) are not read; write the value out.")
    if event.tag is not None:
        raise RefusedYaml(f"Tags (!) are not read, found {show(event.tag)}; leave it out.")


def _key(event: _Event) -> str:
    """Return a key as the text that it is: a key is never a number or a boolean."""
    _check_bare(event)
    if not isinstance(event, yaml.ScalarEvent):
        raise RefusedYaml("Expected a name as key, found a list or a mapping.")
    if event.value == "<<" and event.style is None:
        raise RefusedYaml("Merge keys (<<) are not read; write the keys out.")
    return _text(event)


def _scalar(event: _Event) -> Scalar:
    text = _text(event)
    if event.style is not None:  # in quotes or as a block: a text, whatever it looks like
        return text
    try:
        return resolve(text)
    except ValueError as error:
        raise RefusedYaml(f"{error}, got {show_key(text)}.") from None


def _text(event: _Event) -> str:
    """Return a scalar's text; escapes can write half a character, which nothing can encode."""
    text = str(event.value)
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise RefusedYaml(f"Expected text, found half a character in {show(text)}.")
    return text


MAX_BYTES = 256 * 1024
_TOO_LONG = f"Expected at most {MAX_BYTES} bytes (256 KiB), found more."


def read_file(path: str | os.PathLike[str]) -> Document:
    """Read a scenario file into plain data.

    Raises:
        BadScenario: It cannot be opened or read; the error says why and, if known, on which line.
    """
    file = show_name(os.fspath(path))
    try:
        with FilePath(path).open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise BadScenario(file, [Fault("", "Expected a file, found none.")]) from None
    except IsADirectoryError:
        raise BadScenario(file, [Fault("", "Expected a file, found a directory.")]) from None
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        reason = getattr(error, "strerror", None) or "No file can have this name"
        rule = f"Expected a file that can be read. {reason}."
        raise BadScenario(file, [Fault("", rule)]) from None
    return read_bytes(raw, file)


def read_bytes(raw: bytes, file: str) -> Document:
    """Read the bytes of a scenario; ``file`` is what errors call it."""
    if len(raw) > MAX_BYTES:
        raise BadScenario(file, [Fault("", _TOO_LONG)])
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        rule = f"Expected UTF-8, found another encoding at byte {error.start}."
        raise BadScenario(file, [Fault("", rule, line)]) from None
    return read_text(text, file)


def read_text(text: str, file: str) -> Document:
    """Read the text of a scenario; ``file`` is what errors call it."""
    if len(text) > MAX_BYTES:
        raise BadScenario(file, [Fault("", _TOO_LONG)])
    builder = YamlBuilder(text)
    try:
        data = builder.document()
    except (RefusedYaml, yaml.YAMLError, ValueError) as error:
        line, rule = _explained(error, text)
        fault = Fault(dotted(builder.path), rule, line or builder.line)
        raise BadScenario(file, [fault]) from None
    return Document(file, data, builder.lines)


def _explained(error: Exception, text: str) -> tuple[int | None, str]:
    """Return the line, if the error knows it, and the rule that was broken."""
    match error:
        case RefusedYaml():
            return None, str(error)
        case yaml.reader.ReaderError():
            line = text.count("\n", 0, error.position) + 1
            return line, f"Expected text, found the character U+{error.character:04X}."
        case yaml.MarkedYAMLError():
            mark = error.problem_mark or error.context_mark
            problem = show_name((error.problem or error.context or "it cannot be read")[:200])
            return mark.line + 1 if mark else None, f"Expected YAML; {problem}."
    # PyYAML converts the numbers of escapes and of directives without a check.
    return None, "Expected YAML; a number in an escape or a directive is out of range."
