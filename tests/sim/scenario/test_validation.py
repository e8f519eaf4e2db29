"""Plain data into a scenario: defaults, and each rule with its file, line, key and words."""

import os
import subprocess
import sys
from typing import Annotated, ClassVar

import pytest
from pydantic import AfterValidator, ValidationError

from between_processes import sent
from noisefloor.checks import check_epsilon
from noisefloor.errors import BadScenario
from noisefloor_sim.scenario import (
    Attack,
    Attacks,
    Behaviour,
    Blocks,
    PipelineBlock,
    Scenario,
    expand,
    loads,
    scenario_text,
)
from sim.scenario.toy import BLOCKS, FULL, MINIMAL, Toy, complaint, scenario


def test_five_lines_are_a_scenario() -> None:
    found = scenario(MINIMAL)
    assert found.pipelines == {"toy": Toy(epsilon=1.0)}
    assert found.population.users == 10_000
    assert found.variant == "corrected"
    assert found.threat.linked
    assert found.sweep.seeds == 1
    assert found.sweep.axes == ()


def test_every_key_can_be_given() -> None:
    found = scenario(FULL)
    assert found.question == "What is this epsilon worth, and to whom?"
    assert found.expectation == "Less than it says.\nFour times as much is proved."
    assert found.population.churn_per_day == 0.001
    assert found.ad_behaviour.peak_hours == (8.0, 20.5)
    assert [outage.end_h for outage in found.network.outages] == [6.5, 31.0]
    assert found.attacks == ("toy.guess", "toy.vote")
    assert found.sweep.axes == (
        ("pipelines.toy.epsilon", (0.5, 1, 2)),
        ("variant", ("paper", "corrected")),
    )


def test_a_scenario_is_frozen_and_travels_between_processes() -> None:
    found = scenario(FULL)
    with pytest.raises(ValidationError):
        found.seed = 3
    assert sent(found) == found


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (
            "populaton: {users: 3}",
            "populaton: Unknown key 'populaton'. Did you mean 'population'? Allowed: format, "
            "name, question, expectation, seed, days, variant, population, devices, tastes, "
            "behaviour, network, grace_h, budget, pipelines, attacks, threat, witnesses, sweep, "
            "gates, findings, load.",
        ),
        (
            "population: {users: 1000000000000}",
            "population.users: Expected <= 100000000, got 1000000000000. Users in the world; a "
            "hundred million is the most that a run takes.",
        ),
        (
            "population: {engagement: {tail: 3}}",
            "population.engagement.tail: Unknown key 'tail'. Did you mean 'tail_exponent'? "
            "Allowed: mean_views_per_day, tail_exponent.",
        ),
        (
            "population: 3",
            "population: Expected a mapping of keys, got 3. Who there is.",
        ),
        (
            "population: {users: ten}",
            "population.users: Expected a whole number, got 'ten'. Users in the world; a "
            "hundred million is the most that a run takes.",
        ),
        ("days: 1e1", "days: Expected a whole number, got 10.0. How long the world runs."),
        ("days: 1:30", "days: Expected a whole number, got '1:30'. How long the world runs."),
        ("days: true", "days: Expected a whole number, got true. How long the world runs."),
        ("days:", "days: Expected a whole number, got nothing. How long the world runs."),
        ("days: 0", "days: Expected >= 1, got 0. How long the world runs."),
        ("days: 367", "days: Expected <= 366, got 367. How long the world runs."),
        (
            "days: 012",
            "days: Expected a number without leading zeros, or a text in quotes, got 012.",
        ),
        ("grace_h: .nan", "grace_h: Expected a finite number, got .nan."),
        (
            "grace_h: nan",
            "grace_h: Expected a number, got 'nan'. Hours that an epoch stays open after its "
            "period; later frames are refused.",
        ),
        (
            "threat: {linked: no}",
            "threat.linked: Expected true or false, got 'no'. Whether the server can tell which "
            "frames came over one connection.",
        ),
        (
            "variant: papper",
            "variant: Expected 'paper' or 'corrected', got 'papper'. Mechanisms as printed, or as "
            "they have to be.",
        ),
        (
            "behaviour: {ads: 5, slots_per_view: 6}",
            "behaviour.slots_per_view: Expected at most as many slots as ads (5), got 6.",
        ),
        (
            "behaviour: {peak_hours: [3, 25]}",
            "behaviour.peak_hours.1: Expected < 24, got 25. Hours of the day, from 0 to 24, "
            "around which activity is highest.",
        ),
        (
            "behaviour: {peak_hours: 3}",
            "behaviour.peak_hours: Expected a list, got 3. Hours of the day, from 0 to 24, "
            "around which activity is highest.",
        ),
        (
            "devices: {shares: {phone: 0, laptop: 0, wearable: 0}}",
            "devices.shares: Expected a share above 0: every user has at least one device.",
        ),
        (
            "network: {outages: [{start_h: 3, end_h: 2}]}",
            "network.outages.0.end_h: Expected > start_h (3), got 2.",
        ),
        (
            "network: {outages: [{end_h: 2}]}",
            "network.outages.0.start_h: Expected this key, found none. When it begins, in hours.",
        ),
        (
            "population: {cohort: 65536}\nbehaviour: {ads: 10000}",
            "population.cohort: Expected at most 134217728 cells in a cohort, got 65536 users x "
            "10000 ads. Make the cohort smaller.",
        ),
        (
            r'expectation: "a\u202Eb"',
            "expectation: Expected plain text, found the character U+202E.",
        ),
        (
            f"expectation: {'a' * 1_001}",
            f"expectation: Expected at most 1000 characters, got '{'a' * 36}.... The answer that "
            "is expected, for the report.",
        ),
        (
            "attacks: [toy.gess]",
            "attacks.0: Unknown attack 'toy.gess'. Did you mean 'toy.guess'? Allowed: toy.guess, "
            "toy.vote.",
        ),
        (
            "attacks: [toy.guess, toy.guess]",
            "attacks.1: Expected each attack once, got 'toy.guess' again.",
        ),
        (
            "attacks: [3]",
            "attacks.0: Expected a text (in quotes if it looks like something else), got 3. "
            "Attacks to mount, as pipeline.attack; none listed: all. What is not mounted is not "
            "measured, and a claim whose audit is left out is not audited.",
        ),
        (
            "gates: [toy.rmse]",
            "gates.0: Expected a gate such as 'clicks.rmse < 0.05', got 'toy.rmse'.",
        ),
    ],
)
def test_a_bad_line_is_reported_with_its_number_key_and_rule(line: str, fault: str) -> None:
    assert complaint(MINIMAL, line) == f"s.yaml:6: {fault}"


