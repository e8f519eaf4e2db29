"""Auctions per CPU-second: the columnar market against a plain loop over auctions.

Both sell the same impressions, second price, with floors, budgets, pacing and a full log, and have
to agree on every winner and every price. Each runs in a fresh process, one thread; imports and
inputs are not timed, checks of the input, coins and the summary are. It reports; it does not fail
on a missed target.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

# `python bench/auction.py` puts bench/ on the path, not its parent.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.memory import forget_peak, peak_bytes, resident_bytes
from bench.table import aligned, figure
from bench.worker import ONE_THREAD, ROOT

from noisefloor.ads.auction import (
    AuctionLog,
    Bidders,
    Campaign,
    Inventory,
    Pacing,
    Signal,
    protected,
    run_auctions,
    summarise,
    tracking,
)
from noisefloor.randomness import SeededSource

TARGET = 200_000
"""Auctions per CPU-second, with everything logged."""

BIDDERS, SYMBOLS = 6, 20
FLOOR, EVERY, GAIN = 5_000, 1 << 13, 0.25
AUCTIONS, QUICK_AUCTIONS = 1_000_000, 200_000
BASELINE_AUCTIONS, QUICK_BASELINE_AUCTIONS = 100_000, 20_000
REPEATS, QUICK_REPEATS = 5, 2

Answer = dict[str, Any]  # JSON
Timed = tuple[float, NDArray[np.integer], NDArray[np.integer]]


def _bidders(auctions: int) -> Bidders:
    """Six with budgets that bind: unpaced they would spend some 30,000 micros an auction."""
    return Bidders.of(
        [
            Campaign(i, i, click_micros=10**6, budget_micros=auctions * (3_000 + 500 * i))
            for i in range(BIDDERS)
        ]
    )


def _chances(auctions: int) -> NDArray[np.float32]:
    generator = SeededSource(1, "bench", "chances").generator()
    return generator.beta(1.0, 20.0, (auctions, BIDDERS)).astype(np.float32)


def _everything(chance: NDArray[np.float32], bidders: Bidders) -> Callable[[], Signal]:
    return lambda: tracking(chance, bidders)


def _symbols(chance: NDArray[np.float32], bidders: Bidders) -> Callable[[], Signal]:
    generator = SeededSource(1, "bench", "released").generator()
    table = generator.beta(1.0, 20.0, (SYMBOLS, BIDDERS))
    released = generator.integers(0, SYMBOLS, len(chance))
    return lambda: protected(released, table, bidders)


def _ours(
    auctions: int, signal_of: Callable[[NDArray[np.float32], Bidders], Callable[[], Signal]]
) -> Timed:
    chance, bidders, pacing = _chances(auctions), _bidders(auctions), Pacing(auctions, EVERY, GAIN)
    signal = signal_of(chance, bidders)

    def sell(key: str) -> AuctionLog:
        source = SeededSource(1, "bench", key)
        impressions = Inventory.of(chance, bidders, source, floors=FLOOR)
        log = run_auctions(impressions, signal(), bidders, pacing).log
        summarise(log, bidders)
        return log

    sell("warm-up")
    forget_peak()
    start = time.process_time()
    log = sell("timed")
    return time.process_time() - start, log.winner, log.price


def _baseline(auctions: int) -> Timed:
    """Sell one auction after the other, as an ordinary simulator does: sort, pick, append."""
    rows, crowd = _chances(auctions).tolist(), _bidders(auctions)
    draws = SeededSource(1, "bench", "timed").stage("ties").words(auctions).tolist()
    worth, left = crowd.click.tolist(), crowd.budget.tolist()
    pace, stopped, spent = [1.0] * BIDDERS, [False] * BIDDERS, [0] * BIDDERS
    log: list[dict[str, Any]] = []
    forget_peak()
    start = time.process_time()
    for number, row in enumerate(rows):
        if number and number % EVERY == 0:
            _move(pace, spent, left, EVERY, auctions - number + EVERY)
            spent = [0] * BIDDERS
        while True:
            bids = [
                0 if stopped[i] else int(row[i] * (worth[i] * pace[i])) for i in range(BIDDERS)
            ]
            order = sorted(range(BIDDERS), key=bids.__getitem__, reverse=True)
            winner, bid, second = order[0], bids[order[0]], bids[order[1]]
            if bid == second and bid:
                top = [i for i in order if bids[i] == bid]
                winner = max(top, key=lambda i: _key(draws[number], i))
            price = max(second, FLOOR)
            if bid < FLOOR or spent[winner] + price <= left[winner]:
                break
            stopped[winner] = True
        is_filled = bid >= FLOOR
        if is_filled:
            spent[winner] += price
        log.append(
            {
                "winner": winner if is_filled else -1,
                "price": price if is_filled else 0,
                "bid": bid,
                "second": second,
                "value": int(worth[winner] * row[winner]) if is_filled else 0,
                "taste": row[winner] if is_filled else 0.0,
                "filled": is_filled,
            }
        )
    cpu_s = time.process_time() - start
    winners, prices = (np.array([one[key] for one in log]) for key in ("winner", "price"))
    return cpu_s, winners, prices


def _key(draw: int, place: int) -> int:
    """Return the key of a bidder in the auction's random order (splitmix64), for ties."""
    word = (1 << 64) - 1
    state = (draw + (place + 1) * 0x9E3779B97F4A7C15) & word
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & word
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & word
    return state ^ (state >> 31)


