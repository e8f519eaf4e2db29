"""What requests for ads give away: the favourite ad and the favourite topic."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from noisefloor.accounting import success
from noisefloor.adversary import audit
from noisefloor.checks import Floats, check_count
from noisefloor.mechanisms import Mechanism, Reports
from noisefloor.privacy import Neighbours
from noisefloor.randomness import Source

Candidates = Sequence[Any] | Reports


def favourite(
    distribution: audit.ReportDistribution,
    requests: Reports,
    rows: Candidates,
    prior: audit.Prior = None,
    *,
    is_memoised: bool = False,
) -> audit.Guess:
    """Name the most probable profile, and with it the favourite ad, of each user.

    Sees:      all requests of a user, one per column.
    Knows:     the mechanism, the rows of scores that a user may hold, their prior; whether a
               device repeats its first choice of an epoch.
    Guesses:   the row; where row j stands for "ad j is the favourite", the favourite ad.
    Reference: Bayes; no rule is right more often.
    """
    return audit.most_probable(
        _posterior(distribution, requests, rows, prior, is_memoised=is_memoised)
    )


def favourite_topic(
    distribution: audit.ReportDistribution,
    requests: Reports,
    rows: Candidates,
    topics: Sequence[int] | Reports,
    prior: audit.Prior = None,
    *,
    is_memoised: bool = False,
) -> audit.Guess:
    """Name the most probable topic of the favourite ad of each user.

    Sees:      as ``favourite``.
    Knows:     as ``favourite``, and the topic of each row's favourite ad.
    Guesses:   the topic: its posterior is the sum over its ads.
    Reference: Bayes; no rule is right more often.
    """
    chances = _posterior(distribution, requests, rows, prior, is_memoised=is_memoised)
    return audit.most_probable(audit.grouped(chances, topics))


def _posterior(
    distribution: audit.ReportDistribution,
    requests: Reports,
    rows: Candidates,
    prior: audit.Prior,
    *,
    is_memoised: bool,
) -> Floats:
    seen = requests[:, :1] if is_memoised else requests
    return audit.posterior(distribution, seen, rows, prior)


def success_bound(epsilon: float, requests: int, prior: Floats) -> float:
    """Bound the success from n requests, each epsilon-private.

    Formula: ``e^(T epsilon) / (e^(T epsilon) + h - 1)`` for h equally likely candidates; with a
    prior, 1 / h is the share of the most likely one.
    """
    return float(success(requests * epsilon, 1 / float(np.max(prior))))


@dataclass(frozen=True, slots=True)
class RequestGame:
    """Devices that ask for ads from one of several known rows of scores.

    Attributes:
        mechanism: By which a device picks.
        rows: The rows of scores, or the values, that a user may hold.
        requests: How often a device asks.
        prior: Of the rows; without it, all are alike.
        topics: Of each row's favourite; if given, the topic is to be guessed.
        is_memoised: Whether all requests repeat the first.
    """

    mechanism: Mechanism
    rows: Candidates
    requests: int = 1
    prior: audit.Prior = None
    topics: Sequence[int] | None = None
    is_memoised: bool = False

    def __post_init__(self) -> None:
        check_count(self.requests, "requests")
        audit.check_prior(len(self.rows), self.prior)

    @property
    def fresh(self) -> int:
        """How many requests were drawn, and not repeated."""
        return 1 if self.is_memoised else self.requests

    @property
    def closed_form(self) -> float | None:
        """The exact success, where the outcomes can be summed over."""
        return audit.success_from(self.mechanism, self.rows, self.fresh, self.prior, self.topics)

    @property
    def shares(self) -> Floats:
        """The prior of what is guessed: of rows, or of topics."""
        shares = audit.check_prior(len(self.rows), self.prior)
        return shares if self.topics is None else audit.grouped(shares[None], self.topics)[0]

    def play(self, canaries: int, source: Source) -> audit.AttackOutcome:
        """Let the adversary guess for n devices, and score it."""
        truth, seen = self.requests_of(canaries, source)
        guess, answer = self._guess(seen), truth
        if self.topics is not None:
            answer = np.asarray(self.topics, dtype=np.intp)[truth]
        epsilon = self.mechanism.guarantee(Neighbours.USER).epsilon
        return audit.score(
            guess.candidate,
            answer,
            baseline=float(self.shares.max()),
            bound=success_bound(epsilon, self.fresh, self.shares),
            closed_form=self.closed_form,
            candidates=len(self.shares),
        )

    def requests_of(self, canaries: int, source: Source) -> tuple[audit.Indices, Reports]:
        """Draw each device's row, and return it with its requests."""
        truth = audit.draw_truth(audit.check_prior(len(self.rows), self.prior), canaries, source)
        inputs = np.asarray(self.rows)[truth]
        drawn = [
            self.mechanism.randomise(inputs, source.child("request", number))
            for number in range(self.fresh)
        ]
        return truth, np.stack(drawn * (self.requests // self.fresh), axis=1)

    def _guess(self, seen: Reports) -> audit.Guess:
        if self.topics is None:
            return favourite(
                self.mechanism, seen, self.rows, self.prior, is_memoised=self.is_memoised
            )
        return favourite_topic(
            self.mechanism, seen, self.rows, self.topics, self.prior, is_memoised=self.is_memoised
        )
