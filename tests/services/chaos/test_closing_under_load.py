"""Epochs closed under load, by real services: what was answered with 202 is in the sums."""

from pathlib import Path

import pytest

from noisefloor_services.chaos.epoch_closing import run_closing


@pytest.mark.slow
def test_frames_answered_with_202_equal_frames_counted(tmp_path: Path) -> None:
    outcome = run_closing(5, tmp_path)
    assert outcome.faults == ()
    assert outcome.answered == outcome.in_epochs == outcome.conservation.counted > 0
    assert (outcome.conservation.late, outcome.aggregator_kills) == (0, 1)
    assert outcome.answered_410 >= 5
