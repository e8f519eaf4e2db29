"""Entities: mentions of people, places and the like in texts."""

from noisefloor.publication.text.entities.mentions import EntityKind, Mentions, join_mentions

__all__ = ["EntityKind", "Mentions", "join_mentions"]
