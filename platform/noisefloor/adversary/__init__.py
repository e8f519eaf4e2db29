"""The adversary: what an attacker can reach on what was released. It never sees the truth.

Here: the auditor and its line-up, guesses from exact likelihoods, outcomes, intervals, curves and
audits that any attack uses. In packages of their own: ``ads``, ``records`` (collected),
``releases`` (with a known distribution of noise, and synthetic tables), ``models`` (trained),
``text`` (published texts, and the generators that wrote them).
"""
