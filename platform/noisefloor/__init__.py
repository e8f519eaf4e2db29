"""The platform: what a real deployment would ship. It knows nothing of simulation."""

__all__ = []
