"""Which of several known records: closed forms as brute sums say, met by games; louder twins."""

from collections.abc import Callable

import numpy as np
import pytest

from attack_outcomes import LOUDER, assert_caught, assert_met
from noisefloor.adversary.audit.observations import likelihood_table, success_of
from noisefloor.adversary.records.candidates import RecordGame
from noisefloor.collection.encoding.joint_response import JointResponse
from noisefloor.collection.encoding.unified_response import UnifiedResponse
from noisefloor.errors import BadParameter, OutOfDomain
from noisefloor.randomness import SeededSource

SIZES, GAMES = (4, 3, 2), 20_000
# Two of the six have the same classes: nothing tells them apart.
ROWS = np.array(
    [[0, 0, 0], [3, 2, 1], [0, 2, 1], [1, 1, 0], [1, 1, 0], [2, 0, 1]], dtype=np.uint16
)
LABELS = ROWS[:, 2].tolist()
GROUPS = {"record": None, "label": LABELS, "uneven": [0, 1, 2, 1, 1, 1]}

MECHANISMS: dict[str, Callable[[float], UnifiedResponse | JointResponse]] = {
    "unified": lambda e: UnifiedResponse(SIZES, e),
    "joint-1": lambda e: JointResponse(SIZES[:2], 1, e),
    "joint-2": lambda e: JointResponse(SIZES[:2], 2, e),
    "query": lambda e: JointResponse(SIZES, 2, e, labelled=False),
}


@pytest.mark.parametrize("secret", GROUPS)
@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("epsilon", [0.5, 4.0, 40.0])
def test_the_closed_form_is_the_sum_over_all_reports(
    name: str, epsilon: float, secret: str
) -> None:
    mechanism, groups = MECHANISMS[name](epsilon), GROUPS[secret]
    brute = success_of(likelihood_table(mechanism, ROWS), None, groups)
    game = RecordGame(mechanism, ROWS, groups=groups)
    assert game.closed_form == pytest.approx(brute, rel=1e-12)


@pytest.mark.statistical
@pytest.mark.parametrize("secret", GROUPS)
@pytest.mark.parametrize(("name", "reports"), [("unified", 1), ("unified", 3), ("joint-1", 1)])
def test_a_candidate_is_named_as_often_as_the_closed_form_says(
    name: str, reports: int, secret: str, seed: int
) -> None:
    # n = 20,000; false alarm FALSE_ALARM. The twin: epsilon 1.25 times too large, and 1 more.
    source, groups = SeededSource(seed, "candidate", name, reports, secret), GROUPS[secret]
    game = RecordGame(MECHANISMS[name](3.0), ROWS, reports, groups)
    outcome = game.play(GAMES, source.child(1))
    assert_met(outcome)
    assert outcome.closed_form is not None
    assert outcome.baseline == pytest.approx(
        {"record": 1 / 6, "label": 0.5, "uneven": 4 / 6}[secret]
    )
    assert outcome.candidates == {"record": 6, "label": 2, "uneven": 3}[secret]
    twin = RecordGame(MECHANISMS[name](3.0 * LOUDER + 1), ROWS, reports, groups)
    assert_caught(twin.play(GAMES, source.child(2)), outcome.closed_form)


def test_prior_and_number_of_candidates_do_not_depend_on_classes_or_epsilon() -> None:
    fine = RecordGame(UnifiedResponse(SIZES, 1.0), ROWS)
    coarse = RecordGame(UnifiedResponse((2, 2), 8.0), np.minimum(ROWS[:, 1:], 1))
    for game in (fine, coarse):
        outcome = game.play(1_000, SeededSource(1, "classes", len(game.rows[0])))
        assert (outcome.baseline, outcome.candidates) == (1 / 6, 6)


def test_what_no_report_tells_apart_is_named_by_luck() -> None:
    # Five different rows of six candidates, and no noise to speak of.
    assert RecordGame(UnifiedResponse(SIZES, 90.0), ROWS).closed_form == pytest.approx(5 / 6)


def test_too_long_a_sum_is_not_made_and_bad_candidates_are_refused() -> None:
    wide = RecordGame(UnifiedResponse((16,) * 5, 5.0), np.zeros((2, 5), dtype=np.uint16))
    assert wide.closed_form is None
    with pytest.raises(OutOfDomain):
        RecordGame(UnifiedResponse(SIZES, 1.0), ROWS + 2)
    with pytest.raises(BadParameter, match="rows"):
        RecordGame(UnifiedResponse(SIZES, 1.0), ROWS[:1])
    with pytest.raises(BadParameter, match="reports"):
        RecordGame(UnifiedResponse(SIZES, 1.0), ROWS, 0)
