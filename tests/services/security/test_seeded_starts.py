"""A process that is given a seed does not start: exit code 2 and one line, whichever way it came.

Beside ``test_secure_start``, which tries the same at the level of types.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from live_apps import ROOT
from noisefloor_services.store.embedded import EmbeddedServer

ENTROPY = "import os\nos.urandom = lambda count: bytes(count)\n"
METHOD = """
import numpy as np
from noisefloor import randomness
randomness.SecureSource.words = lambda self, count: np.zeros(count, dtype=np.uint64)
"""
CLASS = """
from noisefloor import randomness
class SecureSource(randomness.SeededSource):
    def __init__(self):
        super().__init__(1, "noise")
randomness.SecureSource = SecureSource
"""
WAYS: dict[str, tuple[str, dict[str, str], str, str]] = {
    "a variable": ("ad-server", {"NOISEFLOOR_SEED": "1"}, "", "NOISEFLOOR_SEED is set."),
    "an empty variable": (
        "aggregator",
        {"NOISEFLOOR_NOISE_SEED": ""},
        "",
        "NOISEFLOOR_NOISE_SEED is set.",
    ),
    "a debugging flag": ("worker", {"NOISEFLOOR_DEBUG": "0"}, "", "NOISEFLOOR_DEBUG is set."),
    "development mode": ("model-publisher", {"PYTHONDEVMODE": "1"}, "", "development mode"),
    "an argument": ("model-publisher --seed=1", {}, "", "unrecognized arguments: --seed=1"),
    "other entropy": ("ad-server", {}, ENTROPY, "entropy was replaced"),
    "another method": ("model-publisher", {}, METHOD, "was replaced before it was loaded"),
    "another class": ("aggregator", {}, CLASS, "was replaced before it was loaded"),
}
"""Who is started, with which variables, what is run before, and what is told."""


def start(
    folder: Path, words: str, variables: dict[str, str], before: str
) -> "subprocess.CompletedProcess[str]":
    # Python runs a module of this name on its own, before anything else.
    (folder / "sitecustomize.py").write_text(before)
    roots = [str(folder), *(str(ROOT / one) for one in ("platform", "services"))]
    kept = {key: value for key, value in os.environ.items() if key in ("PATH", "HOME")}
    return subprocess.run(
        [sys.executable, "-m", "noisefloor_services", *words.split()],
        env={**kept, "PYTHONPATH": os.pathsep.join(roots), **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("way", WAYS)
def test_a_seeded_process_does_not_start(tmp_path: Path, way: str) -> None:
    words, variables, before, reason = WAYS[way]
    done = start(tmp_path, words, variables, before)
    assert done.returncode == 2, done.stderr
    assert reason in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_process_that_is_given_none_starts(tmp_path: Path) -> None:
    with EmbeddedServer(tmp_path / "valkey") as valkey:
        free = {"NOISEFLOOR_REDIS_URL": valkey.url, "PYTHONHASHSEED": "0", "SEED": "1"}
        done = start(tmp_path, "create-ledger", free, "import noisefloor.randomness\n")
    assert (done.returncode, done.stderr) == (0, "")
