"""Guarantees, claims and verdicts as plain values."""

import dataclasses
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisefloor.errors import BadParameter, IncompatibleGuarantees, NoisefloorError
from noisefloor.privacy import Claim, Guarantee, LowerBound, Neighbours, TrustModel, number_or_inf

EPSILONS = st.floats(0, 50)


def guarantee(epsilon: float, delta: float = 0.0) -> Guarantee:
    reason = "no proof" if math.isinf(epsilon) else ""
    return Guarantee(epsilon, Neighbours.USER, delta, reason=reason)


def reached(epsilon: float | None) -> LowerBound | None:
    return None if epsilon is None else LowerBound(epsilon, 0.99, 1000, 6.0)


@pytest.mark.parametrize("epsilon", [-1.0, -1e-300, -math.inf, math.nan])
def test_an_epsilon_that_means_nothing_is_refused(epsilon: float) -> None:
    with pytest.raises(BadParameter, match=r"epsilon=.* >= 0"):
        Guarantee(epsilon, Neighbours.BIT, reason="any")


@pytest.mark.parametrize("delta", [-1e-12, 1.0000001, math.nan, math.inf])
def test_a_delta_that_is_no_probability_is_refused(delta: float) -> None:
    with pytest.raises(BadParameter, match=r"delta=.* in \[0, 1\]"):
        Guarantee(1.0, Neighbours.BIT, delta)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (0.0, 1.0), (1e300, 1e-300)])
def test_the_edges_of_the_ranges_are_allowed(epsilon: float, delta: float) -> None:
    made = Guarantee(epsilon, Neighbours.BIT, delta)
    assert (made.epsilon, made.delta) == (epsilon, delta)


def test_an_infinite_epsilon_has_to_say_why() -> None:
    with pytest.raises(BadParameter, match="to say why there is no guarantee"):
        Guarantee(math.inf, Neighbours.BIT)


def test_a_guarantee_is_local_and_pure_unless_it_says_otherwise() -> None:
    made = Guarantee(1.0, Neighbours.BIT)
    assert (made.delta, made.model, made.reason) == (0.0, TrustModel.LOCAL, "")
    assert made.is_finite


def test_no_guarantee_is_a_value_with_a_reason() -> None:
    made = Guarantee.none("seed reused", Neighbours.ITEM, TrustModel.CENTRAL)
    assert made == Guarantee(
        math.inf, Neighbours.ITEM, model=TrustModel.CENTRAL, reason="seed reused", delta=0.0
    )
    assert not made.is_finite


def test_no_guarantee_without_a_reason_is_refused() -> None:
    with pytest.raises(BadParameter, match="reason"):
        Guarantee.none("", Neighbours.ITEM)


def test_guarantees_under_unlike_relations_or_models_are_unequal() -> None:
    made = Guarantee(1.0, Neighbours.BIT)
    assert made != dataclasses.replace(made, neighbours=Neighbours.USER)
    assert made != dataclasses.replace(made, model=TrustModel.CENTRAL)


