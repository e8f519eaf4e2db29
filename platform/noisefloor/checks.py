"""Checks of parameters and of values, in blocks of constant size.

A parameter is public and may be shown in the error. A value belongs to a user: its error names
the domain and the type, never the value.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from importlib.util import find_spec
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from noisefloor.errors import BadParameter, MissingExtra, OutOfDomain

BLOCK = 1 << 18
"""Elements handled at once: the temporaries of a block stay in the processor's caches. It is part
of the definition of seeded streams: changing it moves coins."""

SMALLEST_EPSILON = 1e-9
LARGEST_EPSILON = 40.0
"""Outside these, 64-bit thresholds no longer tell the law from a coin, or from the bare truth."""

Floats = NDArray[np.float64]
Array = NDArray[Any]

_MODULES = {"scikit-learn": "sklearn"}
"""Libraries whose module has another name."""


def check_epsilon(epsilon: float, name: str = "epsilon", *, parts: int = 1) -> float:
    """Return epsilon as a float, or say which rule it breaks.

    Args:
        epsilon: What was asked for.
        name: Of the parameter, for the error.
        parts: How many draws share it; each has to be within what thresholds can hold.
    """
    number = check_finite(epsilon, name)
    if number <= 0:
        raise BadParameter(name, epsilon, "> 0")
    least, most = parts * SMALLEST_EPSILON, parts * LARGEST_EPSILON
    if not least <= number <= most:
        rule = f"in [{least:g}, {most:g}] (what 64-bit thresholds can hold)"
        raise BadParameter(name, epsilon, rule)
    return number


def check_finite(value: float, name: str) -> float:
    """Return a real parameter as a float; NaN, infinity and non-numbers are refused."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise BadParameter(name, value, "to be a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise BadParameter(name, value, "to be finite")
    return number


def check_count(value: int, name: str, least: int = 1, most: int = 1 << 32) -> int:
    """Return an integer parameter within its bounds."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise BadParameter(name, value, "to be an integer")
    if not least <= value <= most:
        raise BadParameter(name, value, f"in [{least}, {most}]")
    return int(value)


def check_probability(value: float, name: str) -> float:
    """Return a parameter that has to lie strictly between 0 and 1."""
    number = check_finite(value, name)
    if not 0 < number < 1:
        raise BadParameter(name, value, "strictly between 0 and 1")
    return number


def check_extra(what: str, extra: str, *libraries: str) -> None:
    """Refuse something whose libraries are not installed, before it charges or writes anything.

    Args:
        what: That needs them, as the error names it.
        extra: Of noisefloor, which brings them.
        libraries: By the names that pip knows.
    """
    missing = missing_libraries(libraries)
    if missing:
        raise MissingExtra(what, missing, extra)


def missing_libraries(libraries: Iterable[str]) -> list[str]:
    """Return those of some libraries, by the names that pip knows, that cannot be imported."""
    return [one for one in libraries if find_spec(_MODULES.get(one, one)) is None]


def check_types(kind: type, given: Mapping[str, Any]) -> None:  # Any: JSON
    """Refuse plain data whose types are not those that a dataclass declares.

    Python would take true for 1, and a text for what is only compared or handed on. A whole
    number passes for a real one, as it does in JSON; NaN and infinity do not.
    """
    for name, hint in get_type_hints(kind).items():
        options = get_args(hint) if isinstance(hint, UnionType) else (hint,)
        if name in given and not any(_is_of(given[name], one) for one in options):
            shown = getattr(hint, "__name__", str(hint)).removeprefix("typing.")
            raise BadParameter(name, f"<{type(given[name]).__name__}>", f"of type {shown}")


def _is_of(value: object, hint: Any) -> bool:  # Any: a type, or a form of typing
    """Say whether a value is of a plain type; other types are checked where they are made."""
    if hint is float:
        return type(value) in (int, float) and math.isfinite(value)  # type: ignore[arg-type]
    if hint in (bool, int, str, type(None)):
        return type(value) is hint
    if get_origin(hint) is Literal:
        return isinstance(value, str) and value in get_args(hint)
    return True


def blocks(count: int, width: int = 1) -> Iterator[slice]:
    """Cut ``count`` rows of ``width`` elements into slices of constant size.

    Every slice but the last has the same number of rows, whatever ``count`` is: that is what
    keeps everybody's coins in place when users are added.
    """
    step = max(1, BLOCK // max(1, width))
    for start in range(0, count, step):
        yield slice(start, min(start + step, count))


def check_rows(values: object, domain: str, width: int | None = None) -> Array:
    """Return the values as an array of one row per user (1-d, or 2-d when ``width`` is given)."""
    array = np.asarray(values)
    if width is None and array.ndim != 1:
        raise OutOfDomain(f"Expected one value a user, {domain}; got {array.ndim} dimensions.")
    if width is not None and (array.ndim != 2 or array.shape[1] != width):
        raise OutOfDomain(f"Expected rows of {width}, {domain}; got shape {array.shape}.")
    return array


def check_integers(values: object, low: int, high: int, *, width: int | None = None) -> Array:
    """Return integers that all lie in [low, high]; refuse, never clip."""
    domain = f"integers in [{low}, {high}]"
    array = check_rows(values, domain, width)
    if array.size and array.dtype.kind not in "iu":
        raise OutOfDomain(f"Expected {domain}; got dtype {array.dtype}.")
    if array.size and (int(array.min()) < low or int(array.max()) > high):
        raise OutOfDomain(f"Expected {domain}; a value lies outside.")
    return array if array.size else array.astype(np.int64)


def check_reals(values: object, low: float, high: float, *, width: int | None = None) -> Array:
    """Return real numbers that all lie in [low, high]; NaN is refused as well."""
    domain = f"reals in [{low:g}, {high:g}]"
    array = check_rows(values, domain, width)
    if array.size and array.dtype.kind not in "iuf":
        raise OutOfDomain(f"Expected {domain}; got dtype {array.dtype}.")
    # min and max hand NaN on, and a NaN fails both comparisons.
    if array.size and not (array.min().item() >= low and array.max().item() <= high):
        raise OutOfDomain(f"Expected {domain}; a value lies outside or is not a number.")
    return array if array.size else array.astype(np.float64)


def check_bits(values: object, *, width: int | None = None) -> NDArray[np.bool_]:
    """Return bits as booleans without a copy where they already are; 0 and 1 are accepted."""
    array = check_rows(values, "bits", width)
    if array.dtype == np.bool_:
        return array
    array = check_integers(array, 0, 1, width=width)
    if array.dtype.itemsize == 1:
        return array.view(np.bool_)
    return array.astype(np.bool_)
