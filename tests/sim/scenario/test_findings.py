"""Findings: what can be said under which condition, and what is refused."""

import pytest

from noisefloor.errors import BadScenario
from noisefloor_sim.pipelines import BLOCKS
from noisefloor_sim.scenario import FigureComparison, Finding, MetricGate, loads, scenario_text
from noisefloor_sim.scenario.findings import parse_condition, parse_figure
from noisefloor_sim.scenario.gates import Filter
from sim.scenario.toy import MINIMAL, complaint, scenario

SCENARIO = """
name: found
seed: 3
question: Does this finding name anything?
pipelines: {clicks: {}}
attacks: [clicks.single-bit]
findings:
  - {sentence: '%s', when: '%s'}
"""


def test_a_condition_is_a_gate_or_compares_two_figures() -> None:
    assert parse_condition("a.b < 1 where seed == 7") == MetricGate(
        "a.b", "<", 1, (Filter("seed", "==", 7),)
    )
    shared = parse_condition("a.b < c.d where seed == 7")
    assert isinstance(shared, FigureComparison)
    assert (shared.left.name, shared.comparison, shared.right.name) == ("a.b", "<", "c.d")
    assert shared.left.filters == shared.right.filters == (Filter("seed", "==", 7),)
    own = parse_condition("a.b where x.y == 1 and z == w > claims.p.*.proved where seed != 7")
    assert isinstance(own, FigureComparison)
    assert own.left.filters == (Filter("x.y", "==", 1), Filter("z", "==", "w"))
    assert own.right.name == "claims.p.*.proved"
    assert not own.has_shared_filters
    assert own.is_met(2, 1)
    assert not own.is_met(2, float("nan"))


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("a.b where x == 1 > c.d", "Expected conditions after the second figure too, or only"),
        ("a.b where x == 1", "Expected a gate such as 'clicks.rmse < 0.05', got 'a.b'."),
        ("a.b > claims.p", "Expected 'claims.', a pipeline, and claimed, proved or audited, got"),
        ("a.b > c.d where", "Expected a condition such as 'variant == corrected', got ''."),
        ("a.b > c.d > e.f", "Expected a gate such as 'clicks.rmse < 0.05', got"),
        ("a.b > c.d + 1", "Expected a gate such as 'clicks.rmse < 0.05', got"),
        ("import('os')", "Expected names, numbers and comparisons, got"),
    ],
)
def test_what_is_not_of_the_grammar_is_refused(text: str, rule: str) -> None:
    with pytest.raises(ValueError, match="Expected") as caught:
        parse_condition(text)
    assert str(caught.value).startswith(rule)
    with pytest.raises(ValueError, match="Expected a figure such as"):
        parse_figure("0.5")


def test_a_sentence_has_figures_with_the_conditions_of_when_or_their_own() -> None:
    found = Finding(sentence="It is {a.b}, {c.d where seed == 8}.", when="a.b < 1 where seed == 7")
    parts = found.parts()
    assert parts.texts == ("It is ", ", ", ".")
    assert [one.filters for one in parts.figures] == [
        (Filter("seed", "==", 7),),
        (Filter("seed", "==", 8),),
    ]


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        (
            "{sentence: 'It is {a.b.', when: toy.a < 1}",
            "findings.0.sentence: Expected braces in pairs, around one figure each.",
        ),
        (
            "{sentence: 'It is {}.', when: toy.a < 1}",
            "findings.0.sentence: Expected a figure such as 'clicks.error_rms', got ''.",
        ),
        (
            "{sentence: 'It is {toy.a}.', when: toy.a where seed == 7 > toy.a where seed == 8}",
            "findings.0.sentence: Expected 'where' in each figure of the sentence, since the two "
            "of 'when' have conditions of their own: 'toy.a'.",
        ),
        (
            "{sentence: Yes., when: toy.a}",
            "findings.0.when: Expected a gate such as 'clicks.rmse < 0.05', got 'toy.a'.",
        ),
        ("{sentence: Yes.}", "findings.0.when: Expected this key, found none."),
        ("{sentence: '', when: toy.a < 1}", "findings.0.sentence: Expected at least 1 character,"),
        ("Yes.", "findings.0: Expected a mapping of keys, got 'Yes.'."),
        (
            "{sentence: Yes., when: toy.a < 1, if: x}",
            "findings.0.if: Unknown key 'if'. Allowed: sentence, when.",
        ),
        (
            "{sentence: 'It is {toy.a where epsilon == 1}.', when: toy.a < 1}",
            "findings.0.sentence: Unknown key 'epsilon'. Did you mean 'pipelines.toy.epsilon'?",
        ),
        (
            "{sentence: Yes., when: claims.tooy.proved > claims.toy.proved}",
            "findings.0.when: Unknown pipeline 'tooy'. Did you mean 'toy'? Allowed: toy, world.",
        ),
    ],
)
def test_bad_findings_are_refused_with_file_key_and_rule(line: str, rule: str) -> None:
    assert complaint(MINIMAL, f"findings: [{line}]").startswith(f"s.yaml:6: {rule}")


@pytest.mark.parametrize(
    ("sentence", "when", "rule"),
    [
        ("Yes.", "clicks.eror_rms < 1", "when: Unknown metric 'clicks.eror_rms'. Near names: cl"),
        ("{clicks.no}.", "clicks.error_rms < 1", "sentence: Unknown metric 'clicks.no'."),
        (
            "Yes.",
            "clicks.error_rms < clicks.attack.vector.success",
            "when: Expected what is measured: this needs clicks.vector, which attacks leaves out. "
            "Add it there, or remove the finding.",
        ),
    ],
)
def test_figures_are_such_as_are_measured(sentence: str, when: str, rule: str) -> None:
    with pytest.raises(BadScenario) as refused:
        loads(SCENARIO % (sentence, when), BLOCKS, "s.yaml")
    assert str(refused.value).startswith(f"s.yaml:8: findings.0.{rule}")


def test_findings_are_written_and_read_back() -> None:
    line = "findings: [{sentence: 'It is {toy.a}.', when: 'toy.a<1   where seed==7'}]"
    found = scenario(MINIMAL, line)
    assert found.findings[0].when == "toy.a < 1 where seed == 7"
    assert scenario(scenario_text(found)) == found
