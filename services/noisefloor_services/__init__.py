"""Processes around the platform's roles."""

__all__ = []
