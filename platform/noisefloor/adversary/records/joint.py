"""What a joint response gives away of each part of the tuple that was drawn.

Which attributes were drawn is in the report and tells nothing. With M symbols the tuple is true
with e^eps / (e^eps + M - 1) = lam + (1 - lam) / M; a part of L classes with lam + (1 - lam) / L,
since a lie about the tuple is even over its other symbols. So the label alone is far safer than
the epsilon says, and the tuple as a whole is not.
"""

import numpy as np

from noisefloor.accounting import success
from noisefloor.adversary.audit import AttackOutcome, Prior, score
from noisefloor.adversary.records.channels import Channel
from noisefloor.adversary.records.priors import shares_of
from noisefloor.checks import Floats, check_count
from noisefloor.collection.encoding import Codes, JointResponse, response_over
from noisefloor.mechanisms import Reports
from noisefloor.randomness import Source


def part_channel(space: int, size: int, epsilon: float) -> Channel:
    """Return what a part of ``size`` classes goes through: kept with lam + (1 - lam) / L.

    Each class is a part of M / L symbols, and a lie about the tuple may still be true of the part.
    """
    whole, shared = Channel.of(response_over(space, epsilon)), space // size
    return Channel(size, whole.keep + (shared - 1) * whole.lie, shared * whole.lie)


def attack_part(
    mechanism: JointResponse, rows: Codes, source: Source, place: int, prior: Prior = None
) -> AttackOutcome:
    """Guess one value of those owners who drew it, from what was reported of it.

    Sees:      the reported class of one attribute, or the reported label; n is of those who drew.
    Knows:     the mechanism, and the shares of the classes; without them, nothing.
    Guesses:   the class.
    Reference: Bayes; ``part_channel`` has the closed form.

    Args:
        mechanism: What answers.
        rows: Classes of all attributes of each owner, then the label where there is one.
        source: Of the reports.
        place: Of an attribute, or the number of attributes for the label.
        prior: Shares of the classes, if known.
    """
    attributes = len(mechanism.sizes)
    check_count(place, "place", least=0, most=attributes - 1 + mechanism.labelled)
    size = (*mechanism.sizes, mechanism.labels)[place]
    reports = mechanism.randomise(rows, source)
    who, said = _reported_values(mechanism, reports, place)
    truth = np.asarray(rows)[who, place].astype(np.intp)
    groups, spread = mechanism.groups_of(reports)[who], shares_of(truth, size)
    # Only the spaces of those who drew it: others need not have a part of this size.
    met, groups = np.unique(groups, return_inverse=True)
    parts = [part_channel(mechanism.spaces[one], size, mechanism.epsilon) for one in met.tolist()]
    rules = np.array([one.guesses(prior) for one in parts])
    hits: Floats = np.array([one.hits(prior) for one in parts])
    top = 1 / size if prior is None else float(spread.max())
    return score(
        rules[groups, said],
        truth,
        baseline=top,
        bound=float(success(mechanism.guarantee().epsilon, 1 / top)),
        closed_form=float(hits[groups, truth].mean()),
    )


def _reported_values(
    mechanism: JointResponse, reports: Reports, place: int
) -> tuple[Reports, Reports]:
    """Return the reports that contain a value, and the reported value."""
    if place == len(mechanism.sizes):
        return np.arange(len(reports)), np.asarray(reports[:, -1], dtype=np.intp)
    who, at = np.nonzero(reports[:, : mechanism.chosen] == place)
    return who, np.asarray(reports[who, mechanism.chosen + at], dtype=np.intp)
