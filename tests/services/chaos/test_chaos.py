"""Workers and server are killed, workers sleep, everything comes twice: the sums are the truth."""

from pathlib import Path

import pytest

from noisefloor_services.chaos import ChaosPlan, run_chaos
from noisefloor_services.chaos.service_faults import ServicePlan, run_services
from noisefloor_services.store.durability import Durability

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
    assert outcome.pending_frames > 0  # somebody was hit with work in hand


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


@pytest.mark.slow
def test_kills_of_the_services_change_no_cell(tmp_path: Path) -> None:
    """Frames over HTTP, while ad server, aggregator and store are killed and come back."""
    plan = ServicePlan(
        reports=15_000, ad_server_kills=1, aggregator_kills=1, zombies=0, server_kills=1
    )
    outcome = run_services(plan, tmp_path)
    assert outcome.faults == ()
    done = (outcome.ad_server_kills, outcome.aggregator_kills, outcome.server_kills)
    assert done == (1, 1, 1)
    assert outcome.unanswered > 0  # the kill found requests under way
    assert outcome.taken_unanswered >= 0
    assert outcome.conservation.is_conserved
    assert (outcome.cells, outcome.poison) == (80, 3)
