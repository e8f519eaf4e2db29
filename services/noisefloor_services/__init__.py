"""Processes around the platform's roles."""
