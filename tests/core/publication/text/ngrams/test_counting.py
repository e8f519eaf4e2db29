"""Tables of documents: what a neighbour changes, what is counted, what the plan proves."""

import math
from dataclasses import replace

import numpy as np
import pytest

from made_up_texts import documents_of
from ngram_cases import LENGTH, a_plan, number_tokeniser, private_texts, public_texts
from noisefloor.accounting import gaussian_delta
from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.publication import NoisedVector
from noisefloor.publication.text import Documents
from noisefloor.publication.text.ngrams import (
    CellCounts,
    NgramCounts,
    NgramPlan,
    NoisyCounting,
    PublicCorpus,
    ReleasedTables,
    count_cells,
    count_ngrams,
    ngram_tables,
    read_ngrams,
    release_ngrams,
)
from noisefloor.randomness import SeededSource, new_run
from tiny_backbones import SPECIAL

SWAP = Neighbours.RECORD_SUBSTITUTE


def counted(documents: Documents, plan: NgramPlan, seed: int = 1) -> NgramCounts:
    return count_ngrams(documents, plan, public_texts(), SeededSource(seed, "counts"))


Counted = tuple[NoisyCounting, CellCounts]


def three_tables(documents: Documents, plan: NgramPlan, released: ReleasedTables) -> list[Counted]:
    """Return all tables of documents, with the cells that a release chose."""
    chosen = ngram_tables(plan, public_texts(), released)
    return [(cells.counting, count_cells(documents, cells)) for cells in chosen]


def released_by(documents: Documents, plan: NgramPlan) -> ReleasedTables:
    return release_ngrams(documents, plan, public_texts(), SeededSource(1, "counts"))


def moved(first: Counted, second: Counted) -> float:
    """Return by how much of the allowed norm two corpora differ in a table."""
    counting = first[0]
    assert np.array_equal(counting.exponents, second[0].exponents)
    gap = counting.sums(first[1]) - counting.sums(second[1])
    norm = np.sqrt((gap.astype(float) ** 2 / 2.0 ** counting.exponents.astype(float)).sum())
    return float(norm / (counting.bound.grid * np.sqrt(counting.bound.norm_squared)))


def test_a_thousand_neighbours_change_no_table_by_more_than_its_norm() -> None:
    """One in a hundred documents repeats one word sixty times, as the longest ones may."""
    plan = a_plan(longest=60)
    usual = [row.tolist() for row in private_texts(990).pieces.reshape(990, LENGTH)]
    long = [[len(SPECIAL) + 3 * one] * 60 for one in range(10)]
    documents = documents_of(usual + long, [one % 2 for one in range(1_000)])
    released = released_by(documents, plan)
    whole = three_tables(documents, plan, released)
    most = [0.0, 0.0, 0.0]
    for gone in range(1_000):
        rest = three_tables(documents[np.delete(np.arange(1_000), gone)], plan, released)
        most = [max(one, moved(*pair)) for one, *pair in zip(most, whole, rest, strict=True)]
    assert max(most) <= 1 + 1e-12
    assert min(most) > 0.9, most


def test_a_substituted_document_changes_at_most_twice_the_norm() -> None:
    plan = a_plan(neighbours=SWAP)
    documents = private_texts(50)
    released = released_by(documents, plan)
    # The same words under the other label: contrasts of opposite sign.
    other = Documents(documents.pieces, documents.offsets, 1 - documents.labels)
    pairs = zip(
        three_tables(documents[:1], plan, released),
        three_tables(other[:1], plan, released),
        strict=True,
    )
    shares = [moved(*pair) for pair in pairs]
    assert max(shares) <= 2
    assert shares[1] > 1.1  # more than any document that comes or goes


