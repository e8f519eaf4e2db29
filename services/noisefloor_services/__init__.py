"""The services as processes: ad server, aggregator, model publisher, workers, store.

The store counts by scripts of its own, which tests compare with the roles of the platform.
"""

__all__ = []
