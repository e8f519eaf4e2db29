"""Compare noisefloor with its peers on this machine: CPU time, memory and start-up, in one run.

Prints tables and writes every raw number. It reports; it does not fail on a missed target.
"""

import argparse
import json
import os
import platform
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

# `python bench/run.py` puts bench/ on the path, not its parent.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.machine import processor_ticks, steal_share
from bench.worker import ROOT, Worker
from bench.workloads import WORKLOADS

from bench import auction, compare, encoding, memory, services, startup, streams, training, world

REPEATS, QUICK_REPEATS = 9, 5


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", metavar="PYTHON", help="interpreter that has the peers")
    parser.add_argument("--quick", action="store_true", help="fewer users and repeats")
    parser.add_argument("--only", default="", help="workloads whose name contains this, no more")
    parser.add_argument("--out", type=Path, default=ROOT / "bench/results/mechanisms.json")
    return parser.parse_args()


def _mechanisms(
    ours: Worker, theirs: Worker | None, arguments: argparse.Namespace
) -> list[compare.Row]:
    rows = []
    repeats = QUICK_REPEATS if arguments.quick else REPEATS
    for workload in WORKLOADS:
        if arguments.only in workload.name:
            print(f"measuring {workload.name}", file=sys.stderr)
            quick = arguments.quick
            rows += compare.measure(workload, ours, theirs, repeats=repeats, quick=quick)
    return rows


def _speed(arguments: argparse.Namespace) -> dict[str, Any]:
    """Run both sides in turns; print the table and return the numbers."""
    ours = Worker(sys.executable, "bench.ours")
    theirs = Worker(os.path.abspath(arguments.peers), "bench.peers") if arguments.peers else None
    versions = {"ours": ours.ask(forget=1), "peers": theirs.ask(forget=1) if theirs else None}
    before = processor_ticks()
    rows = _mechanisms(ours, theirs, arguments)
    steal = steal_share(before)
    for worker in (ours, theirs):
        if worker is not None:
            worker.close()
    print("CPU-s per million reports (s/M), one thread, best of the repeats taken in turns")
    print('Ours is seeded; "secure" is ours on the operating system\'s entropy')
    print(f"Versions: {json.dumps(versions)}; steal time {steal:.1%}")
    print(compare.printed(rows))
    return {"versions": versions, "steal": steal, "mechanisms": [row.as_json() for row in rows]}


def _advertising(*, quick: bool) -> dict[str, Any]:
    """Measure training and auctions; print the tables and return the numbers."""
    trained = training.measure(quick=quick)
    print(f"\nTraining, one thread, frames and bus included\n{training.printed(trained)}")
    sold = auction.measure(quick)
    print(f"\nAuctions\n{auction.printed(sold)}")
    return {"training": [asdict(row) for row in trained], "auction": sold}


def _collection(*, quick: bool) -> dict[str, Any]:
    """Measure how records are protected; print the table and return the numbers."""
    rows = encoding.measure(quick=quick)
    print(f"\nRecords encoded and protected\n{encoding.printed(rows)}")
    return {"encoding": rows}


def main() -> None:
    """Measure, print, write."""
    arguments = _arguments()
    machine = {"cores": os.cpu_count(), "machine": platform.machine()}
    results: dict[str, Any] = {"quick": arguments.quick} | machine | _speed(arguments)
    if not arguments.only:
        users = memory.QUICK_USERS if arguments.quick else memory.USERS
        print("measuring memory", file=sys.stderr)
        peaks = memory.measure(users)
        print(f"\nPeak memory at {users} users\n{memory.printed(peaks, users)}")
        starts = startup.measure()
        print(f"\nCommand line\n{startup.printed(starts)}")
        results |= _advertising(quick=arguments.quick) | _collection(quick=arguments.quick)
        results |= {"memory_users": users, "memory": peaks}
        results |= {"startup": [start.as_json() for start in starts]}
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(results, indent=1) + "\n")
    if not arguments.only:
        print()
        world.write(world.measure(quick=arguments.quick), arguments.out.with_name("world.json"))
        for part, name in ((streams, "streams.json"), (services, "services.json")):
            print()
            part.write(part.measure(quick=arguments.quick), arguments.out.with_name(name))


if __name__ == "__main__":
    main()
