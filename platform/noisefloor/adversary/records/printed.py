"""What the printed transformation gives away: reports that prove a minimum, or a negative label.

Class 0 is nobody's but those who hold it, and lies come from the classes 1 to L: so a report of
class 0 is a proof. Every negative label is a minimum.
"""

from dataclasses import dataclass

import numpy as np

from noisefloor.accounting import binary_success
from noisefloor.adversary import audit
from noisefloor.adversary.records.channels import check_place
from noisefloor.adversary.records.priors import shares_of
from noisefloor.checks import Floats
from noisefloor.collection.encoding import Codes, PrintedUnified, check_codes, share_of
from noisefloor.distributions import ONE
from noisefloor.errors import BadParameter
from noisefloor.privacy import Neighbours
from noisefloor.randomness import Source


@dataclass(frozen=True, slots=True)
class ClassZeroProofs:
    """Reports that leave no doubt.

    Attributes:
        proved: Of the owners who hold class 0, those whose report says so.
        false: Owners who do not hold it and whose report says so.
        owners: All of them.
    """

    proved: audit.AttackOutcome
    false: int
    owners: int

    @property
    def rate(self) -> float:
        """The share of all owners of whom something is proved."""
        return self.proved.right / self.owners


def attack_class_zero(
    mechanism: PrintedUnified, codes: Codes, source: Source, place: int | None = None
) -> ClassZeroProofs:
    """Look for reports of class 0, at one value or at any.

    Sees:      the report.
    Knows:     that no class is 0 but the minimum's, and no lie.
    Guesses:   that who reports class 0 holds it, and of nobody else.
    Reference: SUP.ML paper, algorithm 4 (the ceiling) and 2 (the lies); ``proof_rates`` is the
               closed form.
    """
    rows = check_codes(codes, [size + 1 for size in mechanism.sizes])
    reports = mechanism.randomise(rows, source)
    at = slice(None) if place is None else [check_place(place, len(mechanism.sizes))]
    holds, says = rows[:, at] == 0, reports[:, at] == 0
    owners = holds.any(axis=1)
    if not owners.any():
        raise BadParameter("codes", f"<{len(rows)} records>", "to hold a class 0")
    proved = (says & holds).any(axis=1)
    rates = proof_rates(mechanism, rows, place)[owners]
    outcome = audit.AttackOutcome(
        int(np.count_nonzero(proved)), int(owners.sum()), 0.0, 1.0, float(rates.mean())
    )
    return ClassZeroProofs(outcome, int(np.count_nonzero((says & ~holds).any(axis=1))), len(rows))


def proof_rates(mechanism: PrintedUnified, codes: Codes, place: int | None = None) -> Floats:
    """Return for each owner how often a report proves a class 0.

    Formula: 1 - the product over the owner's classes 0 of 1 - keep; keep = e^s / (e^s + L - 1).
    """
    at = slice(None) if place is None else [place]
    lost = np.array([(ONE - keep) / ONE for keep in mechanism.keeps])[at]
    return np.asarray(1 - np.where(np.asarray(codes)[:, at] == 0, lost, 1.0).prod(axis=1))


def attack_printed_label(
    mechanism: PrintedUnified, codes: Codes, source: Source
) -> audit.AttackOutcome:
    """Guess the label of each owner from the printed report of it.

    Sees:      the reported class of the label.
    Knows:     the distribution as printed: -1 is class 0, +1 the last class; and the labels'
               shares.
    Guesses:   the label.
    Reference: Bayes; ``printed_label_success`` is the closed form.
    """
    rows = check_codes(codes, [size + 1 for size in mechanism.sizes])
    positive = (rows[:, -1] > 0).astype(np.intp)
    prior, label = shares_of(positive, 2), _label_of(mechanism)
    reports = mechanism.randomise(rows, source)[:, -1:]
    candidates = np.array([[0], [mechanism.sizes[-1]]])
    chances = audit.posterior(label, reports[:, None], candidates, prior)
    promised = mechanism.guarantee(Neighbours.USER).epsilon
    return audit.score(
        audit.most_probable(chances).candidate,
        positive,
        baseline=float(prior.max()),
        bound=float(binary_success(promised)),
        closed_form=printed_label_success(mechanism, prior),
    )


def printed_label_success(mechanism: PrintedUnified, prior: Floats) -> float:
    """Return how often the label is named from its report, by the shares of -1 and +1."""
    last = mechanism.sizes[-1]
    return audit.success_of(
        audit.likelihood_table(_label_of(mechanism), np.array([[0], [last]])), prior
    )


def _label_of(mechanism: PrintedUnified) -> PrintedUnified:
    """Return the response of the label alone."""
    return PrintedUnified(mechanism.sizes[-1:], _share(mechanism), mechanism.lies)


def _share(mechanism: PrintedUnified) -> float:
    return share_of(mechanism.epsilon, len(mechanism.sizes))
