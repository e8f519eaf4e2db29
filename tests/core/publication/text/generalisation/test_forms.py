"""Rewriting: corrected forms look at one document alone; the paper's form does not."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generalisation_cases import Part, made_up, node_of, small_graph, written
from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.publication.text.entities import EntityKind, Mentions
from noisefloor.publication.text.generalisation import (
    FixedLevels,
    GeneralisationForm,
    KAnonymous,
    Ladders,
    NoisyPlacesPlan,
    Placeholders,
    PublicThresholds,
    generalise,
)
from noisefloor.randomness import SeededSource, new_run

GRAPH = small_graph()
ADDED, SUBSTITUTED = Neighbours.RECORD_ADD_REMOVE, Neighbours.RECORD_SUBSTITUTE
COST = Guarantee(2.0, ADDED, delta=1e-5, model=TrustModel.CENTRAL)
LEVELS = {EntityKind.LOCATION: 2, EntityKind.PERSON: 1, EntityKind.ORGANISATION: 1}
PERSON, PLACE = EntityKind.PERSON, EntityKind.LOCATION
PATHS = ("kind", "place")


def public_form(ladders: Ladders) -> PublicThresholds:
    _, mentions = written(made_up(40, SeededSource(5, "public")))
    return PublicThresholds.learn(mentions, ladders, 4)


def noisy_form(ladders: Ladders) -> GeneralisationForm:
    """Release counts of one corpus; whatever is rewritten by them comes afterwards."""
    _, mentions = written(made_up(60, SeededSource(6, "counted")))
    plan = NoisyPlacesPlan.of(COST, ladders.places, k=3, others=FixedLevels(LEVELS))
    return plan.release(mentions, ladders, SeededSource(7, "noise"))


CORRECTED: dict[str, Callable[[Ladders], GeneralisationForm]] = {
    "fixed levels": lambda ladders: FixedLevels(LEVELS),
    "placeholders": lambda ladders: Placeholders(),
    "public thresholds": public_form,
    "noisy places": noisy_form,
}


def rewritten(
    documents: Sequence[Sequence[Part]], form: GeneralisationForm, ladders: Ladders
) -> list[str]:
    texts, mentions = written(documents)
    return generalise(texts, mentions, form, ladders).texts


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", CORRECTED)
def test_a_removed_document_changes_no_other_text(name: str, path: str) -> None:
    ladders = Ladders(GRAPH, "place" if path == "place" else "kind")
    form = CORRECTED[name](ladders)
    documents = made_up(24, SeededSource(1, "corpus"))
    whole = rewritten(documents, form, ladders)
    for removed in range(len(documents)):
        rest = [one for place, one in enumerate(documents) if place != removed]
        left = [text for place, text in enumerate(whole) if place != removed]
        assert rewritten(rest, form, ladders) == left


@given(documents=st.permutations(range(12)), spelling=st.sampled_from(["O'NEIL", "o\u2019neil"]))
@settings(max_examples=30, deadline=None)
def test_the_order_of_documents_and_spellings_elsewhere_change_nothing(
    documents: list[int], spelling: str
) -> None:
    with new_run():
        ladders = Ladders(GRAPH)
        corpus = made_up(11, SeededSource(3, "order"))
        corpus.append([("Ann O'Neil", PERSON), (f"Ann {spelling}", PERSON)])
        form = FixedLevels({PERSON: 0, PLACE: 0, EntityKind.ORGANISATION: 0})
        whole = rewritten(corpus, form, ladders)
        found = rewritten([corpus[place] for place in documents], form, ladders)
        assert found == [whole[place] for place in documents]


def test_the_papers_form_tells_whether_a_document_is_there() -> None:
    """The attack on the k-th document: of k - 1 known ones, it shows in every text."""
    k, ladders = 5, Ladders(GRAPH)
    known: list[list[Part]] = [[f"Seen by {n} in ", ("Houston", PLACE)] for n in range(k - 1)]
    target: list[Part] = ["I live in ", ("Houston", PLACE)]
    form = KAnonymous(k)
    with_it = rewritten([*known, target], form, ladders)[: k - 1]
    without = rewritten(known, form, ladders)
    assert all("Houston" in text for text in with_it)
    assert all("*" in text for text in without)


def test_the_papers_form_has_no_guarantee_and_says_for_which_groups_there_is_one() -> None:
    form = KAnonymous(5, most_parents=3)
    assert not form.proved.is_finite
    assert form.proved.neighbours is ADDED
    assert form.proved.model is TrustModel.CENTRAL
    assert "can rewrite 16 others" in form.proved.reason
    assert "groups of 1 + 32 documents a mention alone" in form.proved.reason
    assert form.group_size(5) == 161


@pytest.mark.parametrize("neighbours", [ADDED, SUBSTITUTED, Neighbours.DOCUMENT])
def test_what_follows_the_papers_form_has_the_guarantee_of_a_group(neighbours: Neighbours) -> None:
    steps = 161
    before = Guarantee(0.01, neighbours, delta=1e-9, model=TrustModel.CENTRAL)
    after = KAnonymous(5, most_parents=3).what_follows(before, entities=5)
    assert after.epsilon == pytest.approx(0.01 * steps)
    assert after.delta == pytest.approx(1e-9 * np.expm1(0.01 * steps) / np.expm1(0.01))


def test_where_authors_are_counted_what_follows_is_stated_for_authors_alone() -> None:
    """One document less rewrites a hundred others of one author: no bound in documents holds."""
    documents: list[list[Part]] = [[("Houston", PLACE)]] * 101
    ladders = Ladders(GRAPH)
    form = KAnonymous(2, authors=np.array([0] + [1] * 100))
    whole = rewritten(documents, form, ladders)
    left = rewritten(documents[1:], KAnonymous(2, authors=np.ones(100, dtype=np.int64)), ladders)
    assert whole == ["Houston"] * 101
    assert left == ["*"] * 100
    for neighbours in (ADDED, SUBSTITUTED, Neighbours.DOCUMENT):
        with pytest.raises(BadParameter, match="users"):
            form.what_follows(Guarantee(0.1, neighbours), 1)
    after = form.what_follows(Guarantee(0.1, Neighbours.USER), 1)
    # The author who leaves, and the one who is rewritten, for each of the five levels, twice.
    assert after.epsilon == pytest.approx(0.1 * 11)
    assert after.neighbours is Neighbours.USER
    assert form.proved.neighbours is Neighbours.USER
    assert "one author less can rewrite 5 others" in form.proved.reason
    with pytest.raises(BadParameter, match="documents"):
        KAnonymous(2).what_follows(Guarantee(0.1, Neighbours.USER), 1)
    with pytest.raises(BadParameter, match="authors"):
        KAnonymous(2, authors=np.array([0, -1]))


@pytest.mark.parametrize("name", ["fixed levels", "placeholders", "public thresholds"])
def test_a_form_without_private_data_costs_nothing(name: str) -> None:
    proved = CORRECTED[name](Ladders(GRAPH)).proved
    assert (proved.epsilon, proved.delta) == (0.0, 0.0)
    assert proved.model is TrustModel.CENTRAL


def test_a_card_says_the_form_and_no_private_count() -> None:
    ladders = Ladders(GRAPH)
    assert {name: make(ladders).facts["form"] for name, make in CORRECTED.items()} == {
        name: name.replace(" ", "-") for name in CORRECTED
    }
    assert KAnonymous(7).facts == {"form": "k-anonymous", "k": 7, "counts_authors": False}
    assert FixedLevels(LEVELS).facts["levels"] == {"PERSON": 1, "LOCATION": 2, "ORGANISATION": 1}


def test_k_anonymous_values_are_shared_by_k_documents_of_different_authors() -> None:
    documents: list[list[Part]] = [[(name, PLACE)] for name in ["Houston"] * 3 + ["Tokyo"] * 3]
    ladders = Ladders(GRAPH)
    assert rewritten(documents, KAnonymous(3), ladders) == ["Houston"] * 3 + ["Tokyo"] * 3
    one_writes_twice = KAnonymous(3, authors=np.array([0, 0, 1, 2, 3, 4]))
    assert rewritten(documents, one_writes_twice, ladders) == ["*"] * 3 + ["Tokyo"] * 3


def test_spellings_of_one_node_are_written_alike() -> None:
    documents: list[list[Part]] = [[(name, PLACE)] for name in ("U.S.", "the USA", "america")]
    assert rewritten(documents, KAnonymous(3), Ladders(GRAPH)) == ["United States"] * 3


def test_mentions_that_overlap_are_replaced_as_one() -> None:
    texts = ["the Bank of Texas Corporation, Houston"]
    mentions = Mentions.of(
        texts,
        [0, 0, 0, 0],
        [0, 12, 4, 31],
        [17, 29, 8, 38],
        [EntityKind.ORGANISATION, PLACE, PERSON, PLACE],
    )
    done = generalise(texts, mentions, Placeholders(), Ladders(GRAPH))
    assert done.texts == ["<ORGANISATION>, <LOCATION>"]
    assert done.mentions.surfaces.tolist() == ["the Bank of Texas", "Houston"]
    counts = {kind: int(count.sum()) for kind, count in done.level_counts.items() if count.sum()}
    assert counts == {EntityKind.ORGANISATION: 1, PLACE: 1}


def test_texts_without_mentions_stay_as_they_are() -> None:
    texts = ["", "plain", "<b>\x00\N{ROCKET}</b>"]
    none = Mentions.of(texts, [], [], [], [])
    ladders = Ladders(GRAPH, "place")
    for form in (KAnonymous(2), FixedLevels(LEVELS), Placeholders(), public_form(ladders)):
        assert generalise(texts, none, form, ladders).texts == texts
    assert generalise([], none, KAnonymous(2), ladders).texts == []


def test_thresholds_of_public_texts_keep_what_is_frequent_there() -> None:
    public: list[list[Part]] = [
        [("Houston", PLACE), ("Ada Lovelace", PERSON)],
        [("Houston", PLACE), ("Ada Lovelace", PERSON)],
        [("Dallas", PLACE), ("Alan Turing", PERSON)],
    ]
    ladders = Ladders(GRAPH)
    form = PublicThresholds.learn(written(public)[1], ladders, 2)
    texts = rewritten(
        [[(name, PLACE)] for name in ("Houston", "Dallas", "Toronto", "Tokyo")], form, ladders
    )
    assert texts == ["Houston", "Texas", "North America", "*"]
    people: list[list[Part]] = [[(name, PERSON)] for name in ("ADA LOVELACE", "Alan Turing")]
    assert rewritten(people, form, ladders) == ["Ada Lovelace", "*"]


def test_bad_settings_are_refused() -> None:
    with pytest.raises(BadParameter, match="k"):
        KAnonymous(0)
    with pytest.raises(BadParameter, match="level of PERSON"):
        FixedLevels({PERSON: -1})
    texts, mentions = written([["a"], [("Houston", PLACE)]])
    with pytest.raises(BadParameter, match="of these texts"):
        generalise(texts[:1], mentions, Placeholders(), Ladders(GRAPH))


def test_a_table_of_another_graph_is_refused() -> None:
    form = PublicThresholds({PLACE: np.zeros(3, dtype=np.bool_)}, 2)
    with pytest.raises(BadParameter, match="graph"):
        rewritten([[("Houston", PLACE)]], form, Ladders(GRAPH))
    assert node_of(GRAPH, "Houston") > 0
