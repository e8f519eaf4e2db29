"""Roles: the servers as pure state machines, message in, state and answer out.

No clock, no socket and no randomness: services wrap them for the network, the simulator runs
them in its own process. ``kinds`` lists every kind of frame that they may be asked to count.
"""

from noisefloor.roles.ad_course import AdCourse
from noisefloor.roles.ad_server import AdServer, impressions_kind
from noisefloor.roles.aggregator import Aggregator
from noisefloor.roles.artefact import Artefact
from noisefloor.roles.broadcast import read_broadcast, write_broadcast
from noisefloor.roles.catalogue import Ad, Catalogue
from noisefloor.roles.epochs import EpochSummary, Limits
from noisefloor.roles.kinds import BUILDERS, kinds_of
from noisefloor.roles.learner import Learner
from noisefloor.roles.methods import methods_of
from noisefloor.roles.model_publisher import MemoryShelf, Method, ModelPublisher, Request, State
from noisefloor.roles.outcomes import Counters, DeadLetter, Outcome, Status

__all__ = [
    "BUILDERS",
    "Ad",
    "AdCourse",
    "AdServer",
    "Aggregator",
    "Artefact",
    "Catalogue",
    "Counters",
    "DeadLetter",
    "EpochSummary",
    "Learner",
    "Limits",
    "MemoryShelf",
    "Method",
    "ModelPublisher",
    "Outcome",
    "Request",
    "State",
    "Status",
    "impressions_kind",
    "kinds_of",
    "methods_of",
    "read_broadcast",
    "write_broadcast",
]
