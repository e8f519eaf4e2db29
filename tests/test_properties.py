"""Properties have more examples at night, whatever number they have on commits."""

import pytest
from hypothesis import HealthCheck

import properties
from properties import examples


@pytest.mark.parametrize(("profile", "expected"), [("ci", 20), ("nightly", 600)])
def test_a_property_has_thirty_times_its_examples_at_night(
    profile: str, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(properties, "PROFILE", profile)
    made = examples(20, suppress_health_check=[HealthCheck.too_slow])
    assert made.max_examples == expected
    assert made.suppress_health_check == (HealthCheck.too_slow,)
    assert made.deadline is None
