"""Noise in a service comes from the operating system. A seed, by whatever way, is a refusal.

A simulation repeats itself; a service that repeats itself gives its noise away. So a service asks
here before it starts, and whenever it draws: for a variable that looks like a seed or a debugging
flag, for settings that carry one, for any source but the one secure class itself, and for a
secure class that was changed.
"""

import os
import re
import sys
from collections.abc import Mapping
from types import BuiltinFunctionType, FunctionType

from noisefloor import randomness
from noisefloor.errors import NoisefloorError
from noisefloor.randomness import SecureSource, Source, secure, source

_SUSPECT = re.compile(r"(?:^|_)(?:seed|seeded|debug|random_state|deterministic)(?:_|$)", re.I)
_METHODS = {
    (owner, name): member
    for owner in (Source, SecureSource)
    for name, member in vars(owner).items()
    if isinstance(member, FunctionType)
}
_NAMES = {owner: frozenset(vars(owner)) for owner in (Source, SecureSource)}
_CODE = {place: member.__code__ for place, member in _METHODS.items()}
_CLASS = SecureSource
_FILES = {Source: source.__file__, SecureSource: secure.__file__}


class InsecureStart(NoisefloorError):
    """The service would draw randomness that somebody could predict."""


def check_environment(environment: Mapping[str, str]) -> None:
    """Refuse variables of this project that name a seed or a debugging flag, whatever they say."""
    for name in sorted(environment):
        if name.upper().startswith("NOISEFLOOR_") and _SUSPECT.search(name):
            raise InsecureStart(f"{name} is set. A service takes no seed and no debugging flag.")
    if sys.flags.dev_mode:
        raise InsecureStart("Python runs in development mode (-X dev): a service does not.")


def check_settings(settings: object) -> None:
    """Refuse settings that carry a seed, a debugging flag, or a source of randomness."""
    names = {*getattr(settings, "__slots__", ()), *getattr(settings, "__dict__", ())}
    names |= set(getattr(type(settings), "__dataclass_fields__", ()))
    for name in sorted(names):
        if _SUSPECT.search(name) and getattr(settings, name, None) is not None:
            raise InsecureStart(f"The setting {name} is given. A service takes none.")
        if isinstance(getattr(settings, name, None), Source):
            check_source(getattr(settings, name))


def check_source(given: Source) -> Source:
    """Return the source if it is the secure one as it was written; refuse any other.

    A subclass is refused as well: it may answer whatever it likes.
    """
    if type(given) is not _CLASS or randomness.SecureSource is not _CLASS:
        raise InsecureStart(f"A service draws from SecureSource, not from {type(given).__name__}.")
    if any(frozenset(vars(owner)) != names for owner, names in _NAMES.items()):
        raise InsecureStart("SecureSource was given methods that it was not written with.")
    for (owner, name), member in _METHODS.items():
        current = vars(owner).get(name)
        if current is not member or member.__code__ is not _CODE[owner, name]:
            raise InsecureStart(f"{owner.__name__}.{name} was replaced after it was loaded.")
        if member.__code__.co_filename != _FILES[owner]:
            raise InsecureStart(f"{owner.__name__}.{name} was replaced before it was loaded.")
    if vars(secure)["os"] is not os or not isinstance(os.urandom, BuiltinFunctionType):
        raise InsecureStart("The operating system's entropy was replaced.")
    return given


def secure_source(
    environment: Mapping[str, str], settings: object, given: Source | None = None
) -> Source:
    """Return the source that a service draws from, once everything was looked at.

    Args:
        environment: As the process got it.
        settings: What was read from it.
        given: Nothing, or a SecureSource.
    """
    check_environment(environment)
    check_settings(settings)
    made = check_source(SecureSource() if given is None else given)
    if made.words(4).tobytes() == made.words(4).tobytes():  # equal by chance once in 2**256
        raise InsecureStart("The operating system gave the same random bytes twice.")
    return made
