"""The chaos command, on exit codes and on the figures that it leaves."""

import json
import signal
from pathlib import Path

import pytest

from noisefloor_services.__main__ import main
from noisefloor_services.chaos.command import FILE
from noisefloor_services.chaos.experiments import NAMES

SMALL = ("chaos", "--quick", "--seeds", "4", "--reports", "10000", "--only", "streams")


@pytest.mark.slow
def test_an_exact_storm_is_0_and_leaves_figures_and_no_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*SMALL, "--out", str(tmp_path)], {}) == 0
    found = json.loads((tmp_path / FILE).read_text())
    assert [path.name for path in tmp_path.iterdir()] == [FILE]
    run = found["streams"]["4"]
    assert (found["is_exact"], found["durability"], found["seeds"]) == (True, "disk", [4])
    assert (run["plan"]["seed"], run["plan"]["durability"], run["faults"]) == (4, "disk", [])
    assert (run["worker_kills"], run["zombies"], run["server_kills"]) == (8, 4, 2)
    assert run["conservation"]["dead_letters"] == 20
    assert capsys.readouterr().out.startswith("workers killed, seed 4 (")


@pytest.mark.slow
def test_the_naive_twin_is_1_and_its_data_stay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*SMALL, "--naive", "--durability", "memory", "--lines", "--out", str(tmp_path)]
    assert main(words, {}) == 1
    output = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (output[0]["share"], output[-1]["share"], output[-1]["is_exact"]) == (0.0, 1.0, False)
    found = json.loads((tmp_path / FILE).read_text())
    assert (found["is_exact"], found["is_naive"]) == (False, True)
    assert found["streams"]["4"]["server_kills"] == 0
    assert (tmp_path / "data" / "streams-4").is_dir()


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        (("--seeds", "1,1"), "each named once"),
        (("--seeds", "-1"), "in [0, 2**53)"),
        (("--only", "streams,more"), f"some of {', '.join(NAMES)}"),
        (("--outage-s", "0"), "in [1, 600]"),
        (("--outage-s", "nan"), "in [1, 600]"),
        (("--reports", "10"), "reports"),
    ],
)
def test_bad_input_is_2_and_one_line(
    words: tuple[str, ...], rule: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = signal.getsignal(signal.SIGTERM)
    assert main(["chaos", *words], {}) == 2
    assert signal.getsignal(signal.SIGTERM) is before
    output = capsys.readouterr().err
    assert output.startswith("noisefloor: Expected ") and output.count("\n") == 1
    assert rule in output
