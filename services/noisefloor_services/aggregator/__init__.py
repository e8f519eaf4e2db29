"""The aggregator: counts reports by kind and epoch, closes epochs, trains in rounds."""

from noisefloor_services.aggregator.app import DESCRIPTION, NAME, RULES, create

__all__ = ["DESCRIPTION", "NAME", "RULES", "create"]
