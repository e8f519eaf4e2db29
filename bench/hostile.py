"""An ad server under hostile connections: memory, health, honest frames, and slots given back.

Of each kind 150 connections are held at the same time, opened again as soon as the service ends
them; then all kinds at once; then more silent ones than the service has slots for. Meanwhile an
honest client sends frames as fast as they are answered, and ``/healthz`` is asked on a new
connection every 20 ms. Real processes, as in ``bench/services.py``. Prints a table.
"""

import argparse
import http.client
import resource
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

# `python bench/hostile.py` puts bench/ on the path, not its parent.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.hostile_client import KINDS, SILENT, SLOW_READER
from bench.processes import memory_mb
from bench.services import Stack, stack
from bench.table import aligned
from bench.worker import ROOT, Worker

from noisefloor.roles.collection_config import example_collection
from noisefloor_services.settings import Settings
from noisefloor_services.store.durability import Durability
from noisefloor_services.store.keys import Layout
from noisefloor_services.store.server import Server

CONNECTIONS, MORE = 150, 4500
HEADER = (
    *("connections open", "MB", "health ms", "p99", "max", "failed", "honest", "per CPU-s"),
    *("free s", "verdict", "answers"),
)
MOST_MB, MOST_HEALTH_MS, LEAST_SHARE, MOST_FREE_S = 256.0, 100.0, 0.8, 15.0
MODEL_BYTES = 6 << 20
"""Of the model that devices fetch: more than the system keeps for a client that does not read."""

_PAUSE_S = 0.02


@dataclass(slots=True)
class Watch:
    """Memory and health of a service while something else goes on."""

    port: int
    pid: int
    health_ms: list[float] = field(default_factory=list)
    memory_mb: list[float] = field(default_factory=list)
    failures: int = 0
    _is_over: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> "Watch":
        threading.Thread(target=self._look, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()

    def _look(self) -> None:
        while not self._is_over.wait(_PAUSE_S):
            self.memory_mb.append(memory_mb(self.pid))
            start_s = time.monotonic()
            if self._is_alive():
                self.health_ms.append((time.monotonic() - start_s) * 1000)
            else:
                self.failures += 1

    def _is_alive(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request("GET", "/healthz")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


@dataclass(frozen=True, slots=True)
class Row:
    """What one kind of connections did."""

    name: str
    shares: Sequence[float]
    watch: Watch
    free_s: float
    statuses: Mapping[str, int]

    def cells(self) -> tuple[str, ...]:
        """Return the line of the table."""
        health_ms, peak = self.watch.health_ms, max(self.watch.memory_mb)
        p99 = statistics.quantiles(health_ms, n=100)[98]
        is_met = peak < MOST_MB and p99 < MOST_HEALTH_MS and self.shares[0] >= LEAST_SHARE
        is_met = is_met and self.free_s < MOST_FREE_S and not self.watch.failures
        return (
            self.name,
            f"{peak:.0f}",
            f"{statistics.median(health_ms):.1f}",
            f"{p99:.1f}",
            f"{max(health_ms):.1f}",
            str(self.watch.failures),
            *(f"{share:.0%}" for share in self.shares),
            f"{self.free_s:.1f}",
            "met" if is_met else "missed",
            str(dict(self.statuses)),
        )


def honest_rates(client: Worker, one: Stack, seconds: float) -> tuple[float, float]:
    """Return the frames that an honest client gets accepted, a second and a CPU-second."""
    answer = client.ask(port=one.app.port, pid=one.app.pid, seconds=seconds)
    if "error" in answer:
        raise RuntimeError(f"the client failed: {answer['error']}")
    accepted = answer["statuses"].get("202", 0)
    return accepted / answer["seconds"], accepted / max(1e-9, answer["app_cpu_s"])


def tell_model(one: Stack) -> None:
    """Leave a large broadcast, for those that read slowly."""
    server, layout = (
        Server(one.store.url),
        Layout(example_collection().namespace, Settings().partitions),
    )
    server.call("HSET", layout.settings, "broadcast", bytes(MODEL_BYTES))
    server.close()
    time.sleep(1.0)  # until the ad server has seen it


def free_s(port: int, most: int) -> float:
    """Wait until a service has at most this number of connections, and return how long it took."""
    start_s = time.monotonic()
    while _connections(port) > most:
        if time.monotonic() > start_s + 4 * MOST_FREE_S:
            return float("inf")
        time.sleep(0.05)
    return time.monotonic() - start_s


def _connections(port: int) -> int:
    """Return how many connections to a port are open on this machine."""
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    fields = (line.split()[1:4] for line in lines)
    return sum(
        local.endswith(f":{port:04X}") and state in ("01", "08") for local, _, state in fields
    )


def measured(
    honest: Worker, hostile: Worker, one: Stack, kinds: Sequence[str], count: int, seconds: float
) -> Row:
    """Hold connections of some kinds, and measure before, meanwhile and afterwards."""
    one.empty()
    if SLOW_READER in kinds:
        tell_model(one)
    before = honest_rates(honest, one, seconds)
    with Watch(one.app.port, one.app.pid) as watch:
        for kind in kinds:
            hostile.ask(port=one.app.port, kind=kind, connections=count)
        meanwhile = honest_rates(honest, one, seconds)
        statuses = hostile.ask()["statuses"]
        taken_s = free_s(one.app.port, most=2)
    after = honest_rates(honest, one, seconds)
    turns = zip(before, meanwhile, after, strict=True)
    shares = [2 * got / (first + last) for first, got, last in turns]
    name = kinds[0] if len(kinds) == 1 else "all of these"
    return Row(f"{count} {name}", shares, watch, taken_s, statuses)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=6.0, help="how long each rate is taken")
    parser.add_argument("--tree", type=Path, default=ROOT, help="another tree, to compare")
    parser.add_argument("--only", choices=KINDS, help="one kind of connections")
    given = parser.parse_args()
    _, files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    crowds = [((kind,), CONNECTIONS) for kind in KINDS] + [(KINDS, CONNECTIONS), ((SILENT,), MORE)]
    if given.only:
        crowds = [((given.only,), CONNECTIONS)]
    rows = []
    with tempfile.TemporaryDirectory() as name, ExitStack() as stay:
        one = stay.enter_context(stack(Path(name), Durability.MEMORY, root=given.tree.resolve()))
        honest = Worker(sys.executable, "bench.load_client")
        hostile = Worker(sys.executable, "bench.hostile_client")
        stay.callback(honest.close)
        stay.callback(hostile.close)
        honest_rates(honest, one, 1.0)  # warms up
        for kinds, count in crowds:
            print(f"measuring: {count} {', '.join(kinds)}", file=sys.stderr)
            rows.append(measured(honest, hostile, one, kinds, count, given.seconds).cells())
    print(aligned(HEADER, rows))
    print(
        f"Targets: below {MOST_MB:.0f} MB, /healthz below {MOST_HEALTH_MS:.0f} ms, honest frames "
        f"at {LEAST_SHARE:.0%} or more, slots free within {MOST_FREE_S:.0f} s."
    )


if __name__ == "__main__":
    main()
