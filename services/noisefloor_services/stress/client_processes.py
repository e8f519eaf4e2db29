"""The processes that send: started once, they send their share of one step after the other.

They are spawned, never forked. Each makes the whole plan anew from its few parameters and sends
every n-th request of it, so no plan crosses a pipe.
"""

import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType

from noisefloor.errors import NoisefloorError
from noisefloor_services.stress.client import LoadTarget, run_share
from noisefloor_services.stress.plan import Phase, RequestMix, make_plan
from noisefloor_services.stress.step_record import StepRecord, merged, record_of
from noisefloor_services.stress.templates import RequestTemplate, read_templates

_READY_S = 60.0
_LEAD_S = 0.2
"""Between the order to send and the start of the step: every process has it by then."""

_GRACE_S = 20.0
_END_S = 5.0


class LoadFailed(NoisefloorError):
    """A client process ended or did not answer."""


@dataclass(frozen=True, slots=True)
class StepOrder:
    """One step as client processes are given it.

    Attributes:
        phases: Of the step, the warm-up first.
        mix: What is sent.
        seed: Of the run.
        step: Numbers that tell the step from every other of the run.
        target: Where to.
        repeat_s: How long after the end of the step a refused request is still repeated.
    """

    phases: tuple[Phase, ...]
    mix: RequestMix
    seed: int
    step: tuple[int, ...]
    target: LoadTarget
    repeat_s: float = 2.0

    @property
    def seconds(self) -> float:
        """How long the step takes, its warm-up included."""
        return sum(phase.seconds for phase in self.phases)


@dataclass(frozen=True, slots=True)
class _Start:
    """When the step begins, by the clock that all processes of a machine share."""

    start_us: int


class ClientProcesses:
    """Some client processes; a context manager that ends them, whatever they are at.

    Args:
        count: How many.
        templates: File of the requests.
        kinds: The classes of requests, in order.
    """

    def __init__(self, count: int, templates: Path, kinds: Sequence[str]) -> None:
        self._context = get_context("spawn")
        self._count = count
        self._arguments = (str(templates), tuple(kinds))
        self._pipes: list[Connection] = []
        self._processes = []
        for place in range(count):
            ours, theirs = self._context.Pipe()
            arguments = (theirs, place, count, *self._arguments)
            made = self._context.Process(target=_serve, args=arguments, daemon=True)
            self._pipes.append(ours)
            self._processes.append(made)

    def __enter__(self) -> "ClientProcesses":
        for process in self._processes:
            process.start()
        for pipe in self._pipes:
            self._received(pipe, _READY_S)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for pipe, process in zip(self._pipes, self._processes, strict=True):
            if error is not None:
                process.kill()
            pipe.close()
        for process in self._processes:
            process.join(_END_S)
            if process.is_alive():
                process.kill()
                process.join()

    @property
    def pids(self) -> tuple[int, ...]:
        """The numbers of the processes."""
        return tuple(process.pid or 0 for process in self._processes)

    def send(self, order: StepOrder, begun: Callable[[], object]) -> StepRecord:
        """Let all processes send their shares of a step; return the sum of their records.

        Args:
            order: The step.
            begun: Called once every process has its plan, before the first request is due.

        Raises:
            LoadFailed: A process ended or got stuck.
        """
        for pipe in self._pipes:
            pipe.send(order)
        for pipe in self._pipes:  # each has made its plan
            self._received(pipe, _READY_S)
        begun()
        start = _Start(time.monotonic_ns() // 1000 + round(1e6 * _LEAD_S))
        for pipe in self._pipes:
            pipe.send(start)
        patience_s = order.seconds + order.repeat_s + order.target.timeout_s + _GRACE_S
        found = [self._received(pipe, patience_s) for pipe in self._pipes]
        return merged(one for one in found if isinstance(one, StepRecord))

    def _received(self, pipe: Connection, patience_s: float) -> object:
        try:
            if pipe.poll(patience_s):
                found = pipe.recv()
                if isinstance(found, str):
                    raise LoadFailed(f"A client process failed: {found}")
                return found
        except (EOFError, ConnectionResetError):
            raise LoadFailed("A client process ended before its step was done.") from None
        raise LoadFailed(f"A client process did not answer within {patience_s:.0f} s.")


def _serve(pipe: Connection, place: int, of: int, templates: str, kinds: Sequence[str]) -> None:
    """Send the shares of one process, until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started this one ends it
    try:
        requests = read_templates(Path(templates), kinds)
        pipe.send(None)
        while True:
            pipe.send(_sent(pipe, pipe.recv(), requests, place, of))
    except EOFError:
        return
    except Exception as error:  # it is reported where somebody reads it
        pipe.send(f"{type(error).__name__}: {error}")


def _sent(
    pipe: Connection,
    order: StepOrder,
    requests: Sequence[RequestTemplate],
    place: int,
    of: int,
) -> StepRecord:
    """Make the plan, wait for the start of the step, and send the share of one process."""
    plan = make_plan(order.phases, order.mix, order.seed, *order.step)
    numbers = plan.share(place, of)
    due_us = plan.due_us[numbers].tolist()
    # Made before, like the plan: a device has its frame when its time comes.
    holes = [(requests[plan.templates[n]], plan.batch_id(n)) for n in numbers.tolist()]
    pipe.send(None)
    start: _Start = pipe.recv()
    begun_s = time.process_time()
    core, most_open = run_share(
        order.target,
        due_us,
        lambda at: holes[at][0].written(holes[at][1]),
        start_us=start.start_us,
        retry_until_us=plan.end_us + round(1e6 * order.repeat_s),
    )
    record = record_of(core, plan, numbers)
    record.cpu_s, record.most_open = time.process_time() - begun_s, most_open
    return record
