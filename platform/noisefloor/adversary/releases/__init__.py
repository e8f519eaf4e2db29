"""Attacks on releases with a known law of noise, and on synthetic tables."""
