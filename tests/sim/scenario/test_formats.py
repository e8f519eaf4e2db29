"""Formats: the current one is read, any other is refused with what to do."""

import pytest

from noisefloor_sim.scenario import (
    FORMATS,
    format_fault,
    loads,
    resolved,
    scenario_hash,
    scenario_text,
)
from sim.scenario.toy import BLOCKS, MINIMAL, complaint, scenario

NEWER = "written by a newer noisefloor. Upgrade: pip install --upgrade noisefloor."


def test_a_scenario_may_say_the_current_format_and_means_it_otherwise() -> None:
    current = FORMATS["scenario"]
    said = scenario(MINIMAL, f"format: {current}")
    assert said == scenario(MINIMAL)
    assert said.format == current


def test_the_format_is_no_part_of_what_is_hashed() -> None:
    said = scenario(MINIMAL, "format: 1")
    assert "format" not in resolved(said)
    assert scenario_hash(said) == scenario_hash(scenario(MINIMAL))
    assert loads(scenario_text(said), BLOCKS) == said


def test_a_newer_scenario_is_refused_for_that_alone() -> None:
    said = complaint(MINIMAL, "format: 2", "unheard_of: 3")
    assert said == f"s.yaml:6: format: Expected format 1, got 2: {NEWER}"


def test_an_older_scenario_is_refused_with_what_to_do() -> None:
    said = complaint(MINIMAL, "format: 0")
    assert said.startswith("s.yaml:6: format: Expected format 1, got 0: written by an older ")
    assert said.endswith("Begin with a new file: noisefloor new NAME.")


@pytest.mark.parametrize("value", ["true", "1.0", "'1'", "null", "[1]"])
def test_a_format_that_is_no_number_is_refused_as_such(value: str) -> None:
    assert "s.yaml:6: format: Expected a whole number, got " in complaint(
        MINIMAL, f"format: {value}"
    )


def test_the_format_cannot_be_swept() -> None:
    assert "Unknown key 'format'." in complaint(MINIMAL, "sweep: {format: [1]}")


@pytest.mark.parametrize(
    ("found", "fault"),
    [
        (3, ""),
        (4, f"Expected format 3, got 4: {NEWER}"),
        (2, "Expected format 3, got 2: written by an older noisefloor. Do it again."),
        (None, "Expected format 3, got none: written by an older noisefloor. Do it again."),
    ],
)
def test_what_is_said_of_each_format(found: int | None, fault: str) -> None:
    assert format_fault(found, 3, "Do it again.") == fault
