"""Sweeps: which points, in which order, under which names; and what is refused."""

import re

import pytest

from between_processes import sent
from noisefloor.errors import BadScenario
from noisefloor_sim.scenario import Sweep, SweepPoint, expand, scenario_hash
from sim.scenario.toy import BLOCKS, FULL, MINIMAL, complaint, scenario


def points(*lines: str) -> tuple[SweepPoint, ...]:
    """Return the points of the minimal scenario with more lines."""
    return expand(scenario(MINIMAL, *lines), BLOCKS)


def test_without_a_sweep_there_is_one_point_that_is_the_scenario() -> None:
    (point,) = points()
    assert point.scenario == scenario()
    assert point.settings == ()
    assert point.id == f"p000-{scenario_hash(point.scenario)[:8]}"


def test_keys_are_crossed_in_one_order_and_seeds_count_fastest() -> None:
    found = points("sweep: {variant: [paper, corrected], seeds: 2, pipelines.toy.epsilon: [2, 1]}")
    assert [[value for _, value in point.settings] for point in found] == [
        [2, "paper", 7],
        [2, "paper", 8],
        [2, "corrected", 7],
        [2, "corrected", 8],
        [1, "paper", 7],
        [1, "paper", 8],
        [1, "corrected", 7],
        [1, "corrected", 8],
    ]
    for index, point in enumerate(found):
        settings = dict(point.settings)
        assert point.index == index
        assert point.scenario.seed == settings["seed"]
        assert point.scenario.variant == settings["variant"]
        assert point.scenario.sweep == Sweep()


def test_the_order_of_keys_in_the_file_does_not_matter() -> None:
    axes = ["  days: [1, 2]", "  population.users: [5, 6]", "  seeds: 3"]
    assert points("sweep:", *axes) == points("sweep:", *reversed(axes))


def test_point_ids_are_unique_and_safe_as_file_names() -> None:
    found = expand(scenario(FULL), BLOCKS)
    assert len({point.id for point in found}) == len(found) == 12
    assert found[0].id.startswith("p000-epsilon-0.5-variant-paper-seed-7-")
    odd = points(
        "sweep:",
        "  network: [{loss: 0}, {loss: 0.1}]",
        r'  pipelines.toy.note: ["../../etc", "A\0B", "CON.", ""]',
    )
    assert len({point.id for point in odd}) == 8
    for point in (*found, *odd):
        assert re.fullmatch(r"p[0-9]{3}-([a-z0-9.-]*[a-z0-9]-)?[0-9a-f]{8}", point.id)
        assert len(point.id) < 80


def test_an_id_follows_from_what_the_point_is() -> None:
    some = points("sweep: {days: [1, 2]}")
    more = points("sweep: {days: [1, 2, 3]}")
    assert [point.id for point in some] == [point.id for point in more[:2]]


def test_sections_and_lists_can_be_swept_as_a_whole() -> None:
    found = points("sweep:", "  network.outages: [[], [{start_h: 1, end_h: 2}]]")
    assert [len(point.scenario.network.outages) for point in found] == [0, 1]


