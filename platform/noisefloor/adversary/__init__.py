"""The adversary: what an attacker can reach on what was released. It never sees the truth.

Here: the auditor and its line-up, guesses from exact likelihoods, outcomes, intervals, curves and
audits that any attack uses. In rooms of their own: ``ads``, ``records`` (collected), ``releases``
(with a known law of noise, and synthetic tables), ``models`` (trained).
"""
