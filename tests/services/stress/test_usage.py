"""What was used between samples, and what is named as the limit."""

import os

import pytest

from noisefloor_services.stress.sampler import (
    LagSample,
    MachineSample,
    ProcessSample,
    Sample,
    birth,
    machine_sample,
    process_sample,
)
from noisefloor_services.stress.usage import StepUse, bottleneck, use_between


def sample(at_s: float, busy_s: float, pending: int, **cpu_s: float) -> Sample:
    processes = {
        name.replace("_", "-"): ProcessSample(spent, 1_000 + int(at_s), 5, int(10 * at_s))
        for name, spent in cpu_s.items()
    }
    return Sample(at_s, processes, MachineSample(busy_s, 0.0, 1.0), LagSample(0, pending))


def used(seconds: float = 10.0, busy: float = 1.0, **cores: float) -> StepUse:
    none = dict.fromkeys(cores, 0.0)
    spent = {name: seconds * share for name, share in cores.items()}
    first, last = sample(0, 0, 0, **none), sample(seconds, busy * seconds, 0, **spent)
    return use_between([first, last], 2)


def test_use_is_the_difference_between_the_first_and_the_last_sample() -> None:
    samples = [sample(0, 4, 7, ad_server=1.0), sample(1, 5, 90, ad_server=1.2),
               sample(4, 8, 17, ad_server=3.0)]  # fmt: skip
    found = use_between(samples, 2)
    assert found.seconds == 4
    assert found.machine_cores == 1.0
    one = found.processes["ad-server"]
    assert (one.cores, one.cpu_s, one.memory_bytes, one.switches) == (0.5, 2.0, 1_004, 40)
    assert found.pending == (7, 90, 17)
    assert found.lag_grew == 10


def test_a_process_that_ends_meanwhile_has_no_use() -> None:
    found = use_between([sample(0, 0, 0, worker=1.0), sample(1, 1, 0)], 2)
    assert found.processes == {}


@pytest.mark.parametrize(
    ("use", "trusted", "refused", "what", "is_client"),
    [
        (used(ad_server=0.95), True, False, "ad-server at 95% of a core", False),
        (used(ad_server=0.95, load_client_1=0.97), True, False, "load-client-1 at 97%", True),
        (used(load_client_1=0.95), True, True, "load-client-1 at 95%", True),
        (used(ad_server=0.5), False, False, "the client, behind its own plan", True),
        (
            used(busy=1.9, ad_server=0.5),
            False,
            False,
            "1.9 of 2 cores busy, 1.4 with other work",
            True,
        ),
        (used(busy=1.9, ad_server=0.5), True, False, "with other work", True),
        (used(ad_server=0.5), True, True, "the stream at its high water", False),
        (used(ad_server=0.95), False, False, "ad-server at 95% of a core", True),
        (used(ad_server=0.5), True, False, "", False),
    ],
)
def test_what_was_at_its_limit_is_named(
    use: StepUse, trusted: bool, refused: bool, what: str, is_client: bool
) -> None:
    found = bottleneck(use, cores=2, is_trusted=trusted, has_refused=refused)
    assert what in found.what
    assert bool(found.what) is bool(what)
    assert found.is_client is is_client


def test_our_own_process_can_be_read() -> None:
    found = process_sample(os.getpid())
    assert found is not None
    assert found.cpu_s > 0
    assert found.memory_bytes > 1 << 20
    assert found.descriptors > 0
    assert birth(os.getpid())
    machine = machine_sample()
    assert machine.busy_s > 0


def test_a_process_that_is_gone_gives_no_sample() -> None:
    assert process_sample(1 << 30) is None
    assert birth(1 << 30) == ""