@pytest.mark.parametrize("neighbours", [Neighbours.RECORD_ADD_REMOVE, SWAP])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 8.0])
def test_a_plan_keeps_to_its_cost_and_wastes_little(
    epsilon: float, neighbours: Neighbours
) -> None:
    plan = a_plan(epsilon, neighbours=neighbours)
    assert 0.999 * epsilon < plan.guarantee.epsilon <= epsilon
    assert plan.guarantee.delta == 1e-5
    # The analytic Gaussian, of all tables: as good as the continuous noise that is rounded.
    step = 1 + (neighbours is SWAP)
    mean = step * math.hypot(*(1 / part.noise_multiplier for part in plan.continuous.values()))
    exact = gaussian_delta(plan.guarantee.epsilon, mean)
    assert 0.9 * 1e-5 < exact < 1e-5
    assert 0 < plan.variation < 1e-9
    assert (plan.loss.delta, plan.loss.variation) in ((1e-8, 0.0), (0.0, plan.variation))


@pytest.mark.parametrize(("epsilon", "delta"), [(8.0, 1e-6), (4.0, 1e-7), (0.5, 1e-8)])
def test_a_small_delta_is_kept_though_tails_are_cut(epsilon: float, delta: float) -> None:
    cost = replace(a_plan(epsilon).cost, delta=delta)
    plan = NgramPlan.of(cost, 2, LENGTH, number_tokeniser().size)
    assert 0.99 * epsilon < plan.guarantee.epsilon <= epsilon


def test_a_delta_that_tails_use_up_is_refused() -> None:
    with pytest.raises(BadParameter, match="integer noise is cut at its tails at epsilon 18"):
        a_plan(18.0)


def test_substitution_takes_twice_the_noise() -> None:
    one, two = a_plan(2.0), a_plan(2.0, neighbours=SWAP)
    for name, part in one.continuous.items():
        twice = two.continuous[name].noise_multiplier
        assert twice == pytest.approx(2 * part.noise_multiplier, rel=1e-3)


def test_less_budget_leaves_less_to_pairs() -> None:
    shares = [
        (a_plan(e).multipliers["pieces"] / a_plan(e).multipliers["pairs"]) for e in (1.0, 8.0)
    ]
    assert shares[0] < shares[1]


def test_every_table_is_shown_before_and_after_its_noise() -> None:
    plan, seen = a_plan(), {}

    def watch(vector: NoisedVector) -> None:
        assert vector.part not in seen
        assert vector.clean is not None
        assert vector.unit is not None
        seen[vector.part] = vector.noised - vector.clean, vector.unit

    documents = private_texts(500)
    watched = count_ngrams(documents, plan, public_texts(), SeededSource(1, "counts"), watch)
    assert list(seen) == ["lengths", "pieces", "pairs"]
    for name, (noise, unit) in seen.items():
        assert abs((noise / unit).std() / plan.multipliers[name] - 1) < 0.2
    with new_run():
        alone = counted(documents, plan)
    assert np.array_equal(watched.pairs, alone.pairs)


def test_counts_are_close_to_the_truth() -> None:
    plan, documents = a_plan(8.0), private_texts(4_000)
    found = counted(documents, plan)
    truth = np.bincount(documents.pieces, minlength=number_tokeniser().size) / len(
        documents.pieces
    )
    assert np.abs(found.estimates.pooled - truth).sum() < 0.05
    for label in (0, 1):
        part = documents[documents.labels == label]
        own = np.bincount(part.pieces, minlength=truth.size) / len(part.pieces)
        assert np.abs(found.estimates.by_label[label] - own).sum() < 0.12
        assert np.abs(own - truth).sum() > 0.25  # labels do differ
    assert found.lengths.pieces == pytest.approx(len(documents.pieces), rel=0.02)


def test_frequent_pairs_are_counted_though_public_text_has_none_of_them() -> None:
    public = PublicCorpus("other words", public_texts().documents[:3], number_tokeniser())
    found = count_ngrams(private_texts(3_000), a_plan(8.0), public, SeededSource(1, "c"))
    seen = set(
        zip(*(side.tolist() for side in (found.cells.before, found.cells.pieces)), strict=True)
    )
    known = public.pairs.pieces.size
    assert len(seen) > 2 * known
    assert found.cells.is_counted.sum() > known


