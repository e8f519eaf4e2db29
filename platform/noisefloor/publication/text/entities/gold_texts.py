"""Made-up texts whose mentions are known: recall is measured on them, and on nothing private.

They are easier than what people write: templates name things in full sentences with capitals. A
recall that is low here is lower there.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from noisefloor.checks import check_count
from noisefloor.errors import BadParameter
from noisefloor.publication.text.entities.mentions import EntityKind, Mentions
from noisefloor.randomness import Source

_GIVEN = (
    "James Mary Robert Patricia John Jennifer Michael Linda David Elizabeth William Barbara "
    "Richard Susan Joseph Jessica Thomas Sarah Charles Karen Aisha Wei Yuki Priya Diego Fatima "
    "Olga Kwame Ingrid Mateo Chen Leila Rajesh Sofia Nikolai Amara"
).split()
_FAMILY = (
    "Smith Johnson Williams Brown Jones Garcia Miller Davis Martinez Lopez Wilson Anderson Taylor "
    "Moore Jackson Martin Lee Thompson White Harris Nguyen Tanaka Okafor Ivanov Patel Rossi Kim "
    "Schmidt Dubois Kowalski Haddad Larsen Silva Yamamoto Mensah Novak"
).split()
_FIRM_NAMES = (
    "Northgate Silverline Bluefield Harrow Kestrel Meridian Oakmont Pinecrest Redstone Stonebridge"
).split()
_FIRM_KINDS = (
    "{} University|{} Hospital|{} Bank|{} Pictures|{} Inc.|{} Airlines|The {} Foundation|"
    "Bank of {}|{} Corporation|{} Records"
).split("|")
_MONTHS = (
    "January February March April May June July August September October November December"
).split()

PLACES = (
    "London Paris Tokyo Chicago Houston Mumbai Berlin Madrid Toronto Sydney Lagos Cairo Lima "
    "Texas California Ontario Bavaria Japan Germany Brazil Canada France India Kenya Europe Africa"
).split()
"""Used where no places are given; a place graph has more."""

TEMPLATES = (
    "I met {PERSON} in {LOCATION} in {DATE}.",
    "{PERSON} moved from {LOCATION} to {LOCATION} and works for {ORGANISATION}.",
    "My neighbour {PERSON} studied at {ORGANISATION}.",
    "We drove through {LOCATION} in {DATE} and spent {NUMBER} dollars.",
    "The film was shot in {LOCATION} by {PERSON}, who later joined {ORGANISATION}.",
    "Write to {PERSON} at {EMAIL} or find {HANDLE} online.",
    "{PERSON} and {PERSON} play two sisters from {LOCATION}, and both are a joy to watch.",
    "A friend at {ORGANISATION} said that {NUMBER} people left before the end.",
    "I was born in {LOCATION}, <br /><br />and this story rings true.",
    "In {DATE} my doctor at {ORGANISATION} told me the news.",
    "Thanks to {HANDLE} for the tickets; {PERSON} loved it.",
    "They say that {ORGANISATION} of {LOCATION} paid {NUMBER} for the rights.",
)

_SLOT = re.compile(r"\{([A-Z]+)\}")


@dataclass(frozen=True, slots=True, eq=False)
class GoldTexts:
    """Texts and all mentions in them.

    Attributes:
        texts: Some sentences each.
        mentions: Every one of them.
    """

    texts: list[str]
    mentions: Mentions


def gold_texts(
    count: int, source: Source, *, sentences: int = 3, places: Sequence[str] = PLACES
) -> GoldTexts:
    """Make up texts from templates.

    Args:
        count: Of the texts.
        source: Of what they say.
        sentences: Of each text.
        places: Names of places, such as the most populous of a place graph.
    """
    check_count(count, "count")
    check_count(sentences, "sentences", most=1000)
    if not places:
        raise BadParameter("places", "<none>", "at least one name")
    total = count * sentences
    chosen = source.stage("templates").below(len(TEMPLATES), total).tolist()
    slots = [_SLOT.findall(TEMPLATES[one]) for one in chosen]
    draws = iter(source.stage("slots").below(1 << 32, 4 * sum(map(len, slots))).tolist())
    texts: list[str] = []
    spans: list[tuple[int, int, int, int]] = []
    for document in range(count):
        text = ""
        for sentence in chosen[document * sentences : (document + 1) * sentences]:
            text += " " if text else ""
            for place, part in enumerate(_SLOT.split(TEMPLATES[sentence])):
                if place % 2:
                    kind = EntityKind[part]
                    part = _surface(kind, [next(draws) for _ in range(4)], places)
                    spans.append((document, len(text), len(text) + len(part), int(kind)))
                text += part
        texts.append(text)
    columns = [list(column) for column in zip(*spans, strict=True)]
    return GoldTexts(texts, Mentions.of(texts, *columns))


def _surface(kind: EntityKind, draws: Sequence[int], places: Sequence[str]) -> str:
    given, family = _pick(_GIVEN, draws[0]), _pick(_FAMILY, draws[1])
    day, year = 1 + draws[0] % 28, 1950 + draws[1] % 75
    made: Mapping[EntityKind, str] = {
        EntityKind.PERSON: f"{given} {family}",
        EntityKind.LOCATION: _pick(places, draws[0]),
        EntityKind.ORGANISATION: _pick(_FIRM_KINDS, draws[0]).format(_pick(_FIRM_NAMES, draws[1])),
        EntityKind.DATE: (f"{_pick(_MONTHS, draws[2])} {day}, {year}", str(year))[draws[3] % 2],
        EntityKind.NUMBER: f"{10 + draws[0] % 990_000:,}",
        EntityKind.EMAIL: f"{given}.{family}@example.org".lower(),
        EntityKind.HANDLE: f"@{given}{draws[2] % 1000}".lower(),
    }
    return made[kind]


def _pick(names: Sequence[str], draw: int) -> str:
    return names[draw % len(names)]
