"""Tagging and generalising texts: documents per second on one process and on two.

Run it where nothing else runs: ``python bench/entities.py``. Elapsed times say something only if
every process has a core of its own; the CPU seconds beside them hold on a busy machine, too. The
target is 1.8 times as many documents per second on two processes as on one, workers running.
"""

import argparse
import functools
import os
import resource
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

# `python bench/entities.py` puts bench/ on the path, not its parent.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.table import aligned, figure

TARGET = 1.8
Result = TypeVar("Result")


class Spent(NamedTuple):
    """What a piece of work took."""

    name: str
    elapsed_s: float
    here_s: float
    workers_s: float


def _cpu_s(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def _spent(name: str, work: Callable[[], Result], *, ends: bool = False) -> tuple[Spent, Result]:
    """Run a piece of work; the CPU time of workers is known once they have ended."""
    before = _cpu_s(resource.RUSAGE_SELF), _cpu_s(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    result = work()
    took = time.perf_counter() - start
    here = _cpu_s(resource.RUSAGE_SELF) - before[0]
    workers = _cpu_s(resource.RUSAGE_CHILDREN) - before[1] if ends else 0.0
    return Spent(name, took, here, workers), result


def _texts(name: str, count: int) -> list[str]:
    """Return texts of a data set, repeated never, or made-up ones of a few sentences."""
    from noisefloor.publication.text.entities import gold_texts
    from noisefloor.randomness import SeededSource
    from noisefloor.tables import load_table

    if name == "gold":
        return gold_texts(count, SeededSource(1, "bench"), sentences=12).texts
    texts = [str(text) for text in load_table(name)["text"][:count]]
    if len(texts) < count:
        raise SystemExit(f"{name} has {len(texts)} texts alone: lower --count")
    return texts


def _work(texts: Sequence[str], processes: int) -> list[Spent]:
    """Tag and generalise with some processes, their workers running already."""
    from noisefloor.publication.text.entities import (
        CombinedTagger,
        EntityKind,
        Mentions,
        PatternTagger,
        SpacyTagger,
    )
    from noisefloor.publication.text.generalisation import (
        FixedLevels,
        KAnonymous,
        Ladders,
        generalise,
        shared_place_graph,
    )
    from noisefloor.publication.text.generalisation.spelling import spelling_key

    ladders = Ladders(shared_place_graph())
    spelling_key.cache_clear()  # or the second run would find the spellings of the first
    patterns = PatternTagger([EntityKind.EMAIL, EntityKind.HANDLE])
    levels = FixedLevels({EntityKind.LOCATION: 3, EntityKind.PERSON: 1})
    spent = []
    with SpacyTagger(processes=processes) as tagger:
        if processes == 1:
            start, _ = _spent("start", lambda: tagger.tag(["One."]))
        else:
            start, _ = _spent("start", lambda: tagger.tag(["One."] * 1024))
        both = CombinedTagger((tagger, patterns))

        def whole() -> tuple[Mentions, list[str]]:
            mentions = both.tag(texts)
            return mentions, generalise(texts, mentions, levels, ladders).texts

        done, (mentions, _) = _spent("tag and generalise", whole)
        spent = [start, done]
    only, _ = _spent("generalise alone", lambda: generalise(texts, mentions, levels, ladders))
    climbed, _ = _spent("climb alone", lambda: generalise(texts, mentions, KAnonymous(5), ladders))
    return [*spent, only, climbed]


def main() -> None:
    """Print a table of both, and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", choices=("imdb", "gold"), default="imdb")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    texts = _texts(arguments.texts, arguments.count)
    rows, rates = [], []
    for processes in (1, arguments.processes):
        work = functools.partial(_work, texts, processes)
        ended, found = _spent("all, workers included", work, ends=True)
        for one in (*found, ended):
            rate = len(texts) / one.elapsed_s
            rows.append(
                (
                    str(processes),
                    one.name,
                    figure(one.elapsed_s),
                    figure(rate),
                    figure(one.here_s),
                    figure(one.workers_s or None),
                )
            )
        rates.append(len(texts) / found[1].elapsed_s)
    header = ("processes", "work", "elapsed s", "documents/s", "CPU s here", "CPU s workers")
    print(f"{len(texts):,} texts of {arguments.texts}")
    print(aligned(header, rows))
    verdict = "met" if rates[1] >= TARGET * rates[0] else "missed"
    ratio = f"{rates[1] / rates[0]:.2f} times the documents per second"
    print(f"{arguments.processes} processes: {ratio}; target {TARGET}: {verdict}")


if __name__ == "__main__":
    main()
