"""Informed reconstruction: all records but one are known; which is the missing one?

It is for releases whose law is known once the data are: noisy parameters of learning-first. The
adversary trains with each candidate, as the data holder would, and compares likelihoods.
"""

from collections.abc import Sequence

import numpy as np

from noisefloor.adversary.outcome import Outcome, draw_truth, score
from noisefloor.adversary.releases.bounds import candidate_bound
from noisefloor.publication.model_methods import ModelPlan
from noisefloor.publication.model_methods.noisy_networks import LearningFirstPlan
from noisefloor.publication.networks import Network, train
from noisefloor.publication.records import Records
from noisefloor.randomness import SeededSource, new_run
from noisefloor_sim.pipelines.attack_metrics import attack_metrics
from noisefloor_sim.pipelines.base import Metric

CANDIDATES = 4
_GAMES = 200


def attack_missing_record(plan: ModelPlan, pool: Records, source: SeededSource) -> list[Metric]:
    """Name the record that is missing from a known half of a pool.

    Sees:      the noisy parameters.
    Knows:     all records but one, the candidates for it, and the coins of the training.
    Guesses:   the candidate under whose network the release is most likely.
    Reference: Balle, Cherubin and Hayes 2022, arXiv 2201.04845 (the adversary).
    """
    if not isinstance(plan, LearningFirstPlan):
        return []
    known = np.arange(pool.count // 2)
    centres: list[Network] = []
    for place in range(CANDIDATES):
        rows = np.append(known[1:], pool.count - 1 - place)
        examples = plan.wanted.encoding.examples(pool[rows])
        # The same coins for each candidate: the adversary is granted them, and replays.
        with new_run():
            centres.append(train(examples, plan.training, source.child("training")))
    outcome = _played(plan, centres, source)
    shares = np.full(CANDIDATES, 1 / CANDIDATES)
    claimed = candidate_bound(plan.wanted.cost, shares)
    return [
        *attack_metrics("missing_record", outcome),
        Metric("attack.missing_record.claimed_bound", claimed, n=outcome.n),
    ]


def _played(plan: LearningFirstPlan, centres: Sequence[Network], source: SeededSource) -> Outcome:
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
        bound=candidate_bound(plan.proved, shares) if plan.proved.is_finite else 1.0,
        is_covered=plan.proved.is_finite,
    )
