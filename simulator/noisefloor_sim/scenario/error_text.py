"""Words for error messages: values made printable and short, the nearest name, lists of names."""

import difflib
from collections.abc import Iterable, Mapping

LONGEST_SHOWN = 40
"""Characters of a value that an error shows."""

_MOST_NEAR = 5
_LONGEST_COMPARED = 100  # names are shorter, and comparing takes time


def show(value: object) -> str:
    """Write a value of a scenario so that it is printable, short and on one line."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return f"a mapping of {count(len(value), 'key')}" if value else "an empty mapping"
    if isinstance(value, list | tuple):
        return f"a list of {count(len(value), 'value')}" if value else "an empty list"
    if isinstance(value, str):  # cut first: a long text is not escaped as a whole
        return _cut(repr(value[: LONGEST_SHOWN + 1]))
    return _cut(repr(value))


def show_name(name: str) -> str:
    """Write a key or a file name: as it is if it can be printed, else escaped."""
    return name if name and name.isprintable() else repr(name)


def show_key(name: str) -> str:
    """Write one part of a key's path, short as well."""
    return _cut(show_name(name[: LONGEST_SHOWN + 1]))


def count(number: int, noun: str) -> str:
    """Write a number with its noun: 1 key, 2 keys."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def one_of(names: Iterable[str]) -> str:
    """Write a choice of names: a, b or c."""
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last


def did_you_mean(name: str, allowed: Iterable[str], others: Iterable[str] = ()) -> str:
    """Name the nearest name and list the allowed ones, as sentences to end an error with.

    Args:
        name: What was written.
        allowed: What could have stood in its place.
        others: What could have been meant besides, too many to list.
    """
    names = list(allowed)
    near = _nearest(name[:_LONGEST_COMPARED], [*names, *others])
    guess = f"Did you mean '{near}'? " if near else ""
    return f"{guess}Allowed: {', '.join(names)}." if names else "None is allowed here."


def near_names(name: str, known: Iterable[str]) -> list[str]:
    """Return the few names that are most like a name, the most alike first."""
    names = list(dict.fromkeys(known))
    by_end = {it.rpartition(".")[2]: it for it in reversed(names)} | {it: it for it in names}
    near = difflib.get_close_matches(name[:_LONGEST_COMPARED], by_end, n=_MOST_NEAR)
    return list(dict.fromkeys(by_end[it] for it in near))


def _nearest(name: str, known: list[str]) -> str | None:
    """Find the name that was meant, also by its last part (epsilon) or its beginning (tail)."""
    by_end = {it.rpartition(".")[2]: it for it in reversed(known)} | {it: it for it in known}
    near = difflib.get_close_matches(name, by_end, n=1)
    near = near or [it for it in by_end if len(name) > 2 and it.startswith(name)]
    return by_end[near[0]] if near else None


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 3] + "..."
