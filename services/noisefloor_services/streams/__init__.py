"""Streams: frames in Redis or Valkey, counted exactly once.

``ingest`` appends frames, ``worker`` adds them to the sums, ``epoch_store`` closes and releases
epochs and accounts for every frame, ``pending`` finds frames that no worker settles. Each atomic
step is a script in ``store/lua``.
"""

from noisefloor_services.streams.batch import FrameGroup
from noisefloor_services.streams.counting import CountingThread, CountingThreads
from noisefloor_services.streams.epoch_store import Conservation, EpochStore
from noisefloor_services.streams.ingest import Ingest
from noisefloor_services.streams.pending import LagWatch
from noisefloor_services.streams.worker import ABANDONED_S, Worker
from noisefloor_services.streams.write_path import Producer, WritePath

__all__ = [
    "ABANDONED_S",
    "Conservation",
    "CountingThread",
    "CountingThreads",
    "EpochStore",
    "FrameGroup",
    "Ingest",
    "LagWatch",
    "Producer",
    "Worker",
    "WritePath",
]
