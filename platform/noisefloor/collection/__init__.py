"""Collecting records under local differential privacy, to learn a classifier from them."""
