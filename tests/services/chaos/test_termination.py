"""SIGTERM under load: exit code 0, readiness off, and whatever was accepted is there."""

from pathlib import Path

import pytest

from noisefloor_services.chaos.termination import run_termination


@pytest.mark.slow
def test_a_stop_under_load_loses_nothing(tmp_path: Path) -> None:
    """The store is killed right after the ad server's stop: what was acknowledged is on disk."""
    outcome = run_termination(1, tmp_path)
    assert outcome.faults == ()
    assert outcome.taken > 0
    assert (outcome.lost, outcome.taken_unanswered) == (0, 0)
    assert outcome.conservation.is_conserved
    assert outcome.cells == 80
