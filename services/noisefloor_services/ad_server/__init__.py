"""The ad server: takes reports and ad requests of devices, serves the current broadcast."""

from noisefloor_services.ad_server.app import NAME, RULES, create

__all__ = ["NAME", "RULES", "create"]
