"""Offer changed frames to the decoder and the aggregator: by a seed, or guided by coverage.

``python tests/fuzz_frames.py --frames 100000`` repeats itself exactly. ``--seconds 600`` goes on
with a fuzzer that looks for new ways through the code (``pip install noisefloor[fuzz]``). The
first failure ends it with a traceback; in the end it says in JSON what was offered.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

MOST_BYTES = 8192
MOST_MEMORY_MB = 1024
MOST_S = 10


def main() -> int:
    """Do what is asked; the fuzzer comes last, since it ends the process itself."""
    parser = argparse.ArgumentParser(description="Offer changed frames to the decoder.")
    parser.add_argument("--frames", type=int, default=0, help="how many frames by the seed")
    parser.add_argument("--seed", type=int, default=20_261_116)
    parser.add_argument("--seconds", type=int, default=0, help="how long to be guided by coverage")
    given = parser.parse_args()
    fuzzer = _fuzzer() if given.seconds else None
    if given.frames:
        print(json.dumps(seeded(given.frames, given.seed)), flush=True)
    if fuzzer is not None:
        _guided(fuzzer, given.seconds, given.seed)
    return 0


def seeded(frames: int, seed: int) -> dict[str, object]:
    """Offer frames by a seed, and return what became of them."""
    import pyarrow as pa

    from hostile_frames import Judge, SeededDraws, changed
    from noisefloor.randomness import SeededSource

    started_s = time.monotonic()
    judge, draws = Judge(), SeededDraws(SeededSource(seed, "frames"))
    before = pa.default_memory_pool().bytes_allocated()
    for _ in range(frames):
        judge(changed(draws))
    judge.compare()
    return {
        "frames": frames,
        "seed": seed,
        "outcomes": {status.value: count for status, count in judge.outcomes.items()},
        "reasons": dict(judge.reasons.most_common()),
        "most_arrow_bytes": pa.default_memory_pool().max_memory() - before,
        "seconds": round(time.monotonic() - started_s, 1),
    }


def _fuzzer() -> Any:  # Any: atheris has no types
    """Load the fuzzer before what it has to watch."""
    import atheris

    with atheris.instrument_imports(include=["noisefloor", "hostile_frames"]):
        import hostile_frames  # noqa: F401
    return atheris


def _guided(fuzzer: Any, seconds: int, seed: int) -> None:  # Any: as above
    from hostile_frames import END, GOOD, Judge, changed

    heads = [b"", *(frame[: frame.index(END[:4], 8)] for frame in GOOD[::2])]
    judge = Judge()

    class Provided:
        def __init__(self, data: bytes) -> None:
            self._data = fuzzer.FuzzedDataProvider(data)

        def below(self, bound: int) -> int:
            number: int = self._data.ConsumeIntInRange(0, bound - 1)
            return number

    def offer(data: bytes) -> None:
        """Offer bytes behind a good header or none, or a frame that they say how to change."""
        choice, rest = (data[0], data[1:]) if data else (0, b"")
        judge(changed(Provided(rest)) if choice & 1 else heads[choice // 2 % len(heads)] + rest)

    with tempfile.TemporaryDirectory() as folder:
        for place, frame in enumerate(GOOD):
            head = heads[1 + place // 2]
            start = bytes([2 * (1 + place // 2)])
            (Path(folder) / f"good-{place}").write_bytes(start + frame[len(head) :])
        options = {
            "max_total_time": seconds,
            "seed": seed,
            "max_len": MOST_BYTES,
            "rss_limit_mb": MOST_MEMORY_MB,
            "timeout": MOST_S,
            "artifact_prefix": f"{tempfile.gettempdir()}/",
        }
        listed = [f"-{name}={value}" for name, value in options.items()]
        fuzzer.Setup([sys.argv[0], *listed, folder], offer)
        fuzzer.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
