"""The aggregator: counts reports by kind and epoch, closes epochs, trains in rounds."""

from noisefloor_services.aggregator.app import NAME, create

__all__ = ["NAME", "create"]
