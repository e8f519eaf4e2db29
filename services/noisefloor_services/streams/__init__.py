"""Streams: frames in Redis or Valkey, counted exactly once.

``ingest`` and ``producer`` append frames, ``worker`` takes them into the sums, ``store`` closes
and releases epochs, ``conservation`` says whether all is accounted for, ``probe`` what the server
really keeps. ``keys`` has every name; the atomic steps are the scripts in ``lua``.
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
