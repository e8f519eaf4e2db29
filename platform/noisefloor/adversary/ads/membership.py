"""Membership in training: did this person take part, by the tallies of every round?

The published model is an affine map of the tallies, so who sees the one sees the other. Given the
broadcasts, rounds are independent. Others are drawn from a known population: each of their
reports follows the population's mean distribution q, the member's follows p, and the likelihood
ratio of a tally is, exactly, the mean of p / q over the reports behind it.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import binary_success
from noisefloor.adversary import audit
from noisefloor.checks import Floats, check_count
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import Mechanism, Reports
from noisefloor.privacy import Neighbours
from noisefloor.randomness import Source


def log_ratios(tallies: Reports, member: Floats, population: Floats) -> Floats:
    """Return ln P(tallies | took part) / P(tallies | somebody else did), over all rounds.

    Sees:      the tally of every round: how often each report came, among n.
    Knows:     the distribution of the member's report and of a random person's, in every round.
    Guesses:   that the person took part where the ratio is above 0.
    Reference: Neyman and Pearson 1933; the ratio is our own derivation, see the module.

    Args:
        tallies: Games (or nothing), rounds, kinds of report.
        member: P(report) of the person, rounds by kinds.
        population: P(report) of a random person, rounds by kinds.
    """
    if np.any((population <= 0) & (member > 0)):
        raise BadParameter("population", "<array>", "> 0 wherever the member's law is")
    weight = member / np.where(population > 0, population, 1.0)
    mean = (tallies * weight).sum(axis=-1) / tallies.sum(axis=-1)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(mean).sum(axis=-1))


def expected_success(member: Floats, population: Floats, n: int) -> float:
    """Approximate how often membership is guessed, for many people.

    Formula: Phi(d / 2), d^2 = sum over rounds of chi^2(p || q) / n: the log-ratio is Gaussian.
    """
    from scipy.special import ndtr  # lazy: scipy is slow to import

    possible = population > 0
    gap = np.where(possible, member - population, 0.0) ** 2
    divergence = float((gap / np.where(possible, population, 1.0)).sum())
    return float(ndtr(math.sqrt(divergence / check_count(n, "n")) / 2))


def exact_success(member: Floats, population: Floats, n: int) -> float | None:
    """Return the success of guessing membership from one round; None if n is too large."""
    distributions = audit.merged(np.stack([member, population]))
    kinds = distributions.shape[1]
    if not audit.is_listable(check_count(n, "n"), kinds, 2):
        return None
    tallies = audit.compositions(n, kinds)
    absent = audit.counts_distribution(distributions[1:], tallies)[0]
    ratio = np.exp(log_ratios(tallies[:, None], distributions[:1], distributions[1:]))
    return float(np.maximum(absent, absent * ratio).sum() / 2)


@dataclass(frozen=True, slots=True)
class MembershipGame:
    """Rounds of training with n reports each; a fair coin decides whether the target is in.

    In all rounds or in none; if not, a random person takes the place, so that n tells nothing.

    Attributes:
        mechanism: Of one round; its reports are integers below the number of its outputs.
        target: The target's value in each round, rounds along the first axis.
        people: Values that a random person holds, each as likely, the same in all rounds.
        n: Reports a round.
    """

    mechanism: Mechanism
    target: Reports
    people: Reports
    n: int

    def __post_init__(self) -> None:
        check_count(self.n, "n")

    @property
    def member(self) -> Floats:
        """The distribution of the target's report in each round."""
        return audit.likelihood_table(self.mechanism, self.target)

    @property
    def population(self) -> Floats:
        """The distribution of a random person's report in each round."""
        mean = audit.likelihood_table(self.mechanism, self.people).mean(axis=0)
        return np.repeat(mean[None], len(self.target), axis=0)

    @property
    def closed_form(self) -> float:
        """The success: exact for one round of few people, else the Gaussian approximation."""
        member, population = self.member, self.population
        exact = None
        if len(member) == 1:
            exact = exact_success(member[0], population[0], self.n)
        return expected_success(member, population, self.n) if exact is None else exact

    def play(self, games: int, source: Source) -> audit.AttackOutcome:
        """Play ``games`` games, and let the adversary say who took part."""
        truth = audit.draw_truth(np.full(2, 0.5), games, source)
        tallies = [
            self._tally(number, truth == 1, source.child("round", number))
            for number in range(len(self.target))
        ]
        ratios = log_ratios(np.stack(tallies, axis=1), self.member, self.population)
        epsilon = len(self.target) * self.mechanism.guarantee(Neighbours.USER).epsilon
        return audit.score(
            (ratios > 0).astype(np.intp),
            truth,
            baseline=0.5,
            bound=float(binary_success(epsilon)),
            closed_form=self.closed_form,
        )

    def _tally(self, number: int, is_in: NDArray[np.bool_], source: Source) -> Reports:
        """Return one round's tallies, a row per game; the first report may be the target's."""
        games, kinds = len(is_in), self.member.shape[1]
        drawn = source.child("people").below(len(self.people), games * self.n)
        values = np.asarray(self.people)[drawn.reshape(games, self.n)]
        values[is_in, 0] = self.target[number]
        flat = values.reshape(games * self.n, *values.shape[2:])
        reports = self.mechanism.randomise(flat, source.child("reports")).astype(np.int64)
        codes = np.repeat(np.arange(games) * kinds, self.n) + reports
        return np.bincount(codes, minlength=games * kinds).reshape(games, kinds)