@pytest.mark.parametrize(
    ("block", "fault"),
    [
        ("toy: {epsilon: 0}", "pipelines.toy.epsilon: Expected > 0, got 0. Of one report."),
        ("toy: {epsilon: -1}", "pipelines.toy.epsilon: Expected > 0, got -1. Of one report."),
        ("toy: {epsilon: '1'}", "pipelines.toy.epsilon: Expected a number, got '1'. "),
        ("toy: {}", "pipelines.toy.epsilon: Expected this key, found none. Of one report."),
        (
            "toy: {epsilon: 1, frm: oue}",
            "pipelines.toy.frm: Unknown key 'frm'. Did you mean 'form'",
        ),
        ("toy:", "pipelines.toy: Expected a mapping of keys, got nothing."),
        ("tooy: {}", "pipelines.tooy: Unknown pipeline 'tooy'. Did you mean 'toy'? Allowed: toy."),
        ("{}", "pipelines: Expected at least 1 value, got an empty mapping."),
        ("[toy]", "pipelines: Expected a mapping of keys, got a list of 1 value."),
    ],
)
def test_a_bad_block_is_reported_as_if_it_stood_in_the_model(block: str, fault: str) -> None:
    text = f"name: a\nquestion: b\nseed: 1\npipelines:\n  {block}\n"
    said = complaint(text)
    assert said.split(": ", 1)[1].startswith(fault)
    assert said.split(":")[1] in ("4", "5")
    assert "\n" not in said


