"""Processes that spend at once, and publishers that are killed between charge and release."""

from pathlib import Path

import pytest

from noisefloor_services.chaos.budget_races import CAP, run_spending
from noisefloor_services.chaos.publisher_crashes import run_publishing
from noisefloor_services.store.embedded import EmbeddedServer


@pytest.mark.slow
def test_100_spenders_in_processes_get_the_cap_and_naive_ones_more(tmp_path: Path) -> None:
    with EmbeddedServer(tmp_path) as server:
        outcome = run_spending(server.url, processes=10, threads=10)
    assert outcome.faults == ()
    assert (outcome.granted, outcome.retried, outcome.ledger_spent) == (CAP, CAP, CAP)
    assert CAP < outcome.requested <= CAP + 100  # nobody is refused more than once
    assert outcome.naive_granted > CAP


@pytest.mark.slow
def test_a_killed_publisher_releases_nothing_unpaid_and_draws_nothing_twice(
    tmp_path: Path,
) -> None:
    outcome = run_publishing(2, tmp_path)
    assert outcome.faults == ()
    assert (outcome.kills, outcome.unpaid) == (2, 0)
    assert outcome.orphans > 0  # a kill came between charge and release
    assert outcome.answers == 2 * outcome.publications
