"""The frames that the devices of a scenario send, without what servers do with them."""

from collections.abc import Callable
from dataclasses import dataclass, field

from noisefloor import roles
from noisefloor.randomness import new_run
from noisefloor_sim.deploy.hosting import InProcessHost, Receiver
from noisefloor_sim.pipelines import PIPELINES
from noisefloor_sim.runs.engine import Engine
from noisefloor_sim.scenario import Scenario

REQUESTS = "requests"
"""The topic of frames of requests; all others go where reports go."""

Progress = Callable[[int, int], None]


@dataclass(slots=True)
class RecordedFrames:
    """What devices sent in a run.

    Attributes:
        collection: What the servers of that world collect.
        frames: Topic and bytes of every frame that arrived, in the order of arrival.
    """

    collection: roles.CollectionConfig = field(default_factory=roles.CollectionConfig)
    frames: list[tuple[str, bytes]] = field(default_factory=list)


class _RecordingHost:
    """The roles in this process, and a record of what is sent to them."""

    def __init__(self, recorded: RecordedFrames) -> None:
        self._recorded = recorded

    def open(self, collection: roles.CollectionConfig) -> "_RecordingServers":
        self._recorded.collection = collection
        return _RecordingServers(collection, self._recorded)


class _RecordingServers:
    """The servers of one world; they work as they do without a record."""

    def __init__(self, collection: roles.CollectionConfig, recorded: RecordedFrames) -> None:
        hosted = InProcessHost().open(collection)
        self._receiver = hosted.receiver
        self._recorded = recorded
        self.servers, self.collection = hosted.servers, hosted.collection
        self.learner, self.publisher, self.close = hosted.learner, hosted.publisher, hosted.close

    def receiver(self, topic: str, handle: Receiver) -> Receiver:
        """Return a receiver that keeps each frame, and then does what it is for."""
        receive = self._receiver(topic, handle)

        def record(data: bytes) -> None:
            self._recorded.frames.append((topic, data))
            receive(data)

        return record


def record_frames(scenario: Scenario, progress: Progress | None = None) -> RecordedFrames:
    """Let the days of a scenario pass, and return the frames that its devices sent.

    Nothing is scored and nothing is attacked.

    Args:
        scenario: Without a sweep.
        progress: Called with the number of cohorts that have woken, and of all.
    """
    recorded = RecordedFrames()
    with new_run():
        engine = Engine(scenario, PIPELINES, hosting=_RecordingHost(recorded))
        try:
            engine.run_days(progress)
        finally:
            engine.hosted.close()
    return recorded
