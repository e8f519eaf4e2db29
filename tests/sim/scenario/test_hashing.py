"""The resolved text and its hash: they depend on what is said, not on how."""

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from noisefloor_sim.scenario import Scenario, Sweep, loads, resolved, scenario_hash, scenario_text
from noisefloor_sim.scenario.scalars import scalar_text
from noisefloor_sim.scenario.sections import Behaviour, Network, Outage, Population
from noisefloor_sim.scenario.yaml_reader import read_text
from sim.scenario.toy import BLOCKS, FULL, MINIMAL, Toy, scenario

ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=50)
PLAIN_TEXT = st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1, max_size=100)
NUMBERS = st.floats(1e-9, 40, allow_subnormal=False)
WORDS = ["no", "on", "y", "null", "~", "true", "1e-3", "012", "1:30", ".nan", "- a", "a: b", "#"]

OUTAGES = st.builds(
    lambda start, length: Outage(start_h=start, end_h=start + length),
    st.floats(0, 4_000),
    st.floats(1, 4_000),
)
SCENARIOS = st.builds(
    Scenario,
    name=st.from_regex(r"[a-z0-9-]{1,64}", fullmatch=True),
    question=PLAIN_TEXT,
    expectation=st.sampled_from(WORDS) | PLAIN_TEXT,
    seed=st.integers(0, 2**50),
    days=st.integers(1, 366),
    variant=st.sampled_from(["paper", "corrected"]),
    population=st.builds(Population, users=st.integers(1, 10**8), churn_per_day=st.floats(0, 0.9)),
    behaviour=st.builds(
        Behaviour, peak_hours=st.lists(st.floats(0, 23.9), min_size=1, max_size=3).map(tuple)
    ),
    network=st.builds(Network, outages=st.lists(OUTAGES, max_size=3).map(tuple)),
    pipelines=st.builds(
        Toy,
        epsilon=NUMBERS,
        bounds=st.lists(NUMBERS, max_size=3).map(tuple),
        note=ANY_TEXT | st.sampled_from(WORDS),
        spare=st.none() | st.integers(),
    ).map(lambda block: {"toy": block}),
    attacks=st.sampled_from([(), ("toy.guess", "toy.vote")]),
    sweep=st.lists(NUMBERS, min_size=1, max_size=3, unique=True).map(
        lambda values: Sweep.model_validate({"seeds": 2, "pipelines.toy.epsilon": tuple(values)})
    ),
    gates=st.just(("claims.* holds", "toy.rmse < 1.0 where variant == paper")),
)


@given(SCENARIOS)
def test_reading_what_was_written_gives_the_same_scenario(given_one: Scenario) -> None:
    text = scenario_text(given_one)
    again = loads(text, BLOCKS)
    assert again == given_one
    assert scenario_text(again) == text


@given(ANY_TEXT | st.none() | st.booleans() | st.integers(-(10**60), 10**60) | st.floats(-1e300))
def test_every_scalar_is_read_as_it_was_written(value: str | float | None) -> None:
    if isinstance(value, float) and value in (0.0, float("inf")):
        value = 0.0  # there is one zero, and no infinity
    for text in (
        f"a: {scalar_text(value)}",
        f"a: [{scalar_text(value)}]",
        f"a: {{b: {scalar_text(value)}}}",
    ):
        (found,) = _leaves(read_text(text, "s.yaml").data)
        assert found == value
        assert type(found) is type(value)


def _leaves(data: object) -> list[object]:
    if isinstance(data, dict):
        return [leaf for value in data.values() for leaf in _leaves(value)]
    if isinstance(data, tuple):
        return [leaf for value in data for leaf in _leaves(value)]
    return [data]


def test_the_text_names_every_default() -> None:
    text = scenario_text(scenario(MINIMAL))
    assert text.startswith('name: minimal\nquestion: "What is this epsilon worth?"\n')
    assert "\n  latency:\n    median_s: 0.2\n    spread: 0.5\n" in text
    assert "\n  toy:\n    epsilon: 1.0\n    form: oue\n" in text


def test_lists_of_mappings_take_a_line_an_item() -> None:
    assert "  outages:\n    - {start_h: 5.0, end_h: 6.5}\n" in scenario_text(scenario(FULL))


def test_the_hash_is_that_of_the_text() -> None:
    found = scenario(FULL)
    assert scenario_hash(found) == hashlib.sha256(scenario_text(found).encode()).hexdigest()


def test_the_hash_depends_on_nothing_but_what_is_said() -> None:
    blocks = MINIMAL.rsplit("pipelines", 1)[0].splitlines()
    tail = "pipelines: {toy: {note: '', epsilon: 1.0}}\n# a comment\ndays: 7\n"
    turned = "\n".join(reversed(blocks)) + "\n" + tail
    assert scenario_hash(loads(turned, BLOCKS)) == scenario_hash(scenario(MINIMAL))


def test_the_hash_does_not_depend_on_the_order_of_pipelines_and_swept_keys() -> None:
    two = {"toy": Toy, "other": Toy}
    text = "name: a\nquestion: b\nseed: 1\npipelines: {%s}\nsweep: {%s}\n"
    one = text % ("toy: {epsilon: 1}, other: {epsilon: 2}", "days: [1, 2], seed: [3, 4]")
    other = text % ("other: {epsilon: 2}, toy: {epsilon: 1}", "seed: [3, 4], days: [1, 2]")
    assert scenario_hash(loads(one, two)) == scenario_hash(loads(other, two))


def test_every_change_of_a_value_changes_the_hash() -> None:
    base = scenario_hash(scenario(MINIMAL))
    lines = ["days: 8", "variant: paper", "threat: {linked: false}", "grace_h: 24.000000000000004"]
    lines += ["sweep: {days: [1]}", "gates: [claims.* holds]", "attacks: [toy.guess]"]
    assert len({base, *(scenario_hash(scenario(MINIMAL, line)) for line in lines)}) == 8


def test_the_hash_of_the_minimal_scenario_stays_what_it_is() -> None:
    # Should a default change, this has to be changed knowingly: runs are named by their hash.
    digest = "d376ca683332e160c77898e7125efda8527cf30c9ffae1d1c95487827a7f5d9e"
    assert scenario_hash(scenario(MINIMAL)) == digest


def test_resolved_data_are_plain() -> None:
    def check(value: object) -> None:
        assert isinstance(value, dict | tuple | str | int | float | None)
        for item in value.values() if isinstance(value, dict) else ():
            check(item)

    check(resolved(scenario(FULL)))
