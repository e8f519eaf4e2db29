"""Streams: frames in Redis or Valkey, counted exactly once.

``ingest`` and ``producer`` append frames, ``worker`` takes them into the sums, ``store`` closes
and releases epochs, ``conservation`` says whether all is accounted for, ``probe`` what the server
really keeps. ``keys`` has every name; the atomic steps are the scripts in ``lua``.
"""
