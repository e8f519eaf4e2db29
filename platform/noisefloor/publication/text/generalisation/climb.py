"""The paper's climb to k-anonymity, and what removing one mention does to all others.

Level after level, values that fewer than k documents have are replaced by their parents. Whether
a value is replaced depends on the other documents. Removing one mention rewrites mentions in at
most (k - 1)(h + 1) other documents, h being the number of parent levels below the root:

A removed mention can change counts only on its own chain. On that chain, let S be the documents
that have a node as their value with the mention, and S' without it. Documents in one set alone
are rewritten because of what happened below, or are the removed one's. If both sets have k
documents or both fewer, nothing more is rewritten here. Otherwise one has k documents or more and
stays, the other has at most k - 1 and climbs: of those in both, at most k - 1 are rewritten that
were not before. There are h + 1 nodes below the root on a chain.

So removing a document with E mentions rewrites R = E(k - 1)(h + 1) others at most. Putting another
in its place can rewrite as many once more, others than these: the new mentions change what stays
as well. Both relations of documents are left at the same number of steps, 1 + 2R. Neighbours that
add or remove a document differ in 1 + R documents after the climb, of which the R rewritten ones
are two steps each, one that goes and one that comes. Neighbours that substitute a document differ
in 1 + 2R, each of them one step. Whatever follows has the guarantee of a group of that size.

Nothing of this is about documents as such: what is counted (authors, if the climb counts them)
is whose neighbours these are, with all mentions that one of them has.
"""

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import check_count
from noisefloor.publication.text.generalisation.hierarchy import Hierarchy, Nodes

MOST_K = 1 << 40


def climb_to_k(hierarchy: Hierarchy, nodes: Nodes, documents: Nodes, k: int) -> Nodes:
    """Return each mention's value once no value but the root is in fewer than k documents.

    Args:
        hierarchy: Of all values.
        nodes: The value of each mention.
        documents: The document of each mention; one with several counts once for a value.
        k: Documents that share a value at least, wherever it is not the root.
    """
    check_count(k, "k", most=MOST_K)
    found = nodes
    for level in range(hierarchy.height):
        here = np.flatnonzero(hierarchy.levels[found] == level)
        counts = document_counts(found[here], documents[here], hierarchy.size)
        rare = here[counts[found[here]] < k]
        found = found.copy()
        found[rare] = hierarchy.parents[found[rare]]
    return found


def document_counts(nodes: Nodes, documents: Nodes, size: int) -> NDArray[np.int64]:
    """Return for each node in how many distinct documents it stands."""
    if not len(nodes):
        return np.zeros(size, dtype=np.int64)
    width = int(documents.max()) + 1
    pairs = np.unique(nodes * width + documents)
    return np.bincount(pairs // width, minlength=size)


def most_rewritten(k: int, parent_levels: int) -> int:
    """Return how many other documents one removed mention rewrites at most; it is attained.

    Args:
        k: Of the climb.
        parent_levels: Levels between that of the mentions and the root.
    """
    check_count(k, "k", most=MOST_K)
    return (k - 1) * (check_count(parent_levels, "parent_levels", least=0) + 1)


def group_size(entities: int, k: int, parent_levels: int) -> int:
    """Return by how many steps neighbours differ after the climb, if by one before it.

    It is the same whether a step adds or removes a document or substitutes one.

    Args:
        entities: Distinct mentions of a document at most.
        k: Of the climb.
        parent_levels: Levels between that of the mentions and the root.
    """
    check_count(entities, "entities", least=0)
    return 1 + 2 * entities * most_rewritten(k, parent_levels)
