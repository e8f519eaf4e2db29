"""Noisy counts of places: what one document changes, what it costs, what is kept."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from generalisation_cases import Part, made_up, node_of, small_graph, written
from noisefloor.accounting import epsilon_at
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import excess
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.publication.noised_vectors import NoisedVector
from noisefloor.publication.text.entities import EntityKind
from noisefloor.publication.text.generalisation import Ladders, NoisyPlacesPlan
from noisefloor.publication.text.generalisation.noisy_counts import capped_counts
from noisefloor.randomness import SeededSource, new_run

GRAPH = small_graph()
LADDERS = Ladders(GRAPH)
PLACE = EntityKind.LOCATION
ADDED = Neighbours.RECORD_ADD_REMOVE


def cost(epsilon: float = 2.0, neighbours: Neighbours = ADDED, delta: float = 1e-5) -> Guarantee:
    return Guarantee(epsilon, neighbours, delta=delta, model=TrustModel.CENTRAL)


def counts_of(documents: list[list[Part]], most: int) -> NDArray[np.int64]:
    mentions = written(documents)[1]
    return capped_counts(LADDERS.place(mentions)[PLACE], most)


@given(seed=st.integers(0, 1 << 32), most=st.integers(1, 12), removed=st.integers(0, 15))
@settings(max_examples=80, deadline=None)
def test_a_removed_document_changes_no_more_counts_than_stated(
    seed: int, most: int, removed: int
) -> None:
    with new_run():
        documents = made_up(16, SeededSource(seed, "counts"), most=8)
    documents[3] = [part for _ in range(60) for part in ("again ", ("Houston", PLACE))]
    whole = counts_of(documents, most)
    rest = counts_of([one for row, one in enumerate(documents) if row != removed], most)
    change = whole - rest
    assert change.min() >= 0
    assert change.max() <= 1
    assert change.sum() <= most


@pytest.mark.parametrize("most", [1, 5, 12])
def test_no_order_of_mentions_lets_a_document_count_more_often(most: int) -> None:
    mentions = written(made_up(8, SeededSource(2, "counts"), most=8))[1]
    placed = LADDERS.place(mentions)[PLACE]
    with new_run():
        order = SeededSource(1, "order").permutation(len(placed.rows))
    turned = replace(placed, documents=placed.documents[order], nodes=placed.nodes[order])
    whole = capped_counts(turned, most)
    assert whole.sum() == capped_counts(placed, most).sum()
    for document in range(8):
        kept = np.flatnonzero(turned.documents != document)
        left = replace(turned, documents=turned.documents[kept], nodes=turned.nodes[kept])
        change = whole - capped_counts(left, most)
        assert 0 <= change.min() <= change.max() <= 1
        assert change.sum() <= most


def test_a_document_counts_at_its_first_distinct_places_from_the_bottom_up() -> None:
    document: list[Part] = [(name, PLACE) for name in ("Houston", "Houston", "Dallas", "Tokyo")]
    found = counts_of([document], 7)
    expected = ["Houston", "Harris County", "Texas", "United States", "North America", "Dallas"]
    assert found.sum() == 7
    assert all(found[node_of(GRAPH, name)] == 1 for name in [*expected, "Dallas County"])
    assert counts_of([document], 100).sum() == 10
    assert counts_of([document], 100)[0] == 0


@pytest.mark.parametrize("most", [1, 4, 10])
def test_the_guarantee_is_within_its_cost_and_not_far_below_the_accountants(most: int) -> None:
    plan = NoisyPlacesPlan.of(cost(), GRAPH, most_places=most)
    assert plan.proved.epsilon <= 2.0
    assert plan.proved.neighbours is ADDED
    # Renyi accounting of the same noise is an upper bound, and not the tightest one.
    renyi = epsilon_at(plan.loss.events, 1e-5, method="rdp").epsilon
    assert 1.99 <= plan.proved.epsilon <= renyi <= 2.6


def test_the_exact_loss_of_one_count_is_that_of_its_weights() -> None:
    plan = NoisyPlacesPlan.of(cost(), GRAPH, most_places=1)
    assert excess(plan.table.chances, plan.proved.epsilon, 1) <= 1e-5
    assert excess(plan.table.chances, plan.proved.epsilon - 0.01, 1) > 1e-5


@pytest.mark.parametrize("most", [3, 6])
def test_the_loss_of_all_counts_of_a_document_is_within_the_guarantee(most: int) -> None:
    """With every count moved by one, ln P / Q is (2 S + n) / (2 sigma**2), S being n noises."""
    plan = NoisyPlacesPlan.of(cost(), GRAPH, most_places=most)
    chances = np.ones(1)
    for _ in range(most):
        chances = np.convolve(chances, plan.table.chances)
    sums = np.arange(len(chances)) - most * plan.table.reach
    losses = (2 * sums + most) / (2 * plan.table.sigma**2)
    over = losses > plan.proved.epsilon
    delta = float(-np.expm1(plan.proved.epsilon - losses[over]) @ chances[over])
    assert 0.9e-5 <= delta <= 1e-5


def test_a_substituted_document_costs_twice_the_places() -> None:
    added = NoisyPlacesPlan.of(cost(), GRAPH, most_places=8)
    other = NoisyPlacesPlan.of(cost(2.0, Neighbours.RECORD_SUBSTITUTE), GRAPH, most_places=4)
    assert math.isclose(added.table.sigma, other.table.sigma, rel_tol=1e-6)


def test_every_place_is_released_whether_mentioned_or_not() -> None:
    documents = [[("Houston", PLACE)]] * 200
    seen: list[NoisedVector] = []
    plan = NoisyPlacesPlan.of(cost(), GRAPH)
    form = plan.release(written(documents)[1], LADDERS, SeededSource(1, "r"), seen.append)
    assert len(form.counts) == GRAPH.hierarchy.size
    assert (form.counts[1:] != 0).sum() > GRAPH.hierarchy.size // 2
    paid = form.paid_counts(GRAPH, 3)
    assert paid["United States"] == form.counts[node_of(GRAPH, "United States")]
    assert min(paid.values()) >= form.threshold == plan.threshold
    (vector,) = seen
    assert vector.clean is not None
    assert vector.clean[node_of(GRAPH, "Texas")] == 200
    assert (vector.noised == form.counts).all()
    assert form.proved == plan.proved


def test_noise_alone_reaches_the_threshold_at_one_place_at_most() -> None:
    plan = NoisyPlacesPlan.of(cost(), GRAPH, k=1)
    chances, reach = plan.table.chances, plan.table.reach
    assert chances[plan.threshold + reach :].sum() * GRAPH.hierarchy.size <= 1
    assert chances[plan.threshold - 1 + reach :].sum() * GRAPH.hierarchy.size > 1
    assert NoisyPlacesPlan.of(cost(), GRAPH, k=500).threshold == 500


def test_bad_plans_are_refused() -> None:
    with pytest.raises(BadParameter, match="delta"):
        NoisyPlacesPlan.of(cost(delta=0.0), GRAPH)
    with pytest.raises(BadParameter, match="most_places"):
        NoisyPlacesPlan.of(cost(), GRAPH, most_places=0)
    with pytest.raises(BadParameter, match="neighbours"):
        NoisyPlacesPlan.of(cost(neighbours=Neighbours.USER), GRAPH)
    plan = NoisyPlacesPlan.of(cost(), GRAPH)
    with pytest.raises(BadParameter, match="graph"):
        plan.release(written([[("a", PLACE)]])[1], Ladders(small_graph()), SeededSource(1, "x"))
