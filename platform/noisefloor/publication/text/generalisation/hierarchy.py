"""Values and what they generalise to, as integer codes: every chain ends at one root."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import check_count
from noisefloor.errors import BadParameter

Nodes = NDArray[np.int64]
Flags = NDArray[np.bool_]

ROOT = 0
"""The node of every hierarchy that is written as ``SUPPRESSED``."""

SUPPRESSED = "*"


@dataclass(frozen=True, slots=True, eq=False)
class Hierarchy:
    """Nodes with parents; a parent is on a higher level, not always on the next one.

    Attributes:
        labels: How each node is written.
        parents: Of each node; the root is its own.
        levels: Of each node, from 0; that of the root is the largest.
        keys: What a node is called in every corpus; None if its number is the same in all.
    """

    labels: NDArray[np.object_]
    parents: Nodes
    levels: Nodes
    keys: NDArray[np.object_] | None = None

    def __post_init__(self) -> None:
        if self.parents[ROOT] != ROOT:
            raise BadParameter("parents", "<parents>", "such that node 0 is the root")
        others = np.arange(1, len(self.parents))
        if not (self.levels[self.parents[others]] > self.levels[others]).all():
            raise BadParameter("levels", "<levels>", "larger at every parent")

    @property
    def height(self) -> int:
        """How many levels lie below the root: the leaves' and those of h parents."""
        return int(self.levels[ROOT])

    @property
    def size(self) -> int:
        """How many nodes, the root included."""
        return len(self.parents)

    def at_level(self, nodes: Nodes, level: int) -> Nodes:
        """Return for each node the first of its chain on this level or above."""
        check_count(level, "level", least=0, most=self.height)
        return self._climbed(nodes, lambda found: self.levels[found] >= level)

    def first_kept(self, nodes: Nodes, kept: Flags) -> Nodes:
        """Return for each node the first of its chain that is kept; the root always is."""
        return self._climbed(nodes, lambda found: kept[found])

    def chains(self, nodes: Nodes) -> Nodes:
        """Return for each node itself and all above, filled up with the root."""
        rows = [nodes]
        for _ in range(self.height):
            rows.append(self.parents[rows[-1]])
        return np.stack(rows, axis=1)

    def _climbed(self, nodes: Nodes, is_done: Callable[[Nodes], Flags]) -> Nodes:
        found = nodes
        for _ in range(self.height):
            found = np.where(is_done(found), found, self.parents[found])
        return found


class Step(NamedTuple):
    """One value of a chain.

    Attributes:
        level: From 0.
        key: Values of one level with the same key are one node.
        label: How it is written.
    """

    level: int
    key: str
    label: str


def hierarchy_of(chains: Sequence[Sequence[Step]], height: int) -> tuple[Hierarchy, Nodes]:
    """Build a hierarchy of chains, and return the node that each chain starts at.

    A node has the label and the parent of the first chain that has it. Both have to follow from
    level and key: otherwise what is written in one document would depend on which others there
    are. A chain without steps starts at the root.
    """
    places: dict[tuple[int, str], int] = {}
    labels, parents, levels, keys = [SUPPRESSED], [ROOT], [height], ["*"]
    starts = np.full(len(chains), ROOT, dtype=np.int64)
    for row, chain in enumerate(chains):
        above = ROOT
        for step in reversed(chain):
            node = places.setdefault((step.level, step.key), len(labels))
            if node == len(labels):
                labels.append(step.label)
                parents.append(above)
                levels.append(step.level)
                keys.append(f"{step.level}:{step.key}")
            above = node
        starts[row] = above
    made = Hierarchy(
        np.array(labels, dtype=np.object_),
        np.array(parents, dtype=np.int64),
        np.array(levels, dtype=np.int64),
        np.array(keys, dtype=np.object_),
    )
    return made, starts