@pytest.mark.parametrize("name", ["", "A", "a b", "a/b", "a\\n", "-" * 65, "ä"])
def test_a_name_is_small_letters_digits_and_hyphens(name: str) -> None:
    text = f'name: "{name}"\nquestion: b\nseed: 1\npipelines: {{toy: {{epsilon: 1}}}}\n'
    assert complaint(text).startswith(
        "s.yaml:1: name: Expected a text like ^[a-z0-9-]{1,64}$, got"
    )


def test_a_question_of_spaces_is_no_question() -> None:
    text = 'name: a\nquestion: "  "\nseed: 1\npipelines: {toy: {epsilon: 1}}\n'
    assert complaint(text).startswith("s.yaml:2: question: Expected at least 1 character, got")


def test_several_faults_are_all_listed_after_a_summary() -> None:
    said = complaint("name: A\nseed: -1\nquestion: b\npipelines: {toy: {epsilon: 0}}\nday: 3\n")
    summary, *lines = said.split("\n")
    assert summary == "s.yaml: Expected a valid scenario, found 4 faults."
    keys = ["s.yaml:1: name", "s.yaml:2: seed", "s.yaml:4: pipelines.toy.epsilon", "s.yaml:5: day"]
    assert [line.split(": Expected")[0].split(": Unknown")[0] for line in lines] == keys


def test_a_long_list_of_faults_is_cut() -> None:
    said = complaint(MINIMAL, *(f"key{index}: 1" for index in range(50))).split("\n")
    assert said[0] == "s.yaml: Expected a valid scenario, found 50 faults."
    assert said[-1] == "s.yaml: And 30 more."
    assert len(said) == 22


@pytest.mark.parametrize("text", ["", "# nothing\n", "3", "[1]", "text", "null"])
def test_what_is_no_mapping_is_no_scenario(text: str) -> None:
    said = complaint(text)
    assert said.startswith("s.yaml: Expected a mapping of keys, got ")


def test_what_is_shown_of_a_value_is_short_and_printable() -> None:
    said = complaint(MINIMAL, 'variant: "\\e[31m\\u202e\\n' + "x" * 1_000 + '"')
    assert said.isprintable()
    assert len(said) < 200
    said = complaint(MINIMAL, '"\\e\\n' + "k" * 1_000 + '": 1')
    assert said.isprintable()
    assert len(said) < 400


def test_without_attacks_or_pipelines_none_is_allowed() -> None:
    with pytest.raises(BadScenario, match=r"Unknown pipeline 'toy'\. None is allowed here\."):
        loads(MINIMAL, {})


def test_a_scenario_can_be_built_without_a_file() -> None:
    built = Scenario(name="a", question="b", seed=1, pipelines={"toy": Toy(epsilon=1.0)})
    assert built == scenario("name: a\nquestion: b\nseed: 1\npipelines: {toy: {epsilon: 1}}\n")


class Audited(PipelineBlock):
    """Settings of a pipeline with an audit, and with an attack of two games."""

    attacks: ClassVar[Attacks] = {
        "bit": Attack("a bit"),
        "all-days": Attack("a bit, over days", ("days", "weeks")),
        "audit": Attack("the worst pair", is_audit=True),
    }


def gated(attacks: str, gate: str) -> str:
    """Return what is said of a gate beside these attacks; nothing, if it can be met."""
    text = f"name: a\nquestion: b\nseed: 1\npipelines: {{p: {{}}}}\nattacks: [{attacks}]\n"
    try:
        loads(f"{text}gates: [{gate}]\n", {"p": Audited}, "s.yaml")
    except BadScenario as error:
        return str(error)
    return ""


def test_without_a_list_of_attacks_all_are_mounted_and_otherwise_those_listed() -> None:
    everything, one = scenario(), scenario(MINIMAL, "attacks: [toy.guess]")
    assert everything.mounts("toy", "guess") and everything.mounts("toy", "vote")
    assert one.mounts("toy", "guess") and not one.mounts("toy", "vote")
    assert not one.mounts("other", "guess")


def test_a_game_is_mounted_by_the_name_of_its_attack() -> None:
    text = "name: a\nquestion: b\nseed: 1\npipelines: {p: {}}\nattacks: [p.all-days]\n"
    found = loads(text, {"p": Audited})
    assert found.mounts("p", "all_days") and not found.mounts("p", "bit")


