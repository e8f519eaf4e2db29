"""Patterns, and what all taggers share: what is hidden from them and how long texts are cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisefloor.publication.text.entities import EntityKind, PatternTagger
from noisefloor.publication.text.entities.labels import kind_of
from noisefloor.publication.text.entities.tagger import trimmed, visible, window_batches, windows


def found(text: str, kind: EntityKind) -> list[str]:
    return [str(one) for one in PatternTagger([kind]).tag([text]).surfaces]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "write to a.b+c@mail.example.org, or <x_y@b.co>.",
            ["a.b+c@mail.example.org", "x_y@b.co"],
        ),
        ("mailto:Jörg@müller.de", ["Jörg@müller.de"]),
        ("no @ here, a@b, @c.", []),
    ],
)
def test_addresses_are_found(text: str, expected: list[str]) -> None:
    assert found(text, EntityKind.EMAIL) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("thanks @anna_1, @bob!", ["@anna_1", "@bob"]),
        ("a@b.org and 5 @ 3", []),
        ("(@太郎)", ["@太郎"]),
    ],
)
def test_handles_are_found(text: str, expected: list[str]) -> None:
    assert found(text, EntityKind.HANDLE) == expected


@pytest.mark.parametrize(
    "date",
    [
        *("2019-05-03", "3/5/2019", "3.5.19", "May 3, 1987", "3rd of May 1987", "May 1987"),
        *("1987", "1980s", "Sept. 11", "2019年5月3日"),
    ],
)
def test_dates_are_found(date: str) -> None:
    assert found(f"It was {date} then", EntityKind.DATE) == [date]


@pytest.mark.parametrize("number", ["7", "1,234.50", "99%", "-3", "+44 20 7946 0958"])
def test_numbers_are_found(number: str) -> None:
    assert found(f"It was {number}, then", EntityKind.NUMBER) == [number]


@pytest.mark.parametrize("word", ["mp3", "R2D2", "x86_64"])
def test_digits_within_words_are_no_numbers(word: str) -> None:
    assert found(f"an {word} here", EntityKind.NUMBER) == []


@pytest.mark.parametrize("text", ["", " ", "\x00", "\U0001f600", "a" * 1_000_000, "@" * 100_000])
def test_texts_without_entities_have_none(text: str) -> None:
    assert PatternTagger().tag([text]).count == 0


def test_tags_and_control_characters_are_hidden_and_places_stay() -> None:
    text = "a<br />b\x00c\x1b\ud800d <b>e</B> <x@y.org> <img alt='Ann'> 1 < 2 &amp; &#39;"
    shown = visible(text)
    assert len(shown) == len(text)
    assert shown == "a      b c  d    e     <x@y.org> <img alt='Ann'> 1 < 2 " + " " * 11


@given(text=st.text(alphabet="ab. \n。", max_size=120), longest=st.integers(2, 20))
def test_windows_follow_each_other_and_are_short(text: str, longest: int) -> None:
    spans = list(windows(text, longest))
    assert "".join(text[start:end] for start, end in spans) == text
    assert all(end - start <= longest for start, end in spans)
    assert all(start < end for start, end in spans) or not text


def test_a_window_ends_after_a_sentence_where_there_is_one() -> None:
    text = "One two three. Four five six. Seven eight nine ten"
    assert [text[start:end] for start, end in windows(text, 24)] == [
        "One two three. ",
        "Four five six. ",
        "Seven eight nine ten",
    ]


def test_batches_hold_every_window_that_is_not_blank() -> None:
    texts = ["", "  \n", "a", "b" * 20_000, "<br />", "\U0001f600" * 20_000]
    (places, seen), *others = window_batches(texts)
    assert not others
    assert places[:, 0].tolist() == [2, 3, 3, 3]
    assert [len(one) for one in seen] == [1, 8192, 8192, 3616]


@pytest.mark.parametrize(
    ("label", "kind"),
    [
        ("PERSON", EntityKind.PERSON),
        ("B-PER", EntityKind.PERSON),
        ("I-LOC", EntityKind.LOCATION),
        ("GPE", EntityKind.LOCATION),
        ("Province", EntityKind.LOCATION),
        ("ORG", EntityKind.ORGANISATION),
        ("Pro_Sports_Organization", EntityKind.ORGANISATION),
        ("CARDINAL", EntityKind.NUMBER),
        ("WORK_OF_ART", None),
        ("O", None),
    ],
)
def test_labels_of_several_pipelines_are_known(label: str, kind: EntityKind | None) -> None:
    assert kind_of(label) is kind


def test_spaces_and_possessives_are_no_part_of_a_name() -> None:
    text = " Ann\u2019s  "
    assert trimmed(text, 0, len(text), EntityKind.PERSON) == (1, 4)
    assert trimmed("  ", 0, 2, EntityKind.DATE) == (2, 2)
