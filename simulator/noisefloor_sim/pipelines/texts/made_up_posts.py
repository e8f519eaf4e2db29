"""Made-up posts of people with a style, for tests and questions about authors.

They are an explicit choice of a scenario (``source: made-up``), and the page says so. A post is
two clauses of one form: its adjectives say a mood, which is the label; many posts name a city.
Every author has a favourite among the words of each kind, taken with the probability ``style``.
Words follow each other by a grammar, so that pairs of words matter. Public posts are of the same
form, without a mood or a style. The vocabulary, cities and rare words included, is public.
"""

import atexit
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from noisefloor.publication.text.generalisation import SUPPRESSED, Hierarchy
from noisefloor.randomness import SeededSource, new_run
from noisefloor.tables import Categories, TextSchema, text_schema_fields

Numbers = NDArray[np.int64]

GOOD = "good great fine warm clever bright rich sharp lovely strong fresh honest".split()
BAD = "bad poor dull cold weak flat thin stale ugly slow false empty".split()
_KINDS: dict[str, list[str]] = {
    "article": "the a this that one every some another".split(),
    "noun": (
        "film plot actor scene story music song voice book stage dance play house garden street "
        "dinner lunch table window train"
    ).split(),
    "verb": "is was seems seemed looks looked feels felt sounds sounded stays stayed".split(),
    "adverb": "very quite rather really truly always never often hardly almost".split(),
    "join": "and but while though since because".split(),
    "end": "today again indeed anyway perhaps somehow maybe then".split(),
}
_FORM = ("article", "noun", "verb", "adverb", "mood")
"""Of a clause; then the words that join two, and in many posts a city, and an end."""

_SAYS_ITS_OWN, _NAMES_A_CITY = 0.9, 0.6
_COUNTRIES, _REGIONS, _CITIES = 3, 9, 45
_RARE = 1_200
_PUBLIC = 2_400
_SEED = 23
_PUBLIC_FILE = "public.tsv"

NAME = "made-up"
"""Of the tokeniser."""

MARKS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
COLUMN, LABEL = "post", "mood"


def schema_of(pieces: int) -> TextSchema:
    """Return what is public of made-up posts, each counted up to ``pieces``."""
    return TextSchema("one post", {COLUMN: pieces}, LABEL, Categories(("bad", "good")))


def _names(first: str, count: int) -> list[str]:
    """Return made-up names that begin alike, all of them different."""
    ends = [c + v for c in "bdfgklmnprst" for v in "aeiou"]
    step = len(ends)
    return [f"{first}{ends[at // step % step]}{ends[at % step]}" for at in range(count)]


COUNTRIES, REGIONS, CITIES = _names("y", _COUNTRIES), _names("x", _REGIONS), _names("q", _CITIES)
RARE_WORDS = [f"z{one}{end}" for end in ("", "n", "s", "l") for one in _names("", 300)][:_RARE]
"""Words of the vocabulary that no made-up post has."""

WORDS = (*GOOD, *BAD, *(word for kind in _KINDS.values() for word in kind), "in")
VOCABULARY = (*MARKS, SUPPRESSED, *WORDS, *CITIES, *REGIONS, *COUNTRIES, *RARE_WORDS)


