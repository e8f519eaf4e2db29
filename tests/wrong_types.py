"""Plain data with one value of another type: what Python would coerce, a strict reader refuses."""

import copy
import math
from collections.abc import Iterator
from typing import Any, TypeAlias

Path: TypeAlias = tuple[str | int, ...]


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:  # Any: JSON
    """Walk plain data, and yield the path of everything that holds nothing else."""
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(item, (*path, key))
    else:
        yield path, value


def replaced(document: Any, path: Path, value: object) -> Any:  # Any: JSON
    """Return a copy of plain data with another value at a path."""
    changed = copy.deepcopy(document)
    place = changed
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return changed


def wrong_types(value: object) -> list[object]:
    """Return what a lenient reader takes for a number or a flag; nothing for a text."""
    if isinstance(value, bool):
        return [int(value), float(value), str(value).lower(), ""]
    if isinstance(value, int | float):
        return [True, str(value), math.nan, math.inf, [value]]
    return []
