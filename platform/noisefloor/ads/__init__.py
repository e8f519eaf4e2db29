"""Advertising without identifiers: what devices and servers do in the ad pipeline."""
