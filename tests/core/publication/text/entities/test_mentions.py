"""Spans in columns: sorted, checked, merged where they overlap; recall over them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisefloor.errors import BadParameter
from noisefloor.publication.text.entities import (
    EntityKind,
    Mentions,
    gold_texts,
    join_mentions,
    recall_by_kind,
)
from noisefloor.randomness import SeededSource

PERSON, PLACE, FIRM = EntityKind.PERSON, EntityKind.LOCATION, EntityKind.ORGANISATION
TEXT = "0123456789" * 4
SPANS = st.lists(
    st.tuples(
        st.integers(0, 3), st.integers(0, 39), st.integers(1, 40), st.sampled_from(EntityKind)
    ).filter(lambda span: span[1] < span[2]),
    max_size=30,
)


def table(spans: list[tuple[int, int, int, EntityKind]], count: int = 4) -> Mentions:
    columns = [list(column) for column in zip(*spans, strict=True)] or [[], [], [], []]
    return Mentions.of([TEXT] * count, *columns)


def covered(mentions: Mentions) -> set[tuple[int, int]]:
    spans = zip(mentions.documents, mentions.starts, mentions.ends, strict=True)
    return {(int(row), place) for row, start, end in spans for place in range(start, end)}


def test_spans_are_sorted_and_stand_once() -> None:
    found = table([(1, 3, 5, PLACE), (0, 2, 4, PERSON), (1, 3, 5, PLACE), (1, 3, 5, PERSON)])
    assert found.documents.tolist() == [0, 1, 1]
    assert found.kinds.tolist() == [PERSON, PERSON, PLACE]
    assert found.surfaces.tolist() == ["23", "34", "34"]


@given(spans=SPANS)
def test_merged_mentions_cover_the_same_and_do_not_overlap(
    spans: list[tuple[int, int, int, EntityKind]],
) -> None:
    whole = table(spans)
    apart = whole.disjoint()
    assert covered(apart) == covered(whole)
    begins = apart.documents * 100 + apart.starts
    assert (begins[1:] >= (apart.documents * 100 + apart.ends)[:-1]).all()
    assert apart.disjoint().starts.tolist() == apart.starts.tolist()


def test_what_overlaps_has_the_kind_and_the_surface_of_the_longest() -> None:
    found = table([(0, 0, 4, PERSON), (0, 3, 9, FIRM), (0, 8, 10, PLACE), (0, 10, 12, PLACE)])
    apart = found.disjoint()
    assert list(zip(apart.starts, apart.ends, apart.kinds, strict=True)) == [
        (0, 10, FIRM),
        (10, 12, PLACE),
    ]
    assert apart.surfaces.tolist() == ["345678", "01"]


def test_mentions_of_some_documents_are_numbered_anew() -> None:
    whole = table([(0, 0, 2, PERSON), (2, 1, 3, PLACE), (3, 4, 5, FIRM)])
    some = whole.of_documents(np.array([2, 3]))
    assert some.documents.tolist() == [0, 1]
    assert some.surfaces.tolist() == ["12", "4"]


def test_several_tables_are_joined() -> None:
    one, two = table([(0, 0, 2, PERSON)]), table([(0, 0, 2, PERSON), (1, 0, 1, PLACE)])
    joined = join_mentions([TEXT] * 4, [one, two])
    assert joined.count == 2
    assert join_mentions([TEXT], []).count == 0


@pytest.mark.parametrize(
    "span",
    [
        *((4, 0, 1, PERSON), (-1, 0, 1, PERSON), (0, 3, 3, PERSON)),
        *((0, -1, 3, PERSON), (0, 0, 41, PERSON)),
    ],
)
def test_a_span_outside_of_its_text_is_refused(span: tuple[int, int, int, EntityKind]) -> None:
    with pytest.raises(BadParameter):
        table([span])


def test_columns_of_unlike_lengths_and_unknown_kinds_are_refused() -> None:
    with pytest.raises(BadParameter, match="one length"):
        Mentions.of([TEXT], [0], [0], [1], [0, 1])
    with pytest.raises(BadParameter, match="kinds"):
        Mentions.of([TEXT], [0], [0], [1], [7])


def test_mentions_out_of_order_are_refused() -> None:
    """Names of them would stay in texts, and documents count more often than is paid for."""
    found = table([(0, 0, 4, PERSON), (0, 5, 9, PERSON), (2, 0, 4, PLACE)])
    assert found[np.array([0, 2])].documents.tolist() == [0, 2]
    for rows in ([2, 0], [1, 0], [0, 2, 1]):
        with pytest.raises(BadParameter, match="in the order of documents"):
            found[np.array(rows)]


def test_gold_mentions_stand_in_their_texts() -> None:
    gold = gold_texts(50, SeededSource(1), places=["Ulm"])
    assert len(gold.texts) == 50
    assert set(gold.mentions.kinds.tolist()) == set(EntityKind)
    assert set(gold.mentions.surfaces[gold.mentions.of_kind(PLACE)]) == {"Ulm"}
    assert gold.mentions.disjoint().count == gold.mentions.count
    again = gold_texts(50, SeededSource(1, "again"), places=["Ulm"])
    assert again.texts != gold.texts


def test_recall_counts_what_is_covered_wholly() -> None:
    known = table([(0, 0, 10, PERSON), (1, 5, 9, PERSON), (2, 0, 4, PERSON), (3, 1, 2, PLACE)])
    found = table([(0, 0, 6, PLACE), (0, 6, 12, PERSON), (1, 5, 8, PERSON), (3, 0, 9, FIRM)])
    counts = recall_by_kind(known, found)
    person, place = counts[PERSON], counts[PLACE]
    assert (person.known, person.covered, person.named, person.touched) == (3, 1, 0, 2)
    assert (place.known, place.covered, place.named, place.touched) == (1, 1, 0, 1)
    assert person.recall == 1 / 3
    assert set(counts) == {PERSON, PLACE}


def test_recall_of_everything_is_one_and_of_nothing_zero() -> None:
    gold = gold_texts(30, SeededSource(1))
    perfect = recall_by_kind(gold.mentions, gold.mentions)
    nothing = recall_by_kind(gold.mentions, gold.mentions[:0])
    assert {count.named_recall for count in perfect.values()} == {1.0}
    assert {count.recall for count in nothing.values()} == {0.0}
    with pytest.raises(BadParameter, match="known"):
        recall_by_kind(gold.mentions[:0], gold.mentions)