def test_all_that_is_said_of_documents_follows_from_released_tables() -> None:
    """The tables are read a second time where there are no documents."""
    plan, documents = a_plan(), private_texts(800)
    found = counted(documents, plan)
    with new_run():
        tables = released_by(documents, plan)
    again = read_ngrams(plan, public_texts(), tables)
    for name in ("pairs", "pair_noise", "rests", "rest_noise"):
        assert np.array_equal(getattr(again, name), getattr(found, name))
    for name in ("before", "pieces", "expected", "is_counted", "rows", "has_rest"):
        assert np.array_equal(getattr(again.cells, name), getattr(found.cells, name))
    assert np.array_equal(again.cells.counting.exponents, found.cells.counting.exponents)


def test_a_table_of_other_cells_is_not_read() -> None:
    plan = a_plan()
    tables = dict(released_by(private_texts(300), plan))
    tables["pieces"] = tables["pieces"][:-1]
    with pytest.raises(BadParameter, match="a table of"):
        read_ngrams(plan, public_texts(), tables)


def test_a_corpus_without_texts_of_a_label_is_counted() -> None:
    documents = private_texts(300)
    one = documents[documents.labels == 1]
    found = counted(one, a_plan(8.0))
    assert found.lengths.documents[0] < 0.2 * found.lengths.documents[1]
    assert np.isfinite(found.estimates.by_label).all()


def test_no_documents_at_all_give_noise_alone() -> None:
    none = private_texts(10)[np.zeros(0, dtype=np.int64)]
    found = counted(none, a_plan())
    assert np.isfinite(found.estimates.by_label).all()
    assert np.isfinite(found.cells.expected).all()


def test_where_no_piece_is_counted_and_noise_takes_the_rest_shares_are_the_public_ones() -> None:
    """Next to no epsilon: no piece has a cell, and the rest is below 0 or above."""
    plan, public = a_plan(0.2, longest=2), public_texts()
    none = documents_of([[]], [0])
    rests = set()
    for seed in range(8):
        tables = release_ngrams(none, plan, public, SeededSource(seed, "counts"))
        found = read_ngrams(plan, public, tables)
        if found.estimates.counted.size == 0:
            rests.add(tables["pieces"][0] <= 0)
        assert np.isfinite(found.estimates.by_label).all()
        assert np.allclose(found.estimates.pooled.sum(), 1)
        if found.estimates.counted.size == 0:
            assert np.allclose(
                found.estimates.pooled, public.frequencies / public.frequencies.sum()
            )
    assert rests == {True, False}


def test_documents_longer_than_planned_are_refused() -> None:
    with pytest.raises(BadParameter, match="at most 5 pieces"):
        counted(private_texts(3), a_plan(longest=5))


@pytest.mark.parametrize(
    ("change", "rule"),
    [({"delta": 0.0}, "delta"), ({"epsilon": 1e-5}, "epsilon")],
)
def test_costs_that_cannot_be_met_are_refused(change: dict[str, float], rule: str) -> None:
    asked = {"epsilon": 1.0, "delta": 1e-5, **change}
    cost = Guarantee(
        asked["epsilon"],
        Neighbours.RECORD_ADD_REMOVE,
        delta=asked["delta"],
        model=TrustModel.CENTRAL,
    )
    with pytest.raises(BadParameter, match=rule):
        plan = NgramPlan.of(cost, 2, 20, 205)
        plan.bound("pairs")


def test_an_empty_public_corpus_is_refused() -> None:
    documents = private_texts(1)[np.zeros(0, dtype=np.int64)]
    with pytest.raises(BadParameter, match="with texts"):
        PublicCorpus("empty", documents, number_tokeniser())
