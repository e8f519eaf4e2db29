"""Figures: a row a step and figure, with the spread over its runs."""

import csv
import io

import pytest

from load_figures import found
from noisefloor_sim.stress.figures import (
    COLUMNS,
    figures,
    metrics_csv,
    recovered_within_s,
    runs_by_step,
)


def rows() -> dict[tuple[str, str], dict[str, str]]:
    listed = csv.DictReader(io.StringIO(metrics_csv(found())))
    return {(row["step"], row["figure"]): row for row in listed}


def test_every_step_has_one_row_a_figure_with_n_and_spread() -> None:
    read = rows()
    assert len(read) == len(figures(found()))
    one = read["400/s", "p99_ms"]
    assert {name: one[name] for name in COLUMNS[2:]} == {
        "value": "32.0", "low": "30.0", "high": "34.0", "spread": "4.0", "runs": "2", "n": "4000",
    }  # fmt: skip
    assert read["step-1", "p99_ms"]["runs"] == "1"


def test_what_a_sample_does_not_resolve_has_no_row() -> None:
    assert ("400/s", "p99-9_ms") not in rows()


def test_processor_time_is_by_process_and_a_million_reports() -> None:
    # 2.5 CPU-seconds for 400 * 5 frames of 1,000 reports.
    assert rows()["400/s", "cpu_s_per_million.ad-server"]["value"] == "1.25"


def test_the_knee_and_the_rate_at_the_objective_are_figures_of_the_run() -> None:
    read = rows()
    assert read["knee", "low"]["value"] == "400.0"
    assert read["knee", "high"]["value"] == "440.0"
    assert read["run", "rate_at_objective"]["runs"] == "2"
    assert read["run", "conserved"]["value"] == "1.0"


def test_steps_of_the_plan_come_first_and_those_of_the_search_by_rate() -> None:
    assert list(runs_by_step(found())) == ["step-1", "400/s", "440/s"]


def test_a_knee_without_an_upper_end_has_no_row_for_it() -> None:
    one = found()
    one["knee"]["high"] = None
    names = {(row.step, row.name) for row in figures(one)}
    assert ("knee", "low") in names
    assert ("knee", "high") not in names


@pytest.mark.parametrize(
    ("p99_ms", "seconds"),
    [
        (
            [5, 5, 90, 5, 5, 5],
            0.5,
        ),  # the spike ends at 2.5 s, the first whole second is the fourth
        ([5, 5, 90, 90, 90, 5], 2.5),
        ([5, 5, 90, 5, 90, 5], 2.5),  # it has to stay within the limit
        ([90, 90, 5, 5, 5, 5], 0.5),  # what was before the spike does not matter
        ([5, 5, 90, 90, 90, 90], None),
    ],
)
def test_recovery_is_when_p99_is_within_the_limit_and_stays_there(
    p99_ms: list[float], seconds: float | None
) -> None:
    spike = [[100, 100, 1.5], [900, 900, 1.0], [100, 100, 3.5]]
    run = {"phases": spike, "by_second": [{"n": 100, "p99": one} for one in p99_ms]}
    assert recovered_within_s(run, 50) == seconds
    assert recovered_within_s({**run, "phases": [[100, 100, 6.0]]}, 50) is None
