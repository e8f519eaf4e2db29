"""Run settings over seeds, in a pool of processes.

All settings of a seed share its coins: the same shuffle, and nested random attributes. So
differences between settings are paired.
"""

from collections.abc import Callable, Iterable, Sequence

from noisefloor.collection.training import cross_validate
from noisefloor.randomness import SeededSource, new_run
from noisefloor_sim.reproduce.pool import finished
from noisefloor_sim.reproduce.settings import Setting
from noisefloor_sim.reproduce.sources import SOURCES

Accuracies = dict[Setting, list[float]]
"""In percent, one for each seed in order."""


def run(
    settings: Iterable[Setting],
    seeds: Sequence[int],
    *,
    jobs: int,
    done: Callable[[], None] = lambda: None,
) -> Accuracies:
    """Return the accuracy of every setting for every seed.

    Args:
        settings: What to run, each once.
        seeds: One world each.
        jobs: Worker processes; one runs here.
        done: Called after each seed on each data set.
    """
    by_data: dict[str, list[Setting]] = {}
    for setting in dict.fromkeys(settings):
        by_data.setdefault(setting.data, []).append(setting)
    tasks = [(seed, data, tuple(some)) for seed in seeds for data, some in by_data.items()]
    found: dict[tuple[int, Setting], float] = {}
    for (seed, _, some), accuracies in finished(run_seed, tasks, jobs):
        found |= {(seed, one): it for one, it in zip(some, accuracies, strict=True)}
        done()
    return {one: [found[seed, one] for seed in seeds] for some in by_data.values() for one in some}


def tasks_of(settings: Iterable[Setting], seeds: int) -> int:
    """Return how often ``done`` will be called."""
    return seeds * len({setting.data for setting in settings})


def run_seed(seed: int, data: str, settings: Sequence[Setting]) -> list[float]:
    """Return the accuracy of each setting on one data set, in percent; a worker's whole job."""
    source = SOURCES[data]()
    accuracies = []
    for setting in settings:
        plan = setting.plan(source.schema, source.weight)
        with new_run():
            score = cross_validate(
                source.records, plan, SeededSource(seed, "supml", data), select_from_all=True
            )
        accuracies.append(100 * score.accuracy)
    return accuracies
