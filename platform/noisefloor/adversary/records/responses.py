"""What a report of a record gives away: one value, or the whole record, by what is known before.

Truths are the codes of owners. Closed forms are of these very codes: owners are given, only the
reports are drawn. So the number of right guesses is a sum of independent Bernoulli draws, and
binomial limits are on the safe side.
"""

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import success
from noisefloor.adversary.audit import AttackOutcome, Prior, score
from noisefloor.adversary.records.channels import (
    Channel,
    RecordResponse,
    channels,
    check_place,
    record_log_likelihoods,
    sizes_of,
)
from noisefloor.adversary.records.priors import RecordPrior, empirical_prior, shares_of
from noisefloor.checks import blocks
from noisefloor.collection.encoding import Codes, UnifiedResponse, check_codes
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import Reports
from noisefloor.privacy import Neighbours
from noisefloor.randomness import Source

_MOST_CELLS = 1 << 24
"""Reports times candidates that a closed form sums over, at most."""


def attack_attribute(
    mechanism: UnifiedResponse, codes: Codes, source: Source, place: int, prior: Prior = None
) -> AttackOutcome:
    """Guess one value of each owner from what was reported of it.

    Sees:      the report of one value.
    Knows:     the mechanism, and the shares of the value's classes; without them, nothing.
    Guesses:   the class.
    Reference: Bayes; ``Channel.success`` is the closed form.
    """
    rows = check_codes(codes, mechanism.sizes)
    place = check_place(place, len(mechanism.sizes))
    response, truth = mechanism.responses[place], rows[:, place].astype(np.intp)
    channel, spread = Channel.of(response), shares_of(truth, response.size)
    reports = mechanism.randomise(rows, source)
    top = 1 / channel.size if prior is None else float(spread.max())
    return score(
        channel.guesses(prior)[reports[:, place]],
        truth,
        baseline=top,
        bound=float(success(response.guarantee(Neighbours.ITEM).epsilon, 1 / top)),
        closed_form=channel.success(prior, spread),
    )


def attack_record(mechanism: UnifiedResponse, codes: Codes, source: Source) -> AttackOutcome:
    """Guess that each owner's record is as it was reported.

    Sees:      the whole report.
    Knows:     the mechanism, and nothing of records: all are alike.
    Guesses:   the whole record.
    Reference: Bayes; ``blind_success`` is the closed form.
    """
    rows = check_codes(codes, mechanism.sizes)
    reports = mechanism.randomise(rows, source)
    size = float(np.prod(np.array(mechanism.sizes, dtype=np.float64)))
    return AttackOutcome(
        int(np.count_nonzero((reports == rows).all(axis=1))),
        len(rows),
        1 / size,
        float(success(mechanism.guarantee().epsilon, size)),
        blind_success(mechanism),
    )


def attack_known_records(
    mechanism: RecordResponse,
    codes: Codes,
    source: Source,
    prior: RecordPrior,
    place: int | None = None,
) -> AttackOutcome:
    """Guess the whole record of each owner, or one value of it, knowing what records there are.

    Sees:      the whole report.
    Knows:     the mechanism, which records there are and how often: correlations and all.
    Guesses:   the record, or the value at a place.
    Reference: Bayes; ``record_success`` is the closed form.
    """
    rows = check_codes(codes, sizes_of(mechanism))
    guessed = guess_records(mechanism, mechanism.randomise(rows, source), prior, place)
    truth = empirical_prior(rows)
    spread = truth.shares if place is None else shares_of(rows[:, place], 1)
    right = guessed == (rows if place is None else rows[:, place])
    return AttackOutcome(
        int(np.count_nonzero(right.all(axis=1) if place is None else right)),
        len(rows),
        float(spread.max()),
        float(success(mechanism.guarantee().epsilon, 1 / spread.max())),
        record_success(mechanism, prior, place, truth),
    )


def guess_records(
    mechanism: RecordResponse, reports: Reports, prior: RecordPrior, place: int | None = None
) -> Codes:
    """Return the most probable record behind each report, or the most probable value at a place.

    Sees:      whole reports, one a row.
    Knows:     the mechanism, the candidates and their shares.
    Guesses:   the record, by the exact posterior over all candidates.
    Reference: Bayes; ties go to the first candidate.
    """
    if place is not None:
        place = check_place(place, prior.rows.shape[1])
    kinds, places = np.unique(reports, axis=0, return_inverse=True)
    parts = [
        _best(mechanism, kinds[some], prior, place) for some in blocks(len(kinds), len(prior.rows))
    ]
    return np.asarray(np.concatenate(parts)[places.reshape(-1)])


def record_success(
    mechanism: RecordResponse,
    prior: RecordPrior,
    place: int | None = None,
    truth: RecordPrior | None = None,
) -> float | None:
    """Return how often the most probable record, or value, is right; nothing if too long a sum.

    Formula: the sum over reports y of max_x pi_x P(y | x), x a record or a value of one.

    Args:
        mechanism: What answers.
        prior: What the adversary believes.
        place: Of the value that is guessed; the whole record if left out.
        truth: What owners really hold, if not as believed.
    """
    actual = prior if truth is None else truth
    try:
        outputs = mechanism.outputs()
    except BadParameter:
        return None
    if len(outputs) * (len(prior.rows) + len(actual.rows)) > _MOST_CELLS:
        return None
    total = 0.0
    for some in blocks(len(outputs), max(len(prior.rows), len(actual.rows))):
        guessed = _best(mechanism, outputs[some], prior, place)
        distribution = (
            np.exp(record_log_likelihoods(mechanism, outputs[some], actual.rows)) * actual.shares
        )
        total += float(distribution[_matches(guessed, actual.rows, place)].sum())
    return total


def blind_success(mechanism: UnifiedResponse) -> float:
    """Return how often the report is the record: the product of ``keep`` over its values.

    Formula: the product over values of e^s / (e^s + L - 1), s = eps / (K + 1).
    """
    return float(np.prod([one.keep for one in channels(mechanism)]))


def _best(
    mechanism: RecordResponse, reports: Reports, prior: RecordPrior, place: int | None
) -> Codes:
    """Return the best guess for each of some reports."""
    logs = record_log_likelihoods(mechanism, reports, prior.rows)
    with np.errstate(divide="ignore"):
        logs += np.log(prior.shares)
    if place is None:
        return np.asarray(prior.rows[logs.argmax(axis=1)])
    chances = np.exp(logs - logs.max(axis=1, keepdims=True))
    values = prior.rows[:, place]
    membership = values[:, None] == np.arange(int(values.max()) + 1)
    return np.asarray((chances @ membership).argmax(axis=1).astype(np.uint16))


def _matches(guessed: Codes, rows: Codes, place: int | None) -> NDArray[np.bool_]:
    """Return which guesses are right of which records."""
    if place is not None:
        return np.asarray(guessed[:, None] == rows[:, place])
    both = np.concatenate([guessed, rows.astype(guessed.dtype)])
    kinds = np.unique(both, axis=0, return_inverse=True)[1].reshape(-1)
    return np.asarray(kinds[: len(guessed), None] == kinds[len(guessed) :])