def _move(pace: list[float], spent: list[int], left: list[int], rows: int, to_come: int) -> None:
    """Move the multipliers after a slice, and take what was spent from the purses."""
    for i in range(BIDDERS):
        share = left[i] * (rows / to_come)
        over = spent[i] / share if share > 0 else 1.0
        step = 1.0 + GAIN * min(1.0, max(-1.0, 1.0 - over))
        pace[i] = min(1.0, max(2.0**-20, pace[i] * step))
        left[i] -= spent[i]


CASES: dict[str, Callable[[int], Timed]] = {
    "ours, tracking": lambda auctions: _ours(auctions, _everything),
    "ours, protected": lambda auctions: _ours(auctions, _symbols),
    "plain loop, tracking": _baseline,
}
LOOP = "plain loop, tracking"


def _measure_here(name: str, auctions: int) -> Answer:
    """Run one case in this process; the sums tell whether cases agree."""
    before = resident_bytes()
    cpu_s, winner, price = CASES[name](auctions)
    weights = np.arange(1, auctions + 1) % 1009
    check = [int(price.sum()), int((weights * winner).sum()), int((weights * price).sum())]
    return {"cpu_s": cpu_s, "peak_bytes": peak_bytes() - before, "check": check}


def _measure_apart(name: str, auctions: int) -> Answer:
    script = str(Path(__file__).resolve())
    command = [sys.executable, script, "--one", name, "--auctions", str(auctions)]
    environment = os.environ | ONE_THREAD
    done = subprocess.run(  # noqa: S603  our own command
        command, cwd=ROOT, env=environment, capture_output=True, text=True
    )
    if done.returncode:
        error = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise RuntimeError(f"{name}: {error}")
    answer: Answer = json.loads(done.stdout)
    return answer


def _row(name: str, auctions: int, repeats: int) -> Answer:
    """Return the best of the repeats: what is left out is the machine's other work."""
    answers = [_measure_apart(name, auctions) for _ in range(repeats)]
    best = min(answers, key=lambda answer: float(answer["cpu_s"]))
    rate = auctions / best["cpu_s"]
    row = {"case": name, "auctions": auctions, "repeats": repeats, "per_cpu_s": rate} | best
    return row | {"all_cpu_s": [answer["cpu_s"] for answer in answers]}


def measure(quick: bool) -> list[Answer]:
    """Measure ours and the loop, and check that they agree on the same auctions."""
    auctions = QUICK_AUCTIONS if quick else AUCTIONS
    fewer = QUICK_BASELINE_AUCTIONS if quick else BASELINE_AUCTIONS
    repeats = QUICK_REPEATS if quick else REPEATS
    rows = [_row(name, auctions, repeats) for name in CASES if name != LOOP]
    loop = _row(LOOP, fewer, repeats)
    same = _measure_apart("ours, tracking", fewer)["check"] == loop["check"]
    for row in (*rows, loop):
        row["times_loop"] = row["per_cpu_s"] / loop["per_cpu_s"]
        row["agrees"] = same
        if row is not loop:
            row |= {"target": TARGET, "verdict": "met" if row["per_cpu_s"] >= TARGET else "missed"}
    return [*rows, loop]


def printed(rows: list[Answer]) -> str:
    """Return the table, and whether both sides sold alike."""
    header = (
        "case",
        "auctions",
        "CPU s",
        "per CPU-s",
        "times loop",
        "peak MB",
        "target",
        "verdict",
    )
    lines = []
    for row in rows:
        figures = [figure(row[key]) for key in ("cpu_s", "per_cpu_s", "times_loop")]
        peak, target = figure(row["peak_bytes"] / 1e6), row.get("target")
        target_text = f">= {target}" if target else ""
        verdict = row.get("verdict", "")
        lines.append((row["case"], str(row["auctions"]), *figures, peak, target_text, verdict))
    agreed = "the same" if all(row["agrees"] for row in rows) else "NOT the same"
    note = f"{BIDDERS} bidders, second price, floors, budgets, pacing, a row of log per auction\n"
    return note + aligned(header, lines) + f"\nWinners and prices of loop and ours: {agreed}"


def main() -> None:
    """Measure all, or one in this process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", help="measure this case in this process, print JSON")
    parser.add_argument("--auctions", type=int, default=AUCTIONS)
    parser.add_argument("--quick", action="store_true", help="fewer auctions and repeats")
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(_measure_here(arguments.one, arguments.auctions)))
    else:
        print(printed(measure(arguments.quick)))


if __name__ == "__main__":
    main()
