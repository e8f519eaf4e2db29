"""Attacks on collected records: what one response, or many, give away of a record."""
