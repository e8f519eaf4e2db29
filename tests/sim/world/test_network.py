"""The network, frame by frame: attempts, outages, duplicates and queues on the clock.

Without spread every latency is the median; frames are sent at time 0 unless said otherwise.
"""

import pytest
import simpy

from noisefloor.randomness import SeededSource
from noisefloor_sim.scenario.sections import Latency, Outage
from noisefloor_sim.scenario.sections import Network as Shape
from noisefloor_sim.world.network import HOUR_S, SimulatedNetwork
from statistics_of_tests import FALSE_ALARM, binomial_p

LATENCY_S, SERVICE_S = 2.0, 0.5
ALWAYS = (Outage(start_h=0.0, end_h=1_000.0),)


class Wire:
    """A network whose arrivals are written down with their times."""

    def __init__(self, **shape: object) -> None:
        settings = {
            "latency": Latency(median_s=LATENCY_S, spread=0.0),
            "capacity_frames_per_s": 1 / SERVICE_S,
            **shape,
        }
        self.env = simpy.Environment()
        source = SeededSource(3, "network")
        self.network = SimulatedNetwork(self.env, Shape.model_validate(settings), source)
        self.arrived: list[tuple[float, bytes]] = []

    def receive(self, data: bytes) -> None:
        self.arrived.append((self.env.now, data))

    def send(self, *frames: bytes, at_s: float = 0.0) -> None:
        if at_s:
            self.env.run(until=at_s)
        for place, frame in enumerate(frames):
            self.network.send(frame, self.receive, place)

    def done(self) -> "Wire":
        self.env.run()
        return self


def test_a_frame_arrives_once_after_its_latency_and_its_service() -> None:
    wire = Wire(retries=0)
    wire.send(b"frame")
    assert wire.done().arrived == [(LATENCY_S + SERVICE_S, b"frame")]
    traffic = wire.network.traffic
    assert (traffic.sent, traffic.attempts, traffic.delivered) == (1, 1, 1)
    assert (traffic.lost, traffic.given_up, traffic.duplicated) == (0, 0, 0)
    assert (traffic.longest_queue, traffic.longest_wait_s) == (0, SERVICE_S)


@pytest.mark.parametrize("retries", [0, 1, 5])
def test_a_frame_is_sent_once_and_then_as_often_as_there_are_retries(retries: int) -> None:
    wire = Wire(retries=retries, outages=ALWAYS)
    wire.send(b"frame")
    traffic = wire.done().network.traffic
    assert wire.arrived == []
    assert (traffic.attempts, traffic.lost) == (1 + retries, 1 + retries)
    assert (traffic.given_up, traffic.delivered) == (1, 0)


def test_retries_wait_once_to_twice_the_time_that_is_set() -> None:
    """The outage ends so late that the third attempt, at 200 to 400 s, is the first to pass."""
    wire = Wire(retries=9, retry_after_s=100.0, outages=(Outage(start_h=0, end_h=200 / HOUR_S),))
    wire.send(*(b"%d" % number for number in range(50)))
    times = [time - LATENCY_S for time, _ in wire.done().arrived]
    assert len(times) == 50
    assert 200.0 <= min(times) < 220.0
    assert 270.0 < max(times) <= 400.0 + 50 * SERVICE_S


@pytest.mark.parametrize(
    ("hour", "is_through"), [(0.999, True), (1.0, False), (1.999, False), (2.0, True)]
)
def test_an_outage_has_its_first_moment_and_not_its_last(hour: float, is_through: bool) -> None:
    wire = Wire(retries=0, outages=(Outage(start_h=1.0, end_h=2.0),))
    wire.send(b"frame", at_s=hour * HOUR_S)
    assert len(wire.done().arrived) == int(is_through)
    assert wire.network.traffic.given_up == int(not is_through)


def test_a_duplicate_comes_after_twice_the_latency_with_the_same_bytes() -> None:
    wire = Wire(duplicate=1.0)
    wire.send(b"frame")
    once, again = LATENCY_S + SERVICE_S, 2 * LATENCY_S + SERVICE_S
    assert wire.done().arrived == [(once, b"frame"), (again, b"frame")]
    traffic = wire.network.traffic
    assert (traffic.sent, traffic.duplicated, traffic.delivered) == (1, 1, 2)


def test_a_frame_that_is_delayed_arrives_later_by_less_than_a_retry() -> None:
    wire = Wire(reorder=1.0, retry_after_s=100.0)
    wire.send(*(b"%d" % number for number in range(50)))
    order = [int(data) for _, data in wire.done().arrived]
    assert sorted(order) == list(range(50)) != order
    times = [time for time, _ in wire.arrived]
    assert LATENCY_S + SERVICE_S < times[0] < times[-1] < LATENCY_S + 100.0 + 50 * SERVICE_S
    assert times[-1] > 90.0


def test_a_server_takes_one_frame_after_the_other() -> None:
    wire = Wire()
    wire.send(b"0", b"1", b"2", b"3")
    times = [LATENCY_S + place * SERVICE_S for place in range(1, 5)]
    assert wire.done().arrived == [(time, b"%d" % at) for at, time in enumerate(times)]
    assert wire.network.traffic.longest_queue == 3
    assert wire.network.traffic.longest_wait_s == 4 * SERVICE_S


@pytest.mark.statistical
def test_loss_is_as_frequent_as_it_is_set() -> None:
    """n = 3,000 attempts; false alarm FALSE_ALARM. The twin is lost a fifth more often."""
    wire = Wire(loss=0.5, retries=0)
    wire.send(*[b"frame"] * 3_000)
    lost = wire.done().network.traffic.lost
    assert binomial_p(lost, 3_000, 0.5) > FALSE_ALARM
    assert binomial_p(lost, 3_000, 0.6) < FALSE_ALARM
