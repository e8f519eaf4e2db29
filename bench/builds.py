"""The ad server of this tree beside that of another one: requests per CPU-second, in turns.

``python bench/builds.py OTHER``, where OTHER is a tree with a ``.venv`` of its own or none. Each
build has a store of its own; the client is this tree's. Prints medians of the turns, and the
median ratio of two turns that follow each other.
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

# `python bench/builds.py` puts bench/ on the path, not its parent.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.load_client import ADS, FRAMES, JSON
from bench.services import Stack, closed, stack
from bench.table import aligned, figure
from bench.worker import ROOT, Worker

from noisefloor_services.store.durability import Durability

TEXTS = {FRAMES: "frames of 1,000 reports", JSON: "single reports", ADS: "ad requests"}


def rates(
    client: Worker, stacks: Mapping[str, Stack], what: str, turns: int, seconds: float
) -> dict[str, list[float]]:
    """Let the builds take turns; the first ones warm up and are thrown away."""
    found: dict[str, list[float]] = {name: [] for name in stacks}
    for number in range(turns + 1):
        # Who goes first alternates: a drift of the machine favours nobody.
        for name in list(stacks)[:: 1 if number % 2 else -1]:
            answer = closed(client, stacks[name], what=what, seconds=seconds)
            if number:
                found[name].append(answer["per_cpu_s"])
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("other", type=Path)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=3.0)
    given = parser.parse_args()
    client = Worker(sys.executable, "bench.load_client")
    rows = []
    with tempfile.TemporaryDirectory() as name, ExitStack() as context:
        context.callback(client.close)
        roots = {"this": ROOT, "other": given.other.resolve()}
        stacks = {
            one: context.enter_context(stack(Path(name) / one, Durability.MEMORY, root=root))
            for one, root in roots.items()
        }
        for what, text in TEXTS.items():
            found = rates(client, stacks, what, given.turns, given.seconds)
            this, other = (statistics.median(found[one]) for one in ("this", "other"))
            pairs = zip(found["this"], found["other"], strict=True)
            ratio = statistics.median(mine / theirs for mine, theirs in pairs)
            rows.append((text, figure(this), figure(other), f"{ratio:.3f}"))
    print(aligned(("per app-CPU-s, memory", "this tree", "the other", "ratio"), rows))


if __name__ == "__main__":
    main()
