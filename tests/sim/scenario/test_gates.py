"""Gates: what can be asked, what is refused, and what meets them."""

import math

import pytest

from noisefloor.privacy import Claim, Guarantee, LowerBound, Neighbours
from noisefloor_sim.scenario import (
    ClaimGate,
    MetricGate,
    TrendGate,
    applies,
    parse_gate,
    resolved,
)
from noisefloor_sim.scenario.gates import Filter
from sim.scenario.toy import MINIMAL, complaint, scenario


def claim(claimed: float, proved: float, audited: float | None = None) -> Claim:
    """Make a claim at user level."""
    reached = None if audited is None else LowerBound(audited, 0.95, 1_000, 5.0)
    said, shown = (
        Guarantee(epsilon, Neighbours.USER, reason="any") for epsilon in (claimed, proved)
    )
    return Claim(said, shown, reached)


def test_a_metric_gate_has_a_name_a_comparison_and_a_number() -> None:
    assert parse_gate("clicks.rmse<5e-2") == MetricGate("clicks.rmse", "<", 0.05)


def test_a_gate_can_be_kept_to_some_points() -> None:
    gate = parse_gate("a.b >= -1 where variant == corrected and pipelines.toy.epsilon != 0.5")
    assert gate.filters == (
        Filter("variant", "==", "corrected"),
        Filter("pipelines.toy.epsilon", "!=", 0.5),
    )


def test_a_claim_gate_asks_for_a_verdict_or_an_epsilon() -> None:
    assert parse_gate("claims.* holds") == ClaimGate(("*",), "verdict", "==", "holds")
    assert parse_gate("claims.toy.rr.user.audited <= proved") == ClaimGate(
        ("toy", "rr", "user"), "audited", "<=", "proved"
    )
    assert parse_gate("claims.*.proved < 3") == ClaimGate(("*",), "proved", "<", 3)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "Expected a gate such as 'clicks.rmse < 0.05', got ''."),
        ("rmse < 1", "Expected a gate such as 'clicks.rmse < 0.05', got 'rmse < 1'."),
        ("a.b < 1 < 2", "Expected a gate such as 'clicks.rmse < 0.05', got 'a.b < 1 < 2'."),
        ("a.b = 1", "Expected names, numbers and comparisons, got 'a.b = 1'."),
        ("a.b < (1)", "Expected names, numbers and comparisons, got 'a.b < (1)'."),
        ("__import__('os')", "Expected names, numbers and comparisons, got \"__import__('os')\"."),
        ("a.b < c", "Expected a number to compare with, got 'c'."),
        ("a.b < true", "Expected a number to compare with, got 'true'."),
        ("a.b < .nan", "Expected a finite number, got '.nan'."),
        ("a.b < 012", "Expected a number without leading zeros, or a text in quotes, got '012'."),
        ("a.b < 1 where", "Expected a condition such as 'variant == corrected', got ''."),
        ("a.b < 1 where x", "Expected a condition such as 'variant == corrected', got 'x'."),
        ("a.b < 1 where x == 1 where y == 1", "Expected 'where' once."),
        ("a.b < 1 where x < y", "Expected a number after <, got 'y'."),
        ("a.b < 1 where x..y == 1", "Expected names with a dot between them, such as"),
        (
            "claims.* is",
            "Expected a gate such as 'claims.* holds, unprotected, overclaimed, ",
        ),
        ("claims.*.*.*.* holds", "Expected a gate such as 'claims.* holds, unprotected, overc"),
        ("claims.toy < 1", "Expected 'claims.', a pipeline, and claimed, proved or audited, got"),
        ("claims.proved < 1", "Expected 'claims.', a pipeline, and claimed, proved or audited, "),
        ("claims.*.proved < holds", "Expected a number to compare with, got 'holds'."),
        ("a.b rises", "Expected a gate such as 'clicks.attack.*.success rises over budget', got"),
        ("a.b rises over", "Expected a gate such as 'clicks.attack.*.success rises over budg"),
        ("* rises over seed", "Expected a gate such as 'clicks.attack.*.success rises over budg"),
        ("a.b rises over x..y", "Expected names with a dot between them, such as"),
        ("a.b < 1" + " " * 300, "Expected a gate of at most 300 characters."),
    ],
)
def test_what_is_not_of_the_grammar_is_refused(text: str, rule: str) -> None:
    with pytest.raises(ValueError, match="Expected") as caught:
        parse_gate(text)
    assert str(caught.value).startswith(rule)


@pytest.mark.parametrize(
    ("comparison", "below", "equal", "above"),
    [
        ("<", True, False, False),
        ("<=", True, True, False),
        (">", False, False, True),
        (">=", False, True, True),
        ("==", False, True, False),
        ("!=", True, False, True),
    ],
)
def test_comparisons_compare(comparison: str, below: bool, equal: bool, above: bool) -> None:
    gate = parse_gate(f"a.b {comparison} 2")
    assert isinstance(gate, MetricGate)
    assert [gate.is_met(value) for value in (1.0, 2.0, 3.0)] == [below, equal, above]
    assert not gate.is_met(math.nan)


