"""Pools of worker processes, each with one thread, that end with the process that started them."""

import multiprocessing
import os
import threading
from concurrent.futures import ProcessPoolExecutor

_ONE_THREAD = {
    name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
}


def worker_pool(workers: int) -> ProcessPoolExecutor:
    """Return a pool of spawned processes; a killed parent leaves none of them behind."""
    os.environ.update(_ONE_THREAD)  # workers read it when they load numpy
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(workers, mp_context=context, initializer=_end_with_parent)


def _end_with_parent() -> None:
    """End this process as soon as its parent has ended, whatever it does then.

    A worker waits on a pipe of which it holds both ends: that a killed parent is gone, it would
    never see there.
    """
    threading.Thread(target=_wait_for_parent, name="parent", daemon=True).start()


def _wait_for_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
