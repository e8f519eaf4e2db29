"""Workers and server are killed, workers sleep, everything comes twice: the sums are the truth."""

from pathlib import Path

import pytest

from noisefloor_services.chaos import ChaosPlan, run_chaos
from noisefloor_services.streams.durability import Durability

SMALL = ChaosPlan(
    reports=60_000,
    worker_kills=8,
    zombies=4,
    server_kills=2,
    poison=20,
)


@pytest.mark.slow
def test_chaos_changes_no_cell(tmp_path: Path) -> None:
    outcome = run_chaos(SMALL, tmp_path)
    assert outcome.faults == ()
    assert (outcome.worker_kills, outcome.zombies, outcome.server_kills) == (8, 4, 2)
    assert outcome.conservation.dead_letters == 20
    assert outcome.conservation.is_conserved
    assert outcome.held_frames > 0  # somebody was hit with work in hand


@pytest.mark.slow
def test_the_naive_twin_is_found_out(tmp_path: Path) -> None:
    plan = ChaosPlan(
        reports=10_000,
        worker_kills=1,
        zombies=1,
        server_kills=0,
        poison=3,
        durability=Durability.MEMORY,
        is_naive=True,
    )
    outcome = run_chaos(plan, tmp_path)
    assert any("cells are wrong" in fault for fault in outcome.faults)
    assert not outcome.is_exact
