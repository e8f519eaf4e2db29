"""Work on many tasks in a pool of processes."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from typing import TypeVar, TypeVarTuple

from noisefloor.worker_processes import worker_pool

Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")


def run_in_pool(
    work: Callable[[*Arguments], Result], tasks: Sequence[tuple[*Arguments]], jobs: int
) -> Iterator[tuple[tuple[*Arguments], Result]]:
    """Give each task with its result, as they finish.

    Args:
        work: A worker's whole job; a function of a module, so that workers find it.
        tasks: What it is called with.
        jobs: Worker processes; one runs here.
    """
    if jobs == 1 or len(tasks) < 2:
        for task in tasks:
            yield task, work(*task)
        return
    with worker_pool(min(jobs, len(tasks))) as pool:
        waiting = {pool.submit(work, *task): task for task in tasks}
        try:
            for future in as_completed(waiting):
                yield waiting[future], future.result()
        except BaseException:  # an interruption: what has not begun need not begin
            pool.shutdown(wait=False, cancel_futures=True)
            raise
