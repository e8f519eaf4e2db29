"""Which of several known records an owner holds, from everything that was reported of it.

The candidates are records, not classes: how a mechanism makes classes of them, and how many, is
its own affair. So one game can be played against mechanisms that differ in that, and at epsilons
for which a rule chooses other classes; the prior and the number of candidates stay.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from noisefloor.accounting import success
from noisefloor.adversary import audit
from noisefloor.adversary.records.channels import (
    Channel,
    RecordResponse,
    record_log_likelihoods,
    sizes_of,
)
from noisefloor.checks import Floats, check_count
from noisefloor.collection.encoding import Codes, JointResponse, check_codes, response_over
from noisefloor.errors import BadParameter
from noisefloor.randomness import Source

_MOST_CELLS = 1 << 24
"""Reports times candidates that a closed form sums over, at most."""

_MOST_DRAWS = 1 << 12
"""Draws of attributes that a closed form sums over, at most."""


@dataclass(frozen=True, slots=True, eq=False)
class RecordGame:
    """Owners who hold one of several known records, each as likely.

    Attributes:
        mechanism: What answers.
        rows: The classes of each candidate, the label last where there is one. Candidates whose
            classes are the same stay candidates: no report tells them apart.
        reports: How often an owner reports, each time with fresh draws.
        groups: Of the candidates, numbered from 0: if given, the group is to be guessed.
    """

    mechanism: RecordResponse
    rows: Codes
    reports: int = 1
    groups: Sequence[int] | None = None

    def __post_init__(self) -> None:
        check_count(self.reports, "reports")
        check_count(len(self.rows), "rows", least=2)
        check_codes(self.rows, sizes_of(self.mechanism))

    @property
    def shares(self) -> Floats:
        """The prior of what is guessed: of records, or of groups."""
        even = audit.check_prior(len(self.rows), None)
        return even if self.groups is None else audit.grouped(even[None], self.groups)[0]

    @property
    def closed_form(self) -> float | None:
        """The exact success of Bayes' guess, where reports can be summed over."""
        if isinstance(self.mechanism, JointResponse) and self.reports == 1:
            return self._joint_success(self.mechanism)
        try:
            outputs = self.mechanism.outputs()
        except BadParameter:
            return None
        if len(outputs) * len(self.rows) > _MOST_CELLS:
            return None
        table = np.exp(record_log_likelihoods(self.mechanism, outputs, self.rows)).T
        return audit.exact_success(table, self.reports, None, self.groups)

    def play(self, games: int, source: Source) -> audit.AttackOutcome:
        """Let the adversary guess for n owners, and score it.

        Sees:      all reports of an owner.
        Knows:     the mechanism, and the candidates: so all correlations of their values.
        Guesses:   the record, or its group.
        Reference: Bayes; ``closed_form`` is the sum over reports y of max_x pi_x P(y | x).
        """
        truth = audit.draw_truth(audit.check_prior(len(self.rows), None), games, source)
        logs = np.zeros((games, len(self.rows)))
        for number in range(self.reports):
            drawn = self.mechanism.randomise(self.rows[truth], source.child("report", number))
            logs += record_log_likelihoods(self.mechanism, drawn, self.rows)
        chances = np.exp(logs - logs.max(axis=1, keepdims=True))
        if self.groups is not None:
            chances = audit.grouped(chances, self.groups)
            truth = np.asarray(self.groups, dtype=np.intp)[truth]
        best = float(self.shares.max())
        return audit.score(
            audit.most_probable(chances).candidate,
            truth,
            baseline=best,
            bound=float(success(self.reports * self.mechanism.guarantee().epsilon, 1 / best)),
            closed_form=self.closed_form,
            candidates=len(self.shares),
        )

    def _joint_success(self, mechanism: JointResponse) -> float | None:
        """Return the mean over the draws of attributes, each as likely.

        Formula: given the draw, the sum over symbols y of max_g (lie |g| + (keep - lie) n_gy) / k,
        where n_gy of the k candidates are of group g and have the symbol y.
        """
        attributes = len(mechanism.sizes)
        if math.comb(attributes, mechanism.chosen) > _MOST_DRAWS:
            return None
        groups = np.arange(len(self.rows)) if self.groups is None else np.asarray(self.groups)
        members = np.bincount(groups)
        found = []
        for drawn in combinations(range(attributes), mechanism.chosen):
            drawn_values = self.rows[:, [*drawn, *range(attributes, self.rows.shape[1])]]
            symbol = np.unique(drawn_values, axis=0, return_inverse=True)[1].reshape(-1)
            space = math.prod(mechanism.sizes[one] for one in drawn) * mechanism.labels
            channel = Channel.of(response_over(space, mechanism.epsilon))
            counts = np.zeros((int(symbol.max()) + 1, len(members)))
            np.add.at(counts, (symbol, groups), channel.keep - channel.lie)
            best = (counts + channel.lie * members).max(axis=1).sum()
            found.append(best + (space - len(counts)) * channel.lie * members.max())
        return float(np.mean(found)) / len(self.rows)
