"""What tests ask of an attack's outcome: its closed form met, its bound kept."""

from noisefloor.adversary.audit.intervals import lower_limit
from noisefloor.adversary.audit.outcome import AttackOutcome
from statistics_of_tests import FALSE_ALARM, binomial_p

LOUDER = 1.25
"""Twins have an epsilon larger by this factor."""


def assert_met(outcome: AttackOutcome) -> None:
    """The success is that of the closed form (false alarm FALSE_ALARM), and below the bound.

    Owners are given and their draws independent, so the count is a sum of draws whose chances
    differ: less spread than the binomial distribution of their mean, whose p-value is then too
    large.
    """
    assert outcome.closed_form is not None
    assert binomial_p(outcome.right, outcome.n, outcome.closed_form) > FALSE_ALARM
    assert outcome.closed_form <= outcome.bound + 1e-9
    assert lower_limit(outcome.right, outcome.n, FALSE_ALARM) <= outcome.bound


def assert_caught(outcome: AttackOutcome, honest: float) -> None:
    """A twin's success is not what the honest closed form says."""
    assert binomial_p(outcome.right, outcome.n, honest) < FALSE_ALARM
