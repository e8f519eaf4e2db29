"""What exactness costs: frames counted exactly once, against a naive (wrong) consumer.

Both read the same frames from the same server, decode and merge them with the same code, and make
one call for what they merged, in the same round trip as the next read. The naive one adds whatever
it was handed; ours looks first at what it owns and at what was seen, and records it. They take
turns, on streams that are filled beforehand; a pair of turns gives one ratio. Prints a table and
writes every raw number. It reports; it does not fail on a missed target.
"""

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

# `python bench/streams.py` puts bench/ on the path, not its parent.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.machine import sync_ms
from bench.table import aligned, figure
from bench.worker import ROOT

from noisefloor.randomness import SeededSource
from noisefloor.wire import bit_vector_kind
from noisefloor.wire.frames import ID_BYTES, seal
from noisefloor_services.chaos.workers import NaiveGroup, load_naive_script
from noisefloor_services.store.durability import Durability
from noisefloor_services.store.embedded import EmbeddedServer
from noisefloor_services.store.keys import Layout
from noisefloor_services.store.server import Server
from noisefloor_services.streams.batch import FrameGroup
from noisefloor_services.streams.epoch_store import EpochStore
from noisefloor_services.streams.worker import Worker
from noisefloor_services.streams.write_path import Producer

OUT = ROOT / "bench/results/streams.json"
TARGET = 0.80
REPEATS = 7
KIND = bit_vector_kind("clicks", 64)
GROUPS: dict[str, type[FrameGroup]] = {"naive": NaiveGroup, "exactly once": FrameGroup}
_BATCH = 64

Answer = dict[str, Any]  # JSON


@dataclass(frozen=True, slots=True)
class Turn:
    """One stream, emptied by one consumer."""

    consumer: str
    durability: str
    reports_a_frame: int
    reports: int
    wall_s: float
    worker_cpu_s: float
    server_cpu_s: float

    @property
    def cpu_s(self) -> float:
        """Of consumer and server together."""
        return self.worker_cpu_s + self.server_cpu_s


def frames_of(count: int, reports: int) -> list[bytes]:
    """Write frames of random clicks."""
    generator = SeededSource(1, "streams", count, reports).generator()
    made = []
    for _ in range(count):
        bits = generator.integers(0, 2, (reports, KIND.cells), dtype="uint8")
        made.append(seal(KIND, 0, KIND.encode(bits), generator.bytes(ID_BYTES)))
    return made


def _server_cpu_s(server: Server) -> float:
    lines = server.call("INFO", "cpu").decode().splitlines()
    numbers = dict(line.split(":") for line in lines if line.startswith("used_cpu_"))
    return float(numbers["used_cpu_user"]) + float(numbers["used_cpu_sys"])


def turn(
    embedded: EmbeddedServer, consumer: str, frames: list[bytes], reports_a_frame: int
) -> Turn:
    """Fill a stream, empty it with one consumer, and say what that took."""
    server = Server(embedded.url)
    server.call("FLUSHALL", "SYNC")
    load_naive_script(server)
    store = EpochStore(server, Layout("bench"), [KIND])
    store.prepare()
    producer = Producer(server, store.layout, store.kinds)
    for start in range(0, len(frames), _BATCH):
        producer.append(frames[start : start + _BATCH])
    worker = Worker(store, batch=_BATCH, group=GROUPS[consumer])
    wall, cpu, server_cpu = time.perf_counter(), time.process_time(), _server_cpu_s(server)
    worker.drain()
    took = Turn(
        consumer,
        embedded.durability.value,
        reports_a_frame,
        len(frames) * reports_a_frame,
        time.perf_counter() - wall,
        time.process_time() - cpu,
        _server_cpu_s(server) - server_cpu,
    )
    if store.conservation().counted != len(frames):
        raise RuntimeError("not every frame was counted")
    server.close()
    return took


