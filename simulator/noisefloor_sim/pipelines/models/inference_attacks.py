"""Attacks on the last release itself: a missing value, and nearness to synthetic records.

Informed reconstruction: all records but one are known; which is the missing one?

It is for releases whose law is known once the data are: noisy parameters of learning-first. The
adversary trains with each candidate, as the data holder would, and compares likelihoods.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from noisefloor.adversary import releases
from noisefloor.adversary.audit import AttackOutcome, Guess, draw_truth, score
from noisefloor.publication import PublishedModel
from noisefloor.publication.methods import LearningFirstPlan, ModelPlan
from noisefloor.publication.networks import DenseNetwork, train
from noisefloor.randomness import SeededSource, new_run
from noisefloor.tables import Records
from noisefloor_sim.pipelines.api import Metric
from noisefloor_sim.pipelines.models.evaluation import table_of
from noisefloor_sim.pipelines.models.record_assignment import UserRecordAssignment
from noisefloor_sim.pipelines.releases import Release
from noisefloor_sim.pipelines.scoring import attack_metrics

CANDIDATES = 4
_GAMES = 200


def attack_missing_record(plan: ModelPlan, pool: Records, source: SeededSource) -> list[Metric]:
    """Name the record that is missing from a known half of a pool.

    Sees:      the noisy parameters.
    Knows:     all records but one, the candidates for it, and the random numbers of the training.
    Guesses:   the candidate under whose network the release is most likely.
    Reference: Balle, Cherubin and Hayes 2022, arXiv 2201.04845 (the adversary).
    """
    if not isinstance(plan, LearningFirstPlan):
        return []
    known = np.arange(pool.count // 2)
    centres: list[DenseNetwork] = []
    for place in range(CANDIDATES):
        rows = np.append(known[1:], pool.count - 1 - place)
        examples = plan.spec.encoding.examples(pool[rows])
        # The same random numbers for each candidate: the adversary is granted them, and replays.
        with new_run():
            centres.append(train(examples, plan.training, source.child("training")))
    outcome = _played(plan, centres, source)
    shares = np.full(CANDIDATES, 1 / CANDIDATES)
    claimed = releases.candidate_bound(plan.spec.cost, shares)
    return [
        *attack_metrics("missing_record", outcome),
        Metric("attack.missing_record.claimed_bound", claimed, n=outcome.n),
    ]


def _played(
    plan: LearningFirstPlan, centres: Sequence[DenseNetwork], source: SeededSource
) -> AttackOutcome:
    """Release networks of candidates drawn at random, and name each by its likelihood."""
    shares = np.full(len(centres), 1 / len(centres))
    truth = draw_truth(shares, _GAMES, source.child("truth"))
    released = np.stack(
        [
            plan.learning.release(centres[place], source.child("noise", game)).vector
            for game, place in enumerate(truth.tolist())
        ]
    )
    likely = [plan.learning.log_likelihood(released, one.vector) for one in centres]
    guessed = np.argmax(likely, axis=0)
    return score(
        guessed,
        truth,
        baseline=float(shares[0]),
        bound=releases.candidate_bound(plan.proved, shares) if plan.proved.is_finite else 1.0,
        is_covered=plan.proved.is_finite,
    )


FEWEST = 60
"""People who are left out, a third of whom the adversary knows beforehand."""

_MOST = 2_000
"""People on either side."""


def attack_missing_value(
    release: Release[ModelPlan], model: PublishedModel, assignment: UserRecordAssignment
) -> list[Metric]:
    """Guess the first column of people whose other columns and label are known.

    How much more often it is right of members than of people who were left out is what the
    release gives away; the rest is what a model is for.
    """
    others = np.flatnonzero(assignment.is_test)
    if len(others) < FEWEST:
        return []
    known, rest = others[: len(others) // 3], others[len(others) // 3 :][:_MOST]
    encoding = model.encoding
    members, targets, sample = (
        _rows(assignment, model, some)
        for some in (np.flatnonzero(release.owners)[:_MOST], rest, known)
    )

    def confidence(rows: NDArray[np.int64]) -> NDArray[np.float64]:
        logits = model.logits(encoding.features(rows[:, :-1])).astype(np.float64)
        logits -= np.logaddexp.reduce(logits, axis=1, keepdims=True)
        return np.asarray(np.exp(logits[np.arange(len(rows)), rows[:, -1]]))

    def guesser(rows: NDArray[np.int64]) -> Guess:
        prior = releases.population_prior(sample, rows, 0, encoding.sizes[0])
        return releases.guess_by_confidence(confidence, rows, 0, prior)

    found = releases.attack_attribute(guesser, members, targets, 0, release.plan.proved)
    n = found.members.n + found.others.n
    return [
        Metric("attack.missing_value.advantage", found.advantage, *found.interval, n),
        Metric("attack.missing_value.advantage_bound", found.bound, n=n),
        Metric("attack.missing_value.members", found.members.success, n=found.members.n),
        Metric("attack.missing_value.others", found.others.success, n=found.others.n),
    ]


def attack_synthetic(
    release: Release[ModelPlan], assignment: UserRecordAssignment
) -> list[Metric]:
    """Tell members by how near the nearest synthetic record is; beside it, copied records."""
    encoding, table, labels = table_of(release.content)
    rows = np.column_stack([table, labels])
    sides = []
    for some in (release.owners, assignment.is_test):
        records = assignment.records[np.flatnonzero(some)[:_MOST]]
        sides.append(np.column_stack([encoding.codes(records), records.codes[encoding.label]]))
    found = releases.attack_nearest(sides[0], sides[1], rows[:_MOST], release.plan.proved)
    copied = releases.attack_nearest(sides[0], sides[1], sides[0], release.plan.proved)
    n = len(sides[0]) + len(sides[1])
    return [
        Metric("attack.nearest.auc", found.area, *found.interval, n),
        Metric("attack.nearest.auc_bound", found.bound, n=n),
        Metric("attack.nearest.distance_members", found.distance, n=len(sides[0])),
        Metric("attack.nearest.distance_others", found.other_distance, n=len(sides[1])),
        Metric("attack.planted.nearest_auc", copied.area, *copied.interval, n),
    ]


def _rows(
    assignment: UserRecordAssignment, model: PublishedModel, users: NDArray[np.int64]
) -> releases.Codes:
    """Return the places of some users' values, the label last."""
    records = assignment.records[users]
    encoding = model.encoding
    return np.column_stack([encoding.codes(records), records.codes[encoding.label]])
