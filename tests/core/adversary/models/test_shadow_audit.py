"""The audit of shadow runs: silent on a null, loud on a planted leak, strict about its draws."""

import json
import math

import numpy as np
import pytest
from numpy.typing import NDArray

from noisefloor.adversary.models.shadow_attacks import (
    MembershipCurve,
    attack_all,
    audit_memberships,
    loss_threshold,
    membership_curve,
)
from noisefloor.adversary.models.shadow_runs import ShadowRuns, fair_members, train_shadows
from noisefloor.errors import BadParameter
from noisefloor.privacy import LowerBound
from noisefloor.randomness import SeededSource, Source

ALPHA = 1e-6
"""Each bound below is wrong with this probability."""

Floats = NDArray[np.float64]

MODELS, RECORDS = 40, 1000


class Response:
    """A training procedure that answers for each record by randomised response.

    The log-odds tell the answer: epsilon is that of adding or removing a record, exactly.
    """

    def __init__(self, epsilon: float) -> None:
        self.keep = int(2**64 / (1 + math.exp(-epsilon)))

    def __call__(self, members: NDArray[np.bool_], source: Source) -> NDArray[np.float32]:
        kept = source.child("kept").bernoulli(self.keep, members.size).reshape(members.shape)
        noise = source.child("noise").normals(members.size).reshape(members.shape) / 100
        scores = np.where(kept, members, ~members) + noise
        return np.stack([scores, -scores], axis=-1).astype(np.float32)


def runs_of(epsilon: float, models: int = MODELS, records: int = RECORDS) -> ShadowRuns:
    source = SeededSource(1, "audit", f"{epsilon:g}", models)
    return train_shadows(Response(epsilon), np.zeros(records, dtype=np.int64), models, source)


def audit(epsilon: float) -> LowerBound:
    return audit_memberships(runs_of(epsilon), alpha=ALPHA, attack=loss_threshold)


@pytest.mark.statistical
def test_the_audited_epsilon_is_below_the_true_one_and_near_it() -> None:
    for epsilon in (0.5, 1.0, 3.0):
        found = audit(epsilon)
        assert 0.7 * epsilon < found.epsilon < epsilon


@pytest.mark.statistical
def test_the_null_is_not_accused() -> None:
    assert audit(1e-9).epsilon == 0


@pytest.mark.statistical
def test_a_procedure_that_memorises_is_found() -> None:
    runs = runs_of(30.0)
    assert audit_memberships(runs, alpha=ALPHA).epsilon > 5
    assert audit_memberships(runs, alpha=ALPHA, delta=1e-9).epsilon > 5
    assert attack_all(runs)["lira"].roc.auc > 0.999


def test_a_delta_that_the_canaries_use_up_proves_nothing() -> None:
    assert audit_memberships(runs_of(30.0), alpha=ALPHA, delta=1e-3).epsilon == 0


def test_memberships_that_are_not_fair_draws_are_refused() -> None:
    runs = runs_of(1.0)
    unfair = ShadowRuns(runs.members, runs.log_odds)
    with pytest.raises(BadParameter, match="fair coin"):
        audit_memberships(unfair, alpha=ALPHA)


def test_the_error_of_an_area_is_that_of_a_mean_over_models() -> None:
    roc = membership_curve(np.eye(2), np.eye(2, dtype=np.bool_)).roc
    found = MembershipCurve(roc, np.array([0.5, 0.6, 0.9]))
    # Deviations from 2/3 have squares that sum to 0.26/3; over n - 1 = 2, and over n = 3.
    assert found.auc_error == pytest.approx(math.sqrt(0.26 / 3 / 2 / 3), rel=1e-12)


@pytest.mark.statistical
def test_targets_that_were_shadows_would_be_wronged() -> None:
    """A null attacked by a score that knows the shadows' draws: wrong with probability 1e-6."""
    runs = runs_of(1e-9, models=20, records=500)

    def remembering(shadows: ShadowRuns, targets: Floats | None) -> Floats:
        assert targets is not None
        seen = (odds.tobytes() for odds in shadows.log_odds)
        known = dict(zip(seen, shadows.members, strict=True))
        scores = [known.get(odds.tobytes(), np.zeros(500)) for odds in targets]
        return np.array(scores, dtype=np.float64)

    assert audit_memberships(runs, alpha=ALPHA, attack=remembering).epsilon == 0
    assert remembering(runs, runs.log_odds).any()  # what it could do to a model that it knows


def test_figures_are_one_json_object_and_tell_no_rate_that_is_not_resolved() -> None:
    members = fair_members(4, 400, SeededSource(2, "small"))
    few = membership_curve(members.astype(np.float64), members)
    written = json.loads(json.dumps(few.as_json(), allow_nan=False))
    assert written["tpr_at_0.001"] is None
    assert written["auc"] == 1.0
    assert written["auc_error"] == 0.0
    with pytest.raises(BadParameter, match="scores"):
        membership_curve(np.zeros((4, 3)), members)
