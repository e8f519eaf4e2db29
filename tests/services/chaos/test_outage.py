"""The store is gone, or hangs: 503 and never yes; it is back: ready, and nothing is lost."""

from pathlib import Path

import pytest

from noisefloor_services.chaos.outage import OutageOutcome, run_outage


def check(outcome: OutageOutcome) -> None:
    assert outcome.faults == ()  # among them: any answer but 503, and one without Retry-After
    assert list(outcome.answers) == ["503"]
    assert list(outcome.probes) == ["503"]
    assert sorted(outcome.ready_again_s) == ["ad-server", "aggregator", "model-publisher"]
    assert outcome.conservation.is_conserved
    assert outcome.cells == 80


@pytest.mark.slow
def test_without_a_store_it_is_503_and_afterwards_everything_counts(tmp_path: Path) -> None:
    check(run_outage(3.0, tmp_path))


@pytest.mark.slow
def test_a_store_that_hangs_leaves_no_request_unanswered(tmp_path: Path) -> None:
    check(run_outage(3.0, tmp_path, hangs=True))
