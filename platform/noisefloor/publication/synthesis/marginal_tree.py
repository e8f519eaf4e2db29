"""Synthetic records from a private forest of columns: counts of pairs of columns and the label.

First every column is counted with the label. Then each pair is scored by how far its table lies
from what those counts foretell, all scores get noise, and the best spanning forest is taken. Its
tables are counted last. Counts and scores are integers, and all their noise is in one account.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee
from noisefloor.publication.cell_noise import changed_cells
from noisefloor.publication.synthesis import record_model
from noisefloor.publication.synthesis.noise_budget import NoiseBudget, table_change
from noisefloor.publication.synthesis.privacy_loss import RecordChange
from noisefloor.randomness import Source
from noisefloor.tables import Records, Schema

MARGINAL_TREE = "marginal-tree"
SCORES = "scores"

Counts = NDArray[np.int64]
Pair = tuple[str, str]

SHARES = {"ones": 0.25, "scores": 0.15, "twos": 0.6}
"""Of the budget, for the three groups."""


@dataclass(frozen=True)
class MarginalTree:
    """Columns that hang on the label and on at most one other column, chosen in private.

    Guarantee:  epsilon (Laplace) or (epsilon, delta) (Gaussian) of counts, scores and counts of
                pairs together, from the integer weights that are drawn from. Per release.
    Neighbours: one record added or removed (a cell of every table changes by one, a score by one
                at most), or one substituted (two cells of every table, a score by two at most).
    Domain:     records of the schema, whose domains are public; nothing is clipped.
    Reference:  after McKenna, Miklau and Sheldon 2021 (MST), arXiv 2108.04978; scores less their
                expected noise as in McKenna et al. 2022 (AIM), arXiv 2201.12677.

    Attributes:
        schema: What is public of the records.
        label: The column that all others are counted with.
        cost: What everything may cost.
    """

    schema: Schema
    label: str
    cost: Guarantee

    def __post_init__(self) -> None:
        if len(record_model.other_columns(self.schema, self.label)) < 2:
            raise BadParameter("label", self.label, "to leave at least two other columns")
        if SCORES in self.columns:  # its table and its draws would be those of the scores
            raise BadParameter("columns", SCORES, "another name: the scores of pairs have it")
        self.budget  # noqa: B018  # a cost that cannot be met is refused here

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns besides the label."""
        return record_model.other_columns(self.schema, self.label)

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """All pairs of them, in the order of their scores."""
        return tuple(combinations(self.columns, 2))

    @cached_property
    def budget(self) -> NoiseBudget:
        """The noise of the three groups; the forest is charged as if it were a tree."""
        relation, count = self.cost.neighbours, len(self.columns)
        changes = {
            "ones": table_change(count, relation),
            "scores": RecordChange(len(self.pairs), changed_cells(relation)),
            "twos": table_change(count - 1, relation),
        }
        return NoiseBudget.of(self.cost, changes, SHARES)

    @property
    def guarantee(self) -> Guarantee:
        """What is proved of a release."""
        return self.budget.guarantee

    def release(self, records: Records, source: Source) -> record_model.Synthesiser:
        """Return noisy tables and the model of them; each call is a release of its own."""
        record_model.check_records(records, self.schema)
        noises = self.budget.noises
        ones = {
            name: noises["ones"].add(records.counts((self.label, name)), source.child(name))
            for name in self.columns
        }
        exact = self.scores(records, ones)
        scores = noises["scores"].add(exact, source.child("scores"))
        twos = {
            pair: noises["twos"].add(records.counts((self.label, *pair)), source.child(*pair))
            for pair in self.edges(scores)
        }
        tables = {**ones, "scores": scores, **{",".join(pair): twos[pair] for pair in twos}}
        return record_model.Synthesiser(tables, self._model(ones, twos))

    def scores(self, records: Records, ones: Mapping[str, Counts]) -> Counts:
        """Return the L1 distance of each pair's table from what noisy counts foretell.

        What is foretold is rounded to integers and does not depend on the records but through
        ``ones``: so a record that comes or goes changes each score by exactly one.
        """
        forest = self._model(ones, {})
        return np.array([_distance(records, forest, self.label, pair) for pair in self.pairs])

    def edges(self, scores: Counts) -> tuple[Pair, ...]:
        """Return the edges (parent, child) of the forest of the largest noisy scores.

        A table of many cells costs more noise than it tells, so what noise alone would add to
        the distance is taken off; an edge that has nothing left is not taken.
        """
        spread = math.sqrt(2 / math.pi * self.budget.noises["twos"].variance)
        cells = [self._cells(pair) for pair in self.pairs]
        worth = scores - spread * np.array(cells)
        return _rooted(_spanning(self.pairs, worth), self.columns)

    def log_likelihood(self, released: record_model.Synthesiser, records: Records) -> float:
        """Return ln P(tables | records), exactly; the forest follows from the scores."""
        record_model.check_records(records, self.schema)
        noises, tables = self.budget.noises, released.tables
        ones = {name: tables[name] for name in self.columns}
        total = noises["scores"].log_likelihood(tables["scores"], self.scores(records, ones))
        for name, table in ones.items():
            counts = records.counts((self.label, name))
            total += noises["ones"].log_likelihood(table, counts)
        for pair in self.edges(tables["scores"]):
            counts = records.counts((self.label, *pair))
            total += noises["twos"].log_likelihood(tables[",".join(pair)], counts)
        return total

    def _cells(self, pair: Pair) -> int:
        return math.prod(self.schema.column(name).size for name in (self.label, *pair))

    def _model(
        self, ones: Mapping[str, Counts], twos: Mapping[Pair, Counts]
    ) -> record_model.Forest:
        noises = self.budget.noises
        return record_model.fit_forest(
            self.schema,
            self.label,
            {
                name: record_model.NoisyTable(one, noises["ones"].variance)
                for name, one in ones.items()
            },
            {
                pair: record_model.NoisyTable(two, noises["twos"].variance)
                for pair, two in twos.items()
            },
        )


def _distance(records: Records, forest: record_model.Forest, label: str, pair: Pair) -> int:
    one, two = (forest.chances[name] for name in pair)
    expected = forest.totals[:, None, None] * one[:, :, None] * two[:, None, :]
    counts = records.counts((label, *pair))
    return int(np.abs(counts - np.rint(expected).astype(np.int64)).sum())


def _spanning(pairs: tuple[Pair, ...], worth: NDArray[np.float64]) -> list[Pair]:
    """Return the forest of the largest worth, by Kruskal's rule; no edge that is worth nothing."""
    group = {name: name for pair in pairs for name in pair}
    chosen = []
    for place in np.argsort(-worth, kind="stable"):
        one, two = pairs[place]
        if worth[place] <= 0 or group[one] == group[two]:
            continue
        chosen.append((one, two))
        old, new = group[two], group[one]
        group = {name: new if root == old else root for name, root in group.items()}
    return chosen


def _rooted(edges: list[Pair], columns: tuple[str, ...]) -> tuple[Pair, ...]:
    """Return the edges as (parent, child), each tree hanging from its first column."""
    seen: set[str] = set()
    rooted: list[Pair] = []
    for root in columns:
        if root in seen:
            continue
        seen.add(root)
        waiting = [root]
        while waiting:
            parent = waiting.pop()
            for one, two in edges:
                child = two if one == parent else one if two == parent else parent
                if child not in seen:
                    seen.add(child)
                    rooted.append((parent, child))
                    waiting.append(child)
    return tuple(rooted)
