"""YAML events into plain data: what a scenario may hold, and the line of every key.

What comes out is dictionaries with text keys, tuples, texts, numbers, booleans and None, and
nothing else. Refused: more than 32 levels, anchors and aliases altogether (so nothing can
multiply), explicit tags, directives, merge keys, keys that are lists or mappings, a key given
twice, a second document. Unquoted words are read by ``scalars``.

The events are those of PyYAML's Python parser, which is the same everywhere; none of its
constructors ever runs.
"""

from collections.abc import Iterator
from typing import Any

import yaml

from noisefloor_sim.scenario.keys import MAX_DEPTH, Path
from noisefloor_sim.scenario.scalars import Scalar, resolve
from noisefloor_sim.scenario.showing import show, show_key

_Event = Any  # the stubs give events no attributes


class Refused(Exception):
    """A rule of this file is broken at the place where the builder stands."""


class Builder:
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
            raise Refused("Directives (%) are not read; leave the line out.")
        data = self._value(self._next())
        self._next()  # the document ends
        if not isinstance(self._next(), yaml.StreamEndEvent):
            raise Refused("Expected one document, found a second one.")
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
            raise Refused(f"Expected at most {MAX_DEPTH} levels of nesting, found more.")
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
                raise Refused(f"This key was given before, on line {self.lines[self.path]}.")
            self.lines[self.path] = self.line
            items[name] = self._value(self._next())
            self.path = base
        return items


def _check_bare(event: _Event) -> None:
    """Refuse what makes a value more than it says."""
    if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
        raise Refused("Anchors and aliases (& and *) are not read; write the value out.")
    if event.tag is not None:
        raise Refused(f"Tags (!) are not read, found {show(event.tag)}; leave it out.")


def _key(event: _Event) -> str:
    """Return a key as the text that it is: a key is never a number or a boolean."""
    _check_bare(event)
    if not isinstance(event, yaml.ScalarEvent):
        raise Refused("Expected a name as key, found a list or a mapping.")
    if event.value == "<<" and event.style is None:
        raise Refused("Merge keys (<<) are not read; write the keys out.")
    return _text(event)


def _scalar(event: _Event) -> Scalar:
    text = _text(event)
    if event.style is not None:  # in quotes or as a block: a text, whatever it looks like
        return text
    try:
        return resolve(text)
    except ValueError as error:
        raise Refused(f"{error}, got {show_key(text)}.") from None


def _text(event: _Event) -> str:
    """Return a scalar's text; escapes can write half a character, which nothing can encode."""
    text = str(event.value)
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise Refused(f"Expected text, found half a character in {show(text)}.")
    return text