@pytest.mark.parametrize(
    ("attacks", "gate", "needed"),
    [
        ("p.audit", "p.attack.bit.success < 1", "p.bit"),
        ("p.bit", "p.attack.weeks.success < 1", "p.all-days"),
        ("p.bit", "claims.p.audited <= proved", "p.audit"),
        ("p.bit", "claims.*.proved >= audited", "p.audit"),
    ],
)
def test_a_gate_on_what_is_not_mounted_is_refused(attacks: str, gate: str, needed: str) -> None:
    assert gated(attacks, gate) == (
        f"s.yaml:6: gates.0: Expected what is measured: this needs {needed}, which attacks "
        "leaves out. Add it there, or remove the gate."
    )
    assert not gated(f"{attacks}, {needed}", gate)
    assert not gated("", gate)  # all are mounted


@pytest.mark.parametrize(
    "gate",
    [
        "p.attack.bit.success < 1 where variant == paper",  # no such point
        "claims.p holds",
        "p.error < 1",
        "p.attack.weeks.success < 1",
    ],
)
def test_a_gate_on_anything_else_stays(gate: str) -> None:
    assert not gated("p.all-days", gate)


class Plain(PipelineBlock):
    """Settings of a pipeline that needs no ads."""


NO_ADS = "name: a\nquestion: b\nseed: 1\npipelines: {plain: {}}\n"
TWO: Blocks = {**BLOCKS, "plain": Plain}


def test_a_world_has_ads_if_a_pipeline_needs_them() -> None:
    assert loads(NO_ADS, TWO).behaviour is None
    assert loads(NO_ADS + "behaviour: null\n", TWO).behaviour is None
    both = NO_ADS.replace("plain: {}", "plain: {}, toy: {epsilon: 1}")
    assert loads(both, TWO).behaviour == scenario().behaviour == Behaviour()
    assert loads(both + "behaviour: {ads: 7}\n", TWO).ad_behaviour.ads == 7
    with pytest.raises(TypeError, match="no ads"):
        _ = loads(NO_ADS, TWO).ad_behaviour


def test_a_behaviour_that_nothing_uses_is_refused_with_the_pipelines_that_would() -> None:
    with pytest.raises(BadScenario) as caught:
        loads(NO_ADS + "behaviour: {ads: 2}\n", TWO, "s.yaml")
    assert str(caught.value) == (
        "s.yaml:5: behaviour: Expected this key only beside a pipeline that needs ads (toy). "
        "Leave it out: this world has no ads."
    )


def test_the_text_of_a_world_without_ads_reads_back() -> None:
    found = loads(NO_ADS, TWO)
    assert "behaviour: null\n" in scenario_text(found)
    assert loads(scenario_text(found), TWO) == found


def test_a_sweep_over_pipelines_keeps_the_behaviour_of_points_with_ads() -> None:
    text = NO_ADS.replace("plain: {}", "toy: {epsilon: 1}") + "behaviour: {ads: 7}\n"
    swept = loads(text + "sweep: {pipelines: [{plain: {}}, {toy: {epsilon: 2}}]}\n", TWO)
    found = [point.scenario.behaviour for point in expand(swept, TWO)]
    assert found == [None, Behaviour(ads=7)]


def test_the_command_line_starts_without_the_scenario_libraries() -> None:
    code = "import sys, noisefloor_sim.cli; print(sorted({'pydantic', 'yaml'} & set(sys.modules)))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    printed = subprocess.check_output([sys.executable, "-c", code], env=environment, text=True)
    assert printed.strip() == "[]"


def test_a_check_of_the_platform_speaks_in_its_own_words() -> None:
    class Strict(PipelineBlock):
        epsilon: Annotated[float, AfterValidator(check_epsilon)]

    with pytest.raises(BadScenario) as caught:
        loads(MINIMAL.replace("epsilon: 1", "epsilon: 50"), {"toy": Strict}, "s.yaml")
    assert str(caught.value).startswith(
        "s.yaml:5: pipelines.toy.epsilon: Expected epsilon=50.0 in [1e-09, 40]"
    )


def test_blocks_are_the_only_place_where_a_pipeline_is_named() -> None:
    other = loads(MINIMAL.replace("toy", "another"), {"another": BLOCKS["toy"]})
    assert list(other.pipelines) == ["another"]
