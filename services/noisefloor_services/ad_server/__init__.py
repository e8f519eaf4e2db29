"""The ad server: takes reports and ad requests of devices, hands out the current broadcast."""

from noisefloor_services.ad_server.app import DESCRIPTION, NAME, RULES, create

__all__ = ["DESCRIPTION", "NAME", "RULES", "create"]