@pytest.mark.parametrize(
    ("text", "given", "is_met"),
    [
        ("claims.* holds", claim(1, 1, 0.5), True),
        ("claims.* holds", claim(1, 2), False),
        ("claims.* holds", claim(math.inf, math.inf), False),
        ("claims.* unprotected", claim(math.inf, math.inf, 4), True),
        ("claims.* unprotected", claim(1, math.inf), False),
        ("claims.* overclaimed", claim(1, 2), True),
        ("claims.* broken", claim(1, 2, 3), True),
        ("claims.*.audited <= proved", claim(1, 2, 1.5), True),
        ("claims.*.audited <= proved", claim(1, 2, 2.5), False),
        ("claims.*.audited <= 9", claim(1, 2), False),
        ("claims.*.audited != 9", claim(1, 2), False),
        ("claims.*.claimed == 1", claim(1, 2), True),
        ("claims.*.proved > claimed", claim(1, 2), True),
    ],
)
def test_claims_meet_gates_and_what_was_not_audited_meets_none(
    text: str, given: Claim, is_met: bool
) -> None:
    gate = parse_gate(text)
    assert isinstance(gate, ClaimGate)
    assert gate.is_met(given) is is_met


def test_a_selector_selects_by_pipeline_mechanism_and_neighbours() -> None:
    gate = parse_gate("claims.toy.*.user holds")
    assert isinstance(gate, ClaimGate)
    assert gate.selects("toy", "anything", "user")
    assert not gate.selects("toy", "anything", "bit")
    assert not gate.selects("other", "anything", "user")
    assert not gate.selects("toy")


@pytest.mark.parametrize(
    ("condition", "is_meant"),
    [
        ("variant == corrected", True),
        ("variant != corrected", False),
        ("variant == 3", False),
        ("variant != 3", True),
        ("variant < 3", False),
        ("population.users >= 10000", True),
        ("population.users == many", False),
        ("pipelines.toy.epsilon == 1", True),
        ("pipelines.toy.epsilon > 1", False),
        ("threat.linked == true", True),
        ("threat.linked == false", False),
        ("threat.linked == 1", False),
        ("pipelines.toy.spare == 1", False),
        ("variant == corrected and seed == 8", False),
        ("variant == corrected and seed == 7", True),
    ],
)
def test_a_gate_is_meant_for_points_that_meet_its_conditions(
    condition: str, is_meant: bool
) -> None:
    gate = parse_gate(f"toy.rmse < 1 where {condition}")
    assert applies(gate, resolved(scenario())) is is_meant


def test_gates_name_keys_and_pipelines_that_exist() -> None:
    assert complaint(MINIMAL, "gates:", "- claims.* holds", "- claims.tooy holds") == (
        "s.yaml:8: gates.1: Unknown pipeline 'tooy'. Did you mean 'toy'? Allowed: toy, world."
    )
    said = complaint(MINIMAL, "gates: [toy.rmse < 1 where epsilon == 1]")
    assert said.startswith(
        "s.yaml:6: gates.0: Unknown key 'epsilon'. Did you mean 'pipelines.toy.epsilon'? Allowed: "
    )


def test_the_text_of_a_gate_is_kept_with_single_spaces() -> None:
    assert scenario(MINIMAL, "gates: ['toy.rmse<1   where seed==7']").gates == (
        "toy.rmse < 1 where seed == 7",
    )


def test_a_trend_runs_along_points_that_differ_in_its_key_alone() -> None:
    gate = parse_gate("toy.* rises over pipelines.toy.epsilon where variant == paper")
    assert gate == TrendGate("toy.*", "pipelines.toy.epsilon", (Filter("variant", "==", "paper"),))
    assert isinstance(gate, TrendGate)
    assert gate.selects("toy.rmse")
    assert not gate.selects("other.rmse")
    settings = {"a": (2.0, "paper", 7), "b": (1.0, "paper", 7), "c": (1.0, "paper", 8)}
    settings |= {"d": (2.0, "corrected", 7), "e": (1.0, "corrected", 7)}
    data = {
        name: {"pipelines": {"toy": {"epsilon": epsilon}}, "variant": variant, "seed": seed}
        for name, (epsilon, variant, seed) in settings.items()
    }
    assert gate.curves(data) == [["b", "a"]]
    assert TrendGate("toy.rmse", "variant").curves(data) == []  # words have no order


def test_a_trend_names_a_metric_and_a_key_that_exist() -> None:
    said = complaint(MINIMAL, "gates: [tooy.* rises over pipelines.toy.epsilon]")
    assert said.startswith("s.yaml:6: gates.0: Unknown metric 'tooy.*'.")
    said = complaint(MINIMAL, "gates: [toy.rmse rises over epsilon]")
    assert said.startswith("s.yaml:6: gates.0: Unknown key 'epsilon'. Did you mean 'pipelines.toy")
