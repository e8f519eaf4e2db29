"""Work on many tasks in a pool of processes."""

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import TypeVar, TypeVarTuple

Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")

_ONE_THREAD = {
    name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
}


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
    os.environ.update(_ONE_THREAD)  # workers read it when they load numpy
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(jobs, len(tasks)), mp_context=context) as pool:
        waiting = {pool.submit(work, *task): task for task in tasks}
        try:
            for future in as_completed(waiting):
                yield waiting[future], future.result()
        except BaseException:  # an interruption: what has not begun need not begin
            pool.shutdown(wait=False, cancel_futures=True)
            raise
