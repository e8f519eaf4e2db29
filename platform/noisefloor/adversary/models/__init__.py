"""Attacks on trained models: shadow models, and canaries that see the noise."""