def compare(
    embedded: EmbeddedServer, reports_a_frame: int, frames: int, repeats: int
) -> list[Turn]:
    """Let both consumers take turns; the first pair warms up and is thrown away."""
    made = frames_of(frames, reports_a_frame)
    turns: list[Turn] = []
    for number in range(repeats + 1):
        # Who goes first alternates: a drift of the machine favours nobody.
        order = list(GROUPS) if number % 2 else list(GROUPS)[::-1]
        pair = [turn(embedded, consumer, made, reports_a_frame) for consumer in order]
        turns += pair if number else []
    return turns


def summary(turns: list[Turn]) -> Answer:
    """Return medians, and the ratio of exactly once to naive as the median over the pairs."""
    ours = [one for one in turns if one.consumer == "exactly once"]
    naive = [one for one in turns if one.consumer == "naive"]
    median = statistics.median

    def rate(listed: list[Turn], took: str) -> float:
        return float(median(one.reports / getattr(one, took) for one in listed))

    def ratio(took: str) -> float:
        pairs = zip(naive, ours, strict=True)
        return float(median(getattr(a, took) / getattr(b, took) for a, b in pairs))

    return {
        "durability": ours[0].durability,
        "reports_a_frame": ours[0].reports_a_frame,
        "pairs": len(ours),
        "exact_per_wall_s": rate(ours, "wall_s"),
        "naive_per_wall_s": rate(naive, "wall_s"),
        "wall_ratio": ratio("wall_s"),
        "exact_per_cpu_s": rate(ours, "cpu_s"),
        "naive_per_cpu_s": rate(naive, "cpu_s"),
        "cpu_ratio": ratio("cpu_s"),
        "is_met": ratio("wall_s") >= TARGET and ratio("cpu_s") >= TARGET,
    }


def measure(*, quick: bool, repeats: int = REPEATS) -> Answer:
    """Measure both consumers, print the table, and return the raw numbers."""
    scale, repeats = (10, 2) if quick else (1, repeats)
    lines, turns = [], []
    with tempfile.TemporaryDirectory() as name:
        synced = sync_ms(Path(name))[0]
        for durability in Durability:
            with EmbeddedServer(Path(name, durability.value), durability) as embedded:
                for reports_a_frame, frames in ((100, 8000), (1000, 3000)):
                    print(f"measuring {durability.value} {reports_a_frame}", file=sys.stderr)
                    pair = compare(embedded, reports_a_frame, frames // scale, repeats)
                    turns += pair
                    lines.append(summary(pair))
    print(_printed(lines))
    print(f"One consumer, {KIND.cells} cells, {_BATCH} frames a call, medians of {repeats} pairs;")
    print("CPU is that of consumer and server together.")
    load_1m, cores = os.getloadavg()[0], os.cpu_count()
    print(f"fdatasync takes {synced:.2f} ms; load {load_1m:.1f} on {cores} cores.")
    machine = {"machine": platform.platform(), "cores": cores, "fdatasync_ms": synced}
    return machine | {"summary": lines, "turns": [asdict(one) for one in turns]}


def _printed(lines: Sequence[Answer]) -> str:
    header = ("durability", "reports/frame", "exact M/s", "naive M/s", "wall", "exact M/CPU-s",
              "naive M/CPU-s", "CPU", f"at least {TARGET:.0%}")  # fmt: skip
    rows = [
        (
            line["durability"],
            str(line["reports_a_frame"]),
            figure(line["exact_per_wall_s"] / 1e6),
            figure(line["naive_per_wall_s"] / 1e6),
            f"{line['wall_ratio']:.0%}",
            figure(line["exact_per_cpu_s"] / 1e6),
            figure(line["naive_per_cpu_s"] / 1e6),
            f"{line['cpu_ratio']:.0%}",
            "met" if line["is_met"] else "missed",
        )
        for line in lines
    ]
    return aligned(header, rows)


def write(results: Answer, out: Path = OUT) -> None:
    """Write the raw numbers."""
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(results, indent=1) + "\n")


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--quick", action="store_true", help="a tenth of the frames, two pairs")
    options = parser.parse_args()
    write(measure(quick=options.quick, repeats=options.repeats))


if __name__ == "__main__":
    main()
