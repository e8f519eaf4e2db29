"""The way from a device to a server: latency, loss, retries, duplicates, outages.

A retry sends the same bytes again, with the same batch id: so the server can tell.
"""

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

import simpy

from noisefloor.randomness import SeededSource
from noisefloor_sim.deploy.hosting import Receiver
from noisefloor_sim.scenario import Network as Shape

HOUR_S = 3600.0

Steps = Generator[simpy.Event, Any, None]
"""What SimPy calls a process: it yields events and gets their values."""


@dataclass(slots=True)
class TrafficCounts:
    """What the network did, as counts."""

    sent: int = 0
    attempts: int = 0
    lost: int = 0
    given_up: int = 0
    duplicated: int = 0
    delivered: int = 0
    longest_queue: int = 0
    longest_wait_s: float = 0.0


@dataclass(slots=True)
class SimulatedNetwork:
    """Carries frames to a server that works through them one at a time."""

    env: simpy.Environment
    shape: Shape
    source: SeededSource
    traffic: TrafficCounts = field(default_factory=TrafficCounts)
    server_queue: simpy.Resource = field(init=False)

    def __post_init__(self) -> None:
        self.server_queue = simpy.Resource(self.env, capacity=1)

    def send(self, data: bytes, receive: Receiver, *name: str | int) -> None:
        """Start a frame on its way to a role; ``name`` names its stream of chances."""
        self.traffic.sent += 1
        self.env.process(self._journey(data, receive, self.source.child("network", *name)))

    def _journey(self, data: bytes, receive: Receiver, source: SeededSource) -> Steps:
        """Try until the frame is through or the retries are used up."""
        chance = source.generator()
        for _ in range(1 + self.shape.retries):
            self.traffic.attempts += 1
            latency = self.shape.latency.median_s * chance.lognormal(
                0.0, self.shape.latency.spread
            )
            if chance.random() < self.shape.reorder:
                latency += self.shape.retry_after_s * chance.random()
            if chance.random() >= self.shape.loss and not self._is_out():
                if chance.random() < self.shape.duplicate:
                    self.traffic.duplicated += 1
                    self.env.process(self._arrive(data, receive, 2 * latency))
                yield from self._arrive(data, receive, latency)
                return
            self.traffic.lost += 1
            yield self.env.timeout(self.shape.retry_after_s * (1 + chance.random()))
        self.traffic.given_up += 1

    def _is_out(self) -> bool:
        hour = self.env.now / HOUR_S
        return any(outage.start_h <= hour < outage.end_h for outage in self.shape.outages)

    def _arrive(self, data: bytes, receive: Receiver, latency: float) -> Steps:
        """Wait for the latency and for one's turn, then hand the frame over."""
        yield self.env.timeout(latency)
        came = self.env.now
        with self.server_queue.request() as turn:
            self.traffic.longest_queue = max(
                self.traffic.longest_queue, len(self.server_queue.queue)
            )
            yield turn
            yield self.env.timeout(1 / self.shape.capacity_frames_per_s)
        self.traffic.longest_wait_s = max(self.traffic.longest_wait_s, self.env.now - came)
        self.traffic.delivered += 1
        receive(data)