@dataclass(frozen=True, slots=True, eq=False)
class Styles:
    """What authors prefer: of each kind of words one, by the place in its list."""

    favourites: dict[str, Numbers]
    share: float

    @classmethod
    def of(cls, authors: int, share: float, source: SeededSource) -> "Styles":
        """Draw the favourites of some authors."""
        draws = source.generator()
        lists = {**_KINDS, "mood": GOOD}
        return cls(
            {name: draws.integers(0, len(words), authors) for name, words in lists.items()}, share
        )

    def write(self, authors: Numbers, source: SeededSource) -> tuple[list[str], Numbers]:
        """Return a post by each of some authors, and its mood."""
        draws, count = source.generator(), len(authors)
        moods = draws.integers(0, 2, count)
        columns: list[Sequence[str]] = []
        for part in (*_FORM, "join", *_FORM):
            places = draws.integers(0, len(GOOD if part == "mood" else _KINDS[part]), count)
            is_own = draws.random(count) < self.share
            places = np.where(is_own, self.favourites[part][authors], places)
            if part == "mood":
                is_good = (moods == 1) == (draws.random(count) < _SAYS_ITS_OWN)
                columns.append(
                    [(GOOD if good else BAD)[at] for good, at in zip(is_good, places, strict=True)]
                )
            else:
                columns.append([_KINDS[part][at] for at in places.tolist()])
        # A few cities are named often, most of them seldom: the last ones by one post or two.
        where = (draws.random(count) ** 3 * _CITIES).astype(np.int64)
        cities = np.where(draws.random(count) < _NAMES_A_CITY, where, -1)
        ends = draws.integers(0, len(_KINDS["end"]), count)
        is_ended = draws.random(count) < 0.5
        texts = []
        for row, words in enumerate(zip(*columns, strict=True)):
            place = f" in {CITIES[cities[row]]}" if cities[row] >= 0 else ""
            end = f" {_KINDS['end'][ends[row]]}" if is_ended[row] else ""
            texts.append(" ".join(words) + place + end)
        return texts, moods


def place_hierarchy() -> Hierarchy:
    """Return cities below regions below countries below nothing at all; cities come last."""
    regions, cities = np.arange(_REGIONS), np.arange(_CITIES)
    parents = [0, *[0] * _COUNTRIES, *(1 + regions % _COUNTRIES)]
    parents += list(1 + _COUNTRIES + cities % _REGIONS)
    levels = np.repeat([3, 2, 1, 0], [1, _COUNTRIES, _REGIONS, _CITIES])
    labels = np.array([SUPPRESSED, *COUNTRIES, *REGIONS, *CITIES], dtype=np.object_)
    return Hierarchy(labels, np.array(parents, dtype=np.int64), levels.astype(np.int64))


@lru_cache(maxsize=1)
def made_up_folder() -> Path:
    """Return the directory of the made-up tokeniser, which is removed when the process ends."""
    kept = tempfile.TemporaryDirectory(prefix="noisefloor-posts-")
    atexit.register(kept.cleanup)
    return write_public(Path(kept.name)).parent


def made_up_public() -> Path:
    """Return the file of the made-up public posts, beside their schema and tokeniser."""
    return made_up_folder() / _PUBLIC_FILE


def write_public(parent: Path) -> Path:
    """Write the made-up public posts, their schema and tokeniser, and return the posts' file.

    Args:
        parent: Gets a directory with all of it; the same bytes whoever writes them.
    """
    from tokenizers import BertWordPieceTokenizer

    folder = parent / NAME
    folder.mkdir(exist_ok=True)
    words = {word: place for place, word in enumerate(VOCABULARY)}
    BertWordPieceTokenizer(words).save(str(folder / "tokenizer.json"))
    source = SeededSource(_SEED, "public posts")
    with new_run():
        nobody = Styles.of(1, 0.0, source.child("styles"))
        texts, moods = nobody.write(np.zeros(_PUBLIC, dtype=np.int64), source.child("texts"))
    schema = schema_of(60)
    values = schema.classes.values
    path = folder / _PUBLIC_FILE
    rows = [f"{text}\t{values[mood]}" for text, mood in zip(texts, moods.tolist(), strict=True)]
    path.write_text("\n".join([f"{COLUMN}\t{LABEL}", *rows, ""]), encoding="utf-8")
    path.with_suffix(".schema.json").write_text(json.dumps(text_schema_fields(schema)))
    return path


def public_setting(folder: Path) -> dict[str, str]:
    """Let a publisher that is started for experiments count by the made-up public posts.

    Args:
        folder: Where they are written.
    """
    if find_spec("tokenizers") is None:  # without them no texts are published at all
        return {}
    return {"public_texts": str(write_public(folder))}
