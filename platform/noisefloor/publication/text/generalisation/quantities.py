"""Dates, numbers, e-mail addresses and handles: beyond the paper."""

import re

from noisefloor.publication.text.generalisation.hierarchy import Step
from noisefloor.publication.text.generalisation.spelling import spelling_key

DATE_LEVELS = ("date", "year", "decade")
NUMBER_LEVELS = ("number", "magnitude")
EMAIL_LEVELS = ("address",)
HANDLE_LEVELS = ("handle",)

_YEAR = re.compile(r"(?<!\d)(1[5-9]\d\d|20\d\d)(?!\d)", re.ASCII)
_DIGITS = re.compile(r"\d[\d,]*(?:\.\d+)?", re.ASCII)


def date_chain(text: str) -> tuple[Step, ...]:
    """Return what a date generalises to: its year if one is written, its decade."""
    key = spelling_key(text)
    found = _YEAR.search(key)
    if not key:
        return ()
    if not found:
        return (Step(0, key, key),)
    year = found.group()
    decade = f"the {year[:3]}0s"
    rest = Step(1, year, year), Step(2, decade, decade)
    return rest if key == year else (Step(0, key, key), *rest)


def number_chain(text: str) -> tuple[Step, ...]:
    """Return what a number generalises to: the powers of ten that it lies between."""
    key = " ".join(text.casefold().split())
    found = _DIGITS.search(key)
    if not key:
        return ()
    if not found:
        return (Step(0, key, key),)
    digits = len(found.group().partition(".")[0].replace(",", "").lstrip("0"))
    span = f"{10 ** (digits - 1):,} to {10**digits:,}" if digits else "0 to 1"
    return Step(0, key, key), Step(1, span, span)


def address_chain(text: str) -> tuple[Step, ...]:
    """Return what an e-mail address or a handle generalises to: nothing but ``*``."""
    key = text.strip().casefold()
    return (Step(0, key, key),) if key else ()
