"""A load on real services: everything that was answered is counted, and all processes end."""

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from noisefloor_sim.cli import commands

SCENARIO = """
name: small-load
question: Do the services count what they take?
seed: 1
days: 1
population: {users: 3000}
pipelines: {clicks: {form: one-click}}
load:
  shares: {frames: 0.8, reports: 0.1, requests: 0.1}
  duplicates: 0.1
  rows: 100
  processes: 2
  warm_s: 0.2
  repeats: 1
  steps: [{rate: 150, to_rate: 250, seconds: 1.0}]
  objective: {percentile: 50, latency_ms: 60000, refused: 0, lag_grows: true}
  services: {durability: memory, partitions: 2}
  gates: [run.conserved == 1, step-1.failed_share == 0]
"""


@pytest.mark.slow
def test_what_services_answered_under_load_is_what_they_counted(tmp_path: Path) -> None:
    file, out = tmp_path / "small-load.yaml", tmp_path / "run"
    file.write_text(SCENARIO)
    done = CliRunner().invoke(commands.app, ["stress", str(file), "--out", str(out)])
    assert done.exit_code == 0, done.output
    found = json.loads((out / "stress.json").read_text())
    account = found["account"]
    assert account["services"]["accepted"] == account["answered"]
    assert account["services"]["counted"] == account["to_count"] < account["answered"]
    assert account["services"]["duplicates"] == account["answered"] - account["to_count"]
    (run,) = found["runs"]
    assert account["services"]["reports"] <= run["rows"]  # it is told in whole minimums
    assert {"ad-server", "aggregator", "load-client-1", "load-client-2"} <= set(
        run["cost"]["processes"]
    )
    rows = list(csv.DictReader((out / "metrics.csv").read_text().splitlines()))
    assert {row["step"] for row in rows} == {"step-1", "run"}
    assert (out / "report.html").stat().st_size > 1 << 20
    assert "stopping the services" not in done.output  # progress is for terminals