def test_values_cannot_be_changed() -> None:
    made = guarantee(1.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.epsilon = 0.1  # type: ignore[misc]  # the point of the test


@pytest.mark.parametrize(
    ("claimed", "proved", "audited", "verdict"),
    [
        (1.0, 1.0, None, "holds"),
        (1.0, 0.5, None, "holds"),
        (1.0, 1.0, 0.9, "holds"),
        (1.0, 1.0, 1.0, "holds"),
        (1.0, 0.5, 0.0, "holds"),
        (math.inf, math.inf, None, "unprotected"),
        (math.inf, math.inf, 5.0, "unprotected"),
        (math.inf, 1.0, 0.5, "unprotected"),
        (1.0, 1.0000001, None, "overclaimed"),
        (1.0, 2.0, 1.5, "overclaimed"),
        (1.0, math.inf, None, "overclaimed"),
        (1.0, math.inf, 5.0, "overclaimed"),
        (1.0, 1.0, 1.0000001, "broken"),
        (2.0, 1.0, 1.5, "broken"),
        (1.0, 2.0, 2.5, "broken"),
        (math.inf, 1.0, 1.5, "broken"),
    ],
)
def test_a_verdict_follows_from_the_three_numbers(
    claimed: float, proved: float, audited: float | None, verdict: str
) -> None:
    claim = Claim(guarantee(claimed), guarantee(proved), reached(audited))
    assert claim.verdict == verdict


@given(claimed=EPSILONS, proved=EPSILONS, audited=EPSILONS)
def test_a_claim_holds_only_if_audited_proved_and_claimed_stand_in_order(
    claimed: float, proved: float, audited: float
) -> None:
    claim = Claim(guarantee(claimed), guarantee(proved), reached(audited))
    assert (claim.verdict == "holds") == (audited <= proved <= claimed)
    assert (claim.verdict == "broken") == (audited > proved)


@pytest.mark.parametrize(
    ("claimed", "proved", "audited", "verdict"),
    [
        (1.0, 1.0, None, None),
        (1.0, 1.0, 0.0, "undecided"),  # nothing was found
        (1.0, 1.0, 0.5, "consistent"),
        (8.0, 6.0, 5.0, "undecided"),  # the most that the trials can show is 6
        (8.0, 5.999, 5.0, "consistent"),
        (math.inf, math.inf, 6.0, "undecided"),
        (1.0, math.inf, 0.5, "consistent"),
        (1.0, math.inf, 5.0, "overclaimed"),
        (1.0, 0.5, 0.75, "broken"),
    ],
)
def test_an_audit_is_consistent_only_if_it_could_have_said_otherwise(
    claimed: float, proved: float, audited: float | None, verdict: str | None
) -> None:
    claim = Claim(guarantee(claimed), guarantee(proved), reached(audited))
    assert claim.audit_verdict == verdict


def test_a_bound_reads_as_what_was_found_or_could_have_been() -> None:
    assert LowerBound(0.999, 0.99, 1000, 6.0).reading == "epsilon is at least 0.99"
    nothing = LowerBound(0.0, 0.99, 12_000, 6.001).reading
    assert nothing == "nothing found; 12,000 trials could have shown epsilon 6.01 at most"
    with pytest.raises(BadParameter, match="confidence"):
        LowerBound(1.0, 1.5, 1000, 6.0)


def test_a_proof_with_more_delta_than_was_claimed_does_not_hold() -> None:
    assert Claim(guarantee(1.0, 0.0), guarantee(1.0, 0.5)).verdict == "overclaimed"


def test_an_audit_that_gave_no_number_does_not_confirm_a_claim() -> None:
    with pytest.raises(BadParameter):
        _ = Claim(guarantee(1.0), guarantee(1.0), reached(math.nan)).verdict


def test_a_claim_and_a_proof_of_unlike_neighbours_cannot_be_set_side_by_side() -> None:
    with pytest.raises(IncompatibleGuarantees, match=r"user neighbours.*move-one neighbours"):
        Claim(guarantee(1.0), Guarantee(1.0, Neighbours.MOVE_ONE))


def test_unlike_neighbours_is_an_error_of_this_package_and_no_value_error() -> None:
    assert issubclass(IncompatibleGuarantees, NoisefloorError)
    assert not issubclass(IncompatibleGuarantees, ValueError)


@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_a_claim_may_be_made_under_every_relation(neighbours: Neighbours) -> None:
    same = Guarantee(1.0, neighbours)
    assert Claim(same, same).verdict == "holds"


def test_infinity_is_written_as_a_word_and_numbers_as_they_are() -> None:
    assert number_or_inf(math.inf) == "inf"
    assert number_or_inf(0.25) == 0.25
    assert json.dumps([number_or_inf(math.inf), number_or_inf(2.0)], allow_nan=False)
