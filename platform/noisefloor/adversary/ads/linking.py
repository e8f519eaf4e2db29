"""Linking devices: which two transcripts come from the same person?

Nobody signs a message, but two devices of one person ask from the same profile. The score of a
pair is the likelihood ratio "same profile" to "two independent ones", over a prior on profiles.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import success
from noisefloor.adversary import audit
from noisefloor.adversary.ads.request_inference import Candidates
from noisefloor.checks import Floats, check_count
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import Mechanism, Reports
from noisefloor.privacy import Neighbours
from noisefloor.randomness import Source

Matches = NDArray[np.intp]

_MOST_TRANSCRIPTS = 1 << 11
"""Up to this many pairs are summed over: their table takes 32 MB."""


def pair_ratios(
    distribution: audit.ReportDistribution,
    first: Reports,
    second: Reports,
    candidates: Candidates,
    prior: audit.Prior = None,
) -> Floats:
    """Return the likelihood ratio of every pair: one matrix of devices by devices per group.

    Sees:      transcripts of two sets of devices, shaped groups, devices, messages.
    Knows:     the mechanism, the candidate profiles and their prior.
    Guesses:   nothing yet: P(both | one profile) / (P(the one) P(the other)).
    Reference: Neyman and Pearson 1933 (likelihood ratio), integrated over the prior.
    """
    shares = audit.check_prior(len(candidates), prior)
    if not shares.all():
        raise BadParameter("prior", "<array>", "> 0 for every candidate")
    ours, theirs = (_by_group(distribution, some, candidates, shares) for some in (first, second))
    return np.asarray((ours / shares) @ theirs.swapaxes(1, 2))


def _by_group(
    distribution: audit.ReportDistribution, seen: Reports, candidates: Candidates, prior: Floats
) -> Floats:
    groups, devices = seen.shape[:2]
    flat = seen.reshape(groups * devices, *seen.shape[2:])
    return audit.posterior(distribution, flat, candidates, prior).reshape(
        groups, devices, len(prior)
    )


def best_match(ratios: Floats) -> Matches:
    """Return for each device of the first set the likeliest of the second.

    Sees:      the ratios of ``pair_ratios``.
    Knows:     that each device has exactly one partner in its group.
    Guesses:   the partner, for each device on its own.
    Reference: maximum likelihood; ``linking_success`` is its exact success.

    For every partner, the device's own transcript has a chance that its epsilon confines to
    a factor e^epsilon: so no such guess among N is right more often than e^epsilon /
    (e^epsilon + N - 1), epsilon being that of all messages of the device.
    """
    return np.asarray(ratios.argmax(axis=-1), dtype=np.intp)


def assignment(ratios: Floats) -> Matches:
    """Return the likeliest matching of whole groups: no device is named twice.

    Sees:      the ratios of ``pair_ratios``.
    Knows:     that the two sets of a group are in one-to-one correspondence.
    Guesses:   all partners of a group together.
    Reference: linear assignment. It also learns by exclusion, from what others reveal: so the
               epsilon of one person's messages sets no bound for it.
    """
    from scipy.optimize import linear_sum_assignment  # lazy: scipy is slow to import

    with np.errstate(divide="ignore"):
        # An impossible pair still has to have a finite cost.
        costs = -np.maximum(np.log(ratios), -1e6)
    return np.stack([linear_sum_assignment(group)[1] for group in costs]).astype(np.intp)


def linking_success(
    table: Floats, prior: audit.Prior, devices: int, other_table: Floats | None = None
) -> float:
    """Return how often the best match is right, exactly, among n devices.

    Args:
        table: P(transcript of the first device | profile).
        prior: Of the profiles; people are drawn independently.
        devices: In the second set, the partner among them.
        other_table: The same of the second device; without it, that of the first.
    """
    shares = audit.check_prior(len(table), prior)
    other = table if other_table is None else other_table
    joint = (shares[:, None] * table).T @ other
    ours, theirs = shares @ table, shares @ other
    ratios = joint / np.outer(ours, theirs)
    total = 0.0
    for seen, ratio in zip(joint, np.round(ratios, 9), strict=True):
        total += float(seen @ _wins(ratio, theirs, devices))
    return total


def _wins(ratio: Floats, distribution: Floats, devices: int) -> Floats:
    """Return, for each transcript of the partner, the chance to beat all others, ties tossed."""
    levels, place = np.unique(ratio, return_inverse=True)
    equal = np.bincount(place, weights=distribution, minlength=levels.size)
    up_to = np.minimum(np.cumsum(equal), 1.0)
    below = np.maximum(up_to - equal, 0.0)
    # The sum over k ties of C(N-1, k) equal^k below^(N-1-k) / (k + 1).
    chance = (up_to**devices - below**devices) / (devices * (up_to - below))
    return np.asarray(chance[place])


@dataclass(frozen=True, slots=True)
class LinkingGame:
    """People with two devices each, in groups; the first of each group is the target.

    Attributes:
        mechanism: By which both devices report.
        candidates: The profiles that a person may have.
        devices: People in a group.
        requests: Messages of each device.
        prior: Of the profiles.
        is_null: Whether the second devices have profiles of their own: nothing can be linked.
    """

    mechanism: Mechanism
    candidates: Candidates
    devices: int
    requests: int = 1
    prior: audit.Prior = None
    is_null: bool = False

    def __post_init__(self) -> None:
        check_count(self.devices, "devices", least=2, most=1 << 14)
        check_count(self.requests, "requests")

    @property
    def closed_form(self) -> float | None:
        """The exact success of the best match, where transcripts can be summed over."""
        if self.is_null:
            return 1 / self.devices
        try:
            table = audit.likelihood_table(self.mechanism, self.candidates)
        except BadParameter:
            return None
        counts = audit.counts_table(table, self.requests)
        if counts is None or counts.shape[1] > _MOST_TRANSCRIPTS:
            return None
        return linking_success(counts, self.prior, self.devices)

    def play(
        self, groups: int, source: Source, *, is_assigned: bool = False
    ) -> audit.AttackOutcome:
        """Let the adversary match n groups; only targets count, so games are independent."""
        shares = audit.check_prior(len(self.candidates), self.prior)
        shape = (groups, self.devices)
        people = audit.draw_truth(shares, groups * self.devices, source).reshape(shape)
        order = source.child("order").words(people.size).reshape(shape).argsort(axis=1)
        other = np.take_along_axis(people, order, axis=1)
        if self.is_null:
            other = audit.draw_truth(shares, people.size, source.child("others")).reshape(shape)
        first = self._transcripts(people, source.child("first"))
        second = self._transcripts(other, source.child("second"))
        partners = (order == 0).argmax(axis=1)
        outcome = self.match(first, second, partners, is_assigned=is_assigned)
        return outcome if is_assigned else replace(outcome, closed_form=self.closed_form)

    def match(
        self, first: Reports, second: Reports, partners: Matches, *, is_assigned: bool = False
    ) -> audit.AttackOutcome:
        """Match what devices sent, in a game or in a run, and score the first of each group.

        Args:
            first: Shaped groups, devices, messages.
            second: Likewise.
            partners: The place of each group's target among the second devices.
            is_assigned: Whether whole groups are matched.
        """
        shares = audit.check_prior(len(self.candidates), self.prior)
        ratios = pair_ratios(self.mechanism, first, second, self.candidates, shares)
        matches = assignment(ratios) if is_assigned else best_match(ratios)
        epsilon = self.requests * self.mechanism.guarantee(Neighbours.USER).epsilon
        return audit.score(
            matches[:, 0],
            partners,
            baseline=1 / self.devices,
            bound=1.0 if is_assigned else float(success(epsilon, self.devices)),
            candidates=self.devices,
        )

    def _transcripts(self, people: Matches, source: Source) -> Reports:
        inputs = np.asarray(self.candidates)[people.reshape(-1)]
        drawn = [
            self.mechanism.randomise(inputs, source.child("message", number))
            for number in range(self.requests)
        ]
        seen = np.stack(drawn, axis=1)
        return seen.reshape(*people.shape, *seen.shape[1:])
