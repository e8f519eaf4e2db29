"""Names of people: full name, surname with initial, initials, ``*``.

The levels are our reading: the paper's figure of them cannot be read. A name of one word has no
surname with initial; a script without capitals has no initials.
"""

import re

from noisefloor.publication.text.generalisation.hierarchy import Step
from noisefloor.publication.text.generalisation.spelling import spelling_key

PERSON_LEVELS = ("full name", "surname with initial", "initials")

_FULL, _SURNAME, _INITIALS = range(len(PERSON_LEVELS))

_TITLES = frozenset(
    "mr mrs ms miss mister madam dr doctor prof professor sir dame lord lady rev reverend capt "
    "captain col colonel gen general sgt sergeant lt lieutenant president senator king queen "
    "prince princess saint st".split()
)
_SUFFIXES = frozenset("jr sr junior senior ii iii iv phd md esq".split())
_PARTICLES = frozenset("van von de der den del della di da dos du bin ibn el ten".split())
_POSSESSIVE = re.compile(r"['\u2019]s$", re.IGNORECASE)
_SPACES = re.compile(r"[\s,]+")


def person_chain(name: str) -> tuple[Step, ...]:
    """Return what a name generalises to, itself first; titles and suffixes are left out."""
    words = _words(name)
    if not words:
        return ()
    first = 1 if len(words) > 1 and words[0] in _PARTICLES else 0
    surname = next((place for place in range(1, len(words)) if words[place] in _PARTICLES), -1)
    family = words[surname:]
    given = [] if first else words[: len(words) - len(family)]
    if len(words) == 1 or not given:
        return _short_chain(words)
    if not _has_case(given[0]) or not _has_case(family[-1]):
        return (_step(_FULL, " ".join(words)),)
    initial = f"{given[0][0]}."
    rest = (
        _step(_SURNAME, f"{initial} {' '.join(family)}"),
        _step(_INITIALS, f"{initial} {family[-1][0]}."),
    )
    is_short = len(given) == 1 and len(given[0]) == 1
    if is_short and len(family[-1]) == 1:
        return rest[1:]
    return rest if is_short else (_step(_FULL, " ".join(words)), *rest)


def _short_chain(words: list[str]) -> tuple[Step, ...]:
    """Return the chain of a surname or of a given name alone."""
    if not _has_case(words[-1]):
        return (_step(_FULL, " ".join(words)),)
    initials = _step(_INITIALS, f"{words[-1][0]}.")
    if len(words) == 1 and len(words[0]) == 1:
        return (initials,)
    return _step(_FULL, " ".join(words)), initials


def _words(name: str) -> list[str]:
    """Return the words of a name in lower case, without points and accents."""
    plain = _POSSESSIVE.sub("", name.strip())
    # ``J.R.R.`` are three initials, not one word.
    plain = re.sub(r"(?<=\b\w)\.(?=\w)", " ", plain).replace(".", "")
    # No mark and no accent is left: a label has to follow from what its spellings share.
    words = " ".join(spelling_key(word) for word in _SPACES.split(plain)).split()
    while len(words) > 1 and words[0] in _TITLES:
        words = words[1:]
    while len(words) > 1 and words[-1] in _SUFFIXES:
        words = words[:-1]
    return words


def _has_case(word: str) -> bool:
    return word[0].upper() != word[0].lower()


def _step(level: int, name: str) -> Step:
    """Write a name with capitals: all its spellings look the same."""
    words = name.split()
    label = " ".join(word if word in _PARTICLES else word.capitalize() for word in words)
    return Step(level, name, label)