def test_points_travel_between_processes() -> None:
    found = expand(scenario(FULL), BLOCKS)
    assert sent(found) == found


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("days: []", "sweep.days: Expected at least 1 value, got an empty list."),
        ("days: 3", "sweep.days: Expected a list, got 3."),
        ("days:", "sweep.days: Expected a list, got nothing."),
        ("seeds: 0", "sweep.seeds: Expected >= 1, got 0. Replicates of every point, with seed, "),
        ("seeds: [1, 2]", "sweep.seeds: Expected a whole number, got a list of 2 values."),
        ("days: [1, 0]", "sweep.days.1: Expected >= 1, got 0. How long the world runs."),
        ("variant: [paper, no]", "sweep.variant.1: Expected 'paper' or 'corrected', got 'no'."),
        ("days: [1, 2, 1]", "sweep.days.2: Expected values that differ, got 1 again."),
        (
            "pipelines.toy.epsilon: [1, 1.0]",
            "sweep.pipelines.toy.epsilon.1: Expected values that differ, got 1.0 again.",
        ),
        ("pipelines.toy.epsilon: [0]", "sweep.pipelines.toy.epsilon.0: Expected > 0, got 0."),
        (
            "population.users: [1000000000000]",
            "sweep.population.users.0: Expected <= 100000000, got 1000000000000.",
        ),
        (
            "population.user: [1]",
            "sweep.population.user: Unknown key 'population.user'. Did you mean "
            "'population.users'? Allowed: population.users, population.cohort, ",
        ),
        (
            "epsilon: [1]",
            "sweep.epsilon: Unknown key 'epsilon'. Did you mean 'pipelines.toy.epsilon'? "
            "Allowed: seed, days, variant, population, devices, tastes, behaviour, network, "
            "grace_h, budget, pipelines, attacks, threat, witnesses.",
        ),
        ("pipelines.other.epsilon: [1]", "sweep.pipelines.other.epsilon: Unknown key 'pipelines."),
        ("name: [a, b]", "sweep.name: Unknown key 'name'."),
        ("gates: [[]]", "sweep.gates: Unknown key 'gates'."),
        ("sweep: [{}]", "sweep.sweep: Unknown key 'sweep'."),
        ("'': [1]", "sweep.'': Unknown key ''."),
        ("days.x: [1]", "sweep.days.x: Unknown key 'days.x'."),
        (
            "{network: [{}], network.loss: [0, 0.1]}",
            "sweep.network.loss: Expected keys apart, but network is swept as well.",
        ),
        ("{seed: [1, 2], seeds: 2}", "sweep.seed: Expected either seed or seeds, found both."),
        (
            "{behaviour.slots_per_view: [1, 21], network.loss: [0.1]}",
            "sweep.behaviour.slots_per_view.1: Expected at most as many slots as ads (20), got",
        ),
        (
            "{population.cohort: [65536], behaviour.ads: [10000]}",
            "sweep.population.cohort.0: Expected at most 134217728 cells in a cohort",
        ),
        (
            "{seeds: 1001, days: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}",
            "sweep: Expected at most 10000 points, got 10010.",
        ),
    ],
)
def test_a_bad_sweep_is_reported_with_its_line_key_and_rule(line: str, fault: str) -> None:
    lines = [f"sweep: {line}"] if line.startswith("{") else ["sweep:", f"  {line}"]
    said = complaint(MINIMAL, *lines)
    number = 5 + len(lines)
    assert said.startswith(f"s.yaml:{number}: {fault}")
    assert "\n" not in said


def test_a_fault_that_lies_in_no_swept_key_names_the_combination() -> None:
    said = complaint(
        MINIMAL,
        "gates: [toy.rmse < 1 where population.users == 1]",
        "attacks: [toy.guess]",
        "sweep:",
        "  pipelines: [{other: {}}]",
    )
    assert said.split("\n")[1:] == [
        "s.yaml:8: sweep: At pipelines=a mapping of 1 key: attacks.0: Unknown attack 'toy.guess'. "
        "None is allowed here.",
        "s.yaml:9: sweep.pipelines.0.other: Unknown pipeline 'other'. Allowed: toy.",
    ]


def test_what_is_wrong_with_two_keys_together_is_found_in_the_crossing_only() -> None:
    ads, slots = "  behaviour.ads: [3, 4]", "  behaviour.slots_per_view: [2, 3]"
    section = "behaviour: {ads: 9, slots_per_view: 5}"
    assert len(points(section, "sweep:", ads, slots)) == 4
    said = complaint(MINIMAL, section, "sweep:", ads).split("\n")
    assert said[1] == (
        "s.yaml:7: sweep: At behaviour.ads=3: behaviour.slots_per_view: Expected at most as many "
        "slots as ads (3), got 5."
    )


def test_seeds_stay_within_what_a_seed_can_be() -> None:
    last = 2**53 - 1
    said = complaint(MINIMAL.replace("seed: 7", f"seed: {last}"), "sweep: {seeds: 2}")
    assert said == f"s.yaml:6: sweep.seeds: Expected seeds up to {last}, got more."


def test_a_sweep_of_thousands_is_numbered_with_four_digits() -> None:
    found = points("sweep: {seeds: 501, days: [1, 2]}")
    assert found[-1].id.startswith("p1001-")
    assert found[-1].scenario.seed == 7 + 500


def test_a_scenario_without_a_document_is_expanded_and_refused_by_name() -> None:
    bad = scenario().model_copy(update={"sweep": Sweep.model_validate({"day": (1,)})})
    with pytest.raises(BadScenario, match=r"^scenario minimal: sweep\.day: Unknown key 'day'"):
        expand(bad, BLOCKS)
