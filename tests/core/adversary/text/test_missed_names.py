"""Names are found as words in a row, in lower case, and counted as a search by hand counts."""

import re

import pytest

from noisefloor.adversary.text import search_names
from noisefloor.randomness import SeededSource

TEXTS = [
    "Dr. Ada LOVELACE met Anna, and Anna met ada-lovelace.",
    "",
    "ada and lovelace; Joanna 😀",
    "Ana María Müller-Groß wrote <b>Anna</b>.",
]


@pytest.mark.parametrize(
    ("name", "occurrences", "texts"),
    [
        ("Ada Lovelace", 2, 1),
        ("anna", 3, 2),
        ("ANA MARÍA müller gross", 1, 1),
        ("Lovelace Ada", 0, 0),
        ("Lovelace, met", 1, 1),
        ("Jo", 0, 0),
        ("nobody", 0, 0),
        ("--", 0, 0),
        ("", 0, 0),
    ],
)
def test_a_name_is_words_in_a_row(name: str, occurrences: int, texts: int) -> None:
    found = search_names([name], TEXTS)
    assert found.occurrences.tolist() == [occurrences]
    assert found.texts.tolist() == [texts]
    assert found.searched == 4


def test_many_names_are_counted_as_one_by_one() -> None:
    draw = SeededSource(1, "names").generator()
    words = ["ab", "ba", "aa", "bb", "cd"]
    texts = [" ".join(words[place] for place in draw.integers(0, 5, 30)) for _ in range(20)]
    names = [
        " ".join(words[place] for place in draw.integers(0, 5, draw.integers(1, 5)))
        for _ in range(40)
    ]
    found = search_names([*names, "zz"], texts)
    for place, name in enumerate(names):
        pattern = re.compile(rf"(?<!\w)(?={name}(?!\w))")
        counts = [len(pattern.findall(text)) for text in texts]
        assert found.occurrences[place] == sum(counts)
        assert found.texts[place] == sum(count > 0 for count in counts)
    assert 40 not in found.found
    assert found.outcome.n == 41


def test_no_texts_have_no_names() -> None:
    found = search_names(["Anna", "Ada Lovelace"], [])
    assert found.occurrences.tolist() == [0, 0]
    assert found.outcome.right == 0
