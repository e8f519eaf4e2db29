"""Plain scalars: which unquoted words are numbers, booleans or nothing, and how to write them.

The rules are those of YAML 1.2 without its rarities, so that nothing turns into what its writer
did not mean: only ``true`` and ``false`` are booleans (``no``, ``on`` and ``Yes`` are texts), only
decimal numbers are numbers (``1e-3`` is one; ``1:30``, ``0x10``, ``1_000`` and dates are texts).
What two readers would read differently, such as ``012``, is refused, and so are NaN and infinity.
"""

import math
import re

Scalar = str | int | float | bool | None

LONGEST_NUMBER = 64
"""Characters; longer ones are refused before anything tries to convert them."""

_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INTEGER = re.compile(r"[-+]?[0-9]+")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]")
_NOT_FINITE = re.compile(r"[-+]?\.inf|\.nan", re.IGNORECASE)
_PLAIN = re.compile(r"[a-z][a-z0-9_.-]*")
_WORDS: dict[str, bool | None] = {"": None, "~": None, "null": None, "true": True, "false": False}
# Other readers take these for booleans or nothing; we write them in quotes.
_RESERVED = {"y", "n", "yes", "no", "on", "off", *_WORDS}


def resolve(text: str) -> Scalar:
    """Return what an unquoted word means.

    Raises:
        ValueError: It looks like a number but is refused; the text is the rule it breaks.
    """
    if text in _WORDS:
        return _WORDS[text]
    if _NOT_FINITE.fullmatch(text):
        raise ValueError("Expected a finite number")
    if not _NUMBER.fullmatch(text):
        return text
    if len(text) > LONGEST_NUMBER:
        raise ValueError(f"Expected a number of at most {LONGEST_NUMBER} characters")
    if _LEADING_ZERO.match(text):
        raise ValueError("Expected a number without leading zeros, or a text in quotes")
    if _INTEGER.fullmatch(text):
        return int(text)
    number = float(text)
    if math.isinf(number):
        raise ValueError("Expected a number that 64-bit floats can hold")
    return number or 0.0  # there is one zero


def scalar_text(value: Scalar) -> str:
    """Write a scalar so that ``resolve``, or the quotes, give it back."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if _PLAIN.fullmatch(value) and value not in _RESERVED:
        return value
    if value.isprintable() and '"' not in value and "\\" not in value:
        return f'"{value}"'
    return '"' + "".join(_escaped(letter) for letter in value) + '"'


def _escaped(letter: str) -> str:
    if letter in '"\\':
        return "\\" + letter
    if letter == "\n":
        return "\\n"
    if letter.isprintable():
        return letter
    code = ord(letter)
    return f"\\x{code:02x}" if code < 0x100 else f"\\U{code:08x}"
