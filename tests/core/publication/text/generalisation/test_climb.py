"""The climb equals a plain reference; its bound holds everywhere and is attained."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from generalisation_cases import random_hierarchy
from noisefloor.errors import BadParameter
from noisefloor.publication.text.generalisation import (
    Hierarchy,
    climb_to_k,
    group_size,
    most_rewritten,
)
from noisefloor.randomness import SeededSource, new_run
from properties import examples

Nodes = NDArray[np.int64]

ATTAINED = [(2, 3, 4), (3, 3, 8), (5, 3, 16), (5, 2, 12), (10, 2, 27)]


def plainly_climbed(hierarchy: Hierarchy, nodes: Nodes, documents: Nodes, k: int) -> Nodes:
    """Climb level by level with sets of documents, one mention at a time."""
    found = nodes.tolist()
    for level in range(hierarchy.height):
        owners = defaultdict(set)
        for node, document in zip(found, documents.tolist(), strict=True):
            owners[node].add(document)
        found = [
            int(hierarchy.parents[node])
            if hierarchy.levels[node] == level and len(owners[node]) < k
            else node
            for node in found
        ]
    return np.array(found, dtype=np.int64)


def rewritten_others(
    hierarchy: Hierarchy, nodes: Nodes, documents: Nodes, k: int, removed: int
) -> int:
    """Return in how many other documents a mention changes when one mention is removed."""
    kept = np.delete(np.arange(len(nodes)), removed)
    before = climb_to_k(hierarchy, nodes, documents, k)[kept]
    after = climb_to_k(hierarchy, nodes[kept], documents[kept], k)
    changed = documents[kept][before != after]
    return len(set(changed.tolist()) - {int(documents[removed])})


def worst_case(k: int, parents: int) -> tuple[Hierarchy, Nodes, Nodes]:
    """Return one chain with k documents at its leaf and k - 1 at each node above.

    The leaf stays and its parent climbs; with one document less the leaf climbs and its parent
    stays, and so on by turns: on every level k - 1 documents are rewritten.
    """
    levels = np.array([parents + 1, *range(parents + 1)])
    above = np.array([0, *range(2, parents + 2), 0])
    labels = np.array([str(node) for node in range(parents + 2)], dtype=np.object_)
    counts = [k, *([k - 1] * parents)]
    nodes = np.repeat(np.arange(1, parents + 2), counts)
    return Hierarchy(labels, above, levels), nodes, np.arange(len(nodes))


@given(
    seed=st.integers(0, 1 << 32),
    height=st.integers(1, 5),
    count=st.integers(0, 60),
    documents=st.integers(1, 40),
    k=st.integers(1, 12),
)
@settings(max_examples=150, deadline=None)
def test_the_climb_equals_a_plain_reference(
    seed: int, height: int, count: int, documents: int, k: int
) -> None:
    with new_run():
        source = SeededSource(seed, "climb")
        hierarchy = random_hierarchy(height, 4, source)
        nodes = source.stage("nodes").below(hierarchy.size, count).astype(np.int64)
        owners = source.stage("owners").below(documents, count).astype(np.int64)
        found = climb_to_k(hierarchy, nodes, owners, k)
        assert found.tolist() == plainly_climbed(hierarchy, nodes, owners, k).tolist()
        for node in set(found.tolist()) - {0}:
            assert len(set(owners[found == node].tolist())) >= k


@given(
    seed=st.integers(0, 1 << 32),
    height=st.integers(1, 4),
    count=st.integers(1, 50),
    per_document=st.integers(1, 3),
    k=st.integers(1, 6),
)
@settings(max_examples=150, deadline=None)
def test_removing_one_mention_rewrites_no_more_documents_than_the_bound(
    seed: int, height: int, count: int, per_document: int, k: int
) -> None:
    with new_run():
        source = SeededSource(seed, "bound")
        hierarchy = random_hierarchy(height, 3, source)
        nodes = 1 + source.stage("nodes").below(hierarchy.size - 1, count).astype(np.int64)
        owners = np.sort(source.stage("owners").below(1 + count // per_document, count))
        for removed in range(count):
            found = rewritten_others(hierarchy, nodes, owners.astype(np.int64), k, removed)
            assert found <= most_rewritten(k, height - 1)


@pytest.mark.parametrize(("k", "parents", "most"), ATTAINED)
def test_the_bound_is_attained(k: int, parents: int, most: int) -> None:
    hierarchy, nodes, documents = worst_case(k, parents)
    assert most_rewritten(k, parents) == most
    assert rewritten_others(hierarchy, nodes, documents, k, removed=0) == most


@given(seed=st.integers(0, 1 << 32), k=st.integers(2, 4), entities=st.integers(1, 3))
@settings(max_examples=80, deadline=None)
def test_removing_a_document_moves_no_more_than_its_group(
    seed: int, k: int, entities: int
) -> None:
    with new_run():
        source = SeededSource(seed, "group")
        hierarchy = random_hierarchy(3, 3, source)
        owners = np.repeat(np.arange(14), entities)
        nodes = 1 + source.stage("nodes").below(hierarchy.size - 1, len(owners)).astype(np.int64)
        before = climb_to_k(hierarchy, nodes, owners, k)
        for document in range(14):
            kept = owners != document
            after = climb_to_k(hierarchy, nodes[kept], owners[kept], k)
            changed = set(owners[kept][before[kept] != after].tolist())
            # The document goes; each of the others goes and comes.
            assert 1 + 2 * len(changed) <= group_size(entities, k, parent_levels=2)


@given(
    seed=st.integers(0, 1 << 32),
    k=st.integers(1, 4),
    entities=st.integers(1, 2),
    height=st.integers(1, 3),
)
@examples(100, deadline=None)
def test_substituting_a_document_moves_no_more_than_its_group(
    seed: int, k: int, entities: int, height: int
) -> None:
    with new_run():
        source = SeededSource(seed, "substituted")
        hierarchy = random_hierarchy(height, 2, source)
        owners = np.repeat(np.arange(12), entities)
        drawn = source.stage("nodes").below(hierarchy.size - 1, len(owners) + 8 * entities)
        nodes, others = 1 + drawn[: len(owners)].astype(np.int64), 1 + drawn[len(owners) :]
        before = climb_to_k(hierarchy, nodes, owners, k)
        for other in others.astype(np.int64).reshape(8, entities):
            after = climb_to_k(hierarchy, np.append(other, nodes[entities:]), owners, k)
            changed = set(owners[before != after].tolist()) | {0}
            assert len(changed) <= group_size(entities, k, height - 1)


@pytest.mark.parametrize(("k", "parents", "most"), ATTAINED)
def test_the_group_of_a_substituted_document_is_attained(k: int, parents: int, most: int) -> None:
    """On the chain that a document leaves and on the one that it enters, all that can change."""
    one, nodes, _ = worst_case(k, parents)
    below = one.size - 1
    hierarchy = Hierarchy(
        np.append(one.labels, one.labels[1:]),
        np.append(one.parents, np.where(one.parents[1:] > 0, one.parents[1:] + below, 0)),
        np.append(one.levels, one.levels[1:]),
    )
    rest = np.append(nodes[1:], nodes[1:] + below)
    before, after = (
        climb_to_k(hierarchy, np.append(leaf, rest), np.arange(len(rest) + 1), k)
        for leaf in (nodes[0], nodes[0] + below)
    )
    changed = np.count_nonzero(before[1:] != after[1:])
    assert 1 + changed == 1 + 2 * most == group_size(1, k, parents)


def test_the_group_of_the_papers_setting_makes_its_guarantee_vacuous() -> None:
    assert group_size(entities=5, k=5, parent_levels=3) == 161


def test_with_k_above_the_corpus_everything_is_suppressed() -> None:
    hierarchy, nodes, documents = worst_case(3, 2)
    assert set(climb_to_k(hierarchy, nodes, documents, 1 << 40).tolist()) == {0}


def test_a_document_that_repeats_a_value_counts_once() -> None:
    hierarchy, _, _ = worst_case(2, 0)
    nodes = np.ones(60, dtype=np.int64)
    assert set(climb_to_k(hierarchy, nodes, np.zeros(60, dtype=np.int64), 2).tolist()) == {0}


@pytest.mark.parametrize("k", [0, -1, 2.5, True])
def test_a_k_that_is_no_count_is_refused(k: int) -> None:
    hierarchy, nodes, documents = worst_case(2, 1)
    with pytest.raises(BadParameter, match="k"):
        climb_to_k(hierarchy, nodes, documents, k)
