"""What a step used, from the samples around it, and what was at its limit in it."""

from collections.abc import Sequence
from dataclasses import dataclass

from noisefloor_services.stress.sampler import Sample

FULL = 0.9
"""A process that used so much of a core, or a machine so much of its cores, was at its limit: over
a step of seconds, samples and ticks of 10 ms leave some percent of a full core unseen."""

CLIENT = "load-client"
"""How the names of the client's processes begin."""


@dataclass(frozen=True, slots=True)
class ProcessUse:
    """What a process used in a step.

    Attributes:
        cores: Processor time over time.
        cpu_s: Processor time.
        memory_bytes: Resident, at most.
        descriptors: Open, at most.
        switches: Context switches.
    """

    cores: float
    cpu_s: float
    memory_bytes: int
    descriptors: int
    switches: int


@dataclass(frozen=True, slots=True)
class StepUse:
    """What everybody used in a step.

    Attributes:
        seconds: Between the first and the last sample.
        processes: By name; a process that ended meanwhile is left out.
        machine_cores: Cores that were busy, of all that ran.
        steal: Share of the machine's time that the host gave to others.
        load: Of the machine, at the end.
        pending: Frames that waited, sample by sample.
    """

    seconds: float
    processes: dict[str, ProcessUse]
    machine_cores: float
    steal: float
    load: float
    pending: tuple[int, ...]

    @property
    def other_cores(self) -> float:
        """Cores that were busy with work that is none of ours."""
        return max(0.0, self.machine_cores - sum(one.cores for one in self.processes.values()))

    @property
    def lag_grew(self) -> int:
        """Frames that wait at the end beyond those that waited at the start."""
        return self.pending[-1] - self.pending[0] if self.pending else 0


def use_between(samples: Sequence[Sample], cores: int) -> StepUse:
    """Return what was used between the first and the last of some samples.

    Args:
        samples: At least two.
        cores: Of the machine.
    """
    first, last = samples[0], samples[-1]
    seconds = max(1e-9, last.at_s - first.at_s)
    used = {
        name: _used(name, samples, seconds) for name in first.processes if name in last.processes
    }
    steal_s = last.machine.steal_s - first.machine.steal_s
    return StepUse(
        seconds,
        used,
        (last.machine.busy_s - first.machine.busy_s) / seconds,
        steal_s / (cores * seconds),
        last.machine.load,
        tuple(one.lag.pending for one in samples if one.lag is not None),
    )


def _used(name: str, samples: Sequence[Sample], seconds: float) -> ProcessUse:
    seen = [one.processes[name] for one in samples if name in one.processes]
    cpu_s = seen[-1].cpu_s - seen[0].cpu_s
    return ProcessUse(
        cpu_s / seconds,
        cpu_s,
        max(one.memory_bytes for one in seen),
        max(one.descriptors for one in seen),
        seen[-1].switches - seen[0].switches,
    )


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """What was at its limit in a step.

    Attributes:
        what: In words; empty if nothing was seen at its limit.
        is_client: Whether it was the client, or the machine that the client shares: what the
            services can do is then at least what was measured.
    """

    what: str
    is_client: bool


def bottleneck(use: StepUse, *, cores: int, is_trusted: bool, has_refused: bool) -> Bottleneck:
    """Name what was at its limit in a step.

    The client comes first: if it was slow, nothing is known of the services. A process of the
    services that fills a core is the limit, even where the machine is full as well.

    Args:
        use: What everybody used.
        cores: Of the machine.
        is_trusted: Whether the client kept to its plan.
        has_refused: Whether frames were refused for now: the stream was at its high water.
    """
    full = {name: one.cores for name, one in use.processes.items() if one.cores >= FULL}
    clients = sorted(name for name in full if name.startswith(CLIENT))
    if clients:
        return Bottleneck(f"{clients[0]} at {full[clients[0]]:.0%} of a core", True)
    is_machine_full = use.machine_cores >= FULL * cores
    busy = f"{use.machine_cores:.1f} of {cores} cores busy, {use.other_cores:.1f} with other work"
    if not is_trusted and not full:
        why = f"; {busy}" if is_machine_full else ""
        return Bottleneck(f"the client, behind its own plan{why}", True)
    if full:
        name = max(full, key=lambda one: full[one])
        return Bottleneck(f"{name} at {full[name]:.0%} of a core", not is_trusted)
    if has_refused:
        return Bottleneck("the stream at its high water", False)
    if is_machine_full:
        return Bottleneck(f"the machine that the client shares: {busy}", True)
    return Bottleneck("", False)
