"""What the products of DR.WA give away: the label, and with it every class.

An owner sends class times label, -1 or +1, for K attributes and without noise. On [-1, 1] a
product leaves two candidates; all K share one label, so that who knows how classes are spread
among owners of either label names it by naive Bayes. Only where owners of either label are
mirror images of each other do products tell nothing; real values are skewed. On a range of
positive numbers there is nothing to guess: the sign of a product is the label.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from noisefloor.adversary.audit import AttackOutcome, score
from noisefloor.adversary.records.priors import shares_of
from noisefloor.checks import Floats, blocks, check_bits, check_count
from noisefloor.collection.encoding import Codes, Discretiser
from noisefloor.errors import BadParameter
from noisefloor.randomness import Source
from noisefloor.tables import Continuous, Labels, ScaledRecords

Scale = Literal["centred", "raw"]
"""What a class stands for: a number in [-1, 1], or one of the attribute's own range."""

_IMPOSSIBLE = -700.0
"""The logarithm of a chance of 0: finite, so that fewer impossible products win."""

_MOST_CELLS = 1 << 22
_DIGITS = 9
"""To which a product is compared with what classes stand for."""

AttributeIndices = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class PopulationMarginals:
    """What is known of owners: how labels are spread, and classes among owners of each label.

    Attributes:
        labels: Shares of the labels -1 and +1.
        classes: For each attribute the shares of its classes, a row for each label.
    """

    labels: Floats
    classes: tuple[Floats, ...]


def marginals_of(codes: Codes, labels: Labels, sizes: Sequence[int]) -> PopulationMarginals:
    """Return the marginals of a population, all attributes and both labels of it."""
    positive = check_bits(labels)
    if positive.all() or not positive.any():
        raise BadParameter("labels", f"<{len(positive)}>", "to be of both classes")
    tables = tuple(
        np.stack([shares_of(codes[positive == one, place], size) for one in (False, True)])
        for place, size in enumerate(sizes)
    )
    return PopulationMarginals(shares_of(positive, 2), tables)


def centres_of(classes: Discretiser, scale: Scale) -> tuple[Floats, ...]:
    """Return what each class of each attribute stands for."""
    if scale not in get_args(Scale):
        raise BadParameter("scale", scale, f"to be one of {', '.join(get_args(Scale))}")
    centres = [classes.centres(place) for place in range(len(classes.schema))]
    if scale == "centred":
        return tuple(centres)
    ends = [
        (one.low, one.high) if isinstance(one, Continuous) else (1.0, float(len(one.values)))
        for one in classes.schema.attributes
    ]
    return tuple(
        low + (some + 1) / 2 * (high - low)
        for some, (low, high) in zip(centres, ends, strict=True)
    )


def attack_products(
    classes: Discretiser,
    records: ScaledRecords,
    count: int,
    source: Source,
    scale: Scale = "centred",
) -> AttackOutcome:
    """Guess the label of each owner from the products that DR.WA sends.

    Sees:      of each owner, K attributes drawn at random and the product of class and label.
    Knows:     the classes, and the population's marginals given the label.
    Guesses:   the label, by naive Bayes; every class follows from it.
    Reference: SUP.ML paper, algorithm 8 (what is sent); ``products_success`` is the closed form
               where values are independent given the label, as one product always is.

    Args:
        classes: Of the attributes.
        records: Of the owners; what is known of the population is counted here.
        count: Products of each owner, K.
        source: Of the draw of attributes.
        scale: What classes stand for.
    """
    codes, centres = classes.codes(records.values), centres_of(classes, scale)
    known = marginals_of(codes, records.labels, classes.sizes)
    requested = draw_attribute_indices(len(records), len(classes.sizes), count, source)
    sent = products(codes, records.labels, requested, centres)
    return score(
        guess_labels(sent, requested, centres, known).astype(np.intp),
        records.labels.astype(np.intp),
        baseline=float(known.labels.max()),
        bound=1.0,
        closed_form=_mean_success(known, centres) if count == 1 else None,
    )


def draw_attribute_indices(
    owners: int, attributes: int, count: int, source: Source
) -> AttributeIndices:
    """Return the attributes that each owner is asked for, drawn without replacement."""
    check_count(count, "count", most=attributes)
    words = source.stage("asked").words(owners * attributes).reshape(owners, attributes)
    return np.asarray(np.argsort(words, axis=1)[:, :count])


def products(
    codes: Codes, labels: Labels, requested: AttributeIndices, centres: Sequence[Floats]
) -> Floats:
    """Return what owners send: class times label, a column for each attribute asked for."""
    table = _table(centres)
    own_codes = np.take_along_axis(codes, requested, axis=1).astype(np.intp)
    return np.asarray(table[requested, own_codes] * np.where(labels, 1.0, -1.0)[:, None])


def guess_labels(
    sent: Floats,
    requested: AttributeIndices,
    centres: Sequence[Floats],
    known: PopulationMarginals,
) -> Labels:
    """Return the more probable label of each owner.

    Sees:      products of class and label, a row for each owner, and the attributes behind them.
    Knows:     what classes stand for, and the marginals given the label.
    Guesses:   the label; ties go to the more frequent one.
    Reference: naive Bayes.
    """
    guessed, more = np.empty(len(sent), dtype=np.bool_), known.labels[1] > known.labels[0]
    odds = math.log(known.labels[1]) - math.log(known.labels[0])
    for some in blocks(len(sent), sent.shape[1] * max(map(len, centres))):
        parts = [_log_chance(sent[some], requested[some], centres, known, one) for one in (0, 1)]
        gap = parts[1] - parts[0] + odds
        guessed[some] = gap >= 0 if more else gap > 0
    return guessed


def products_success(
    known: PopulationMarginals, centres: Sequence[Floats], columns: Sequence[int]
) -> float | None:
    """Return how often the label is named from the products of some attributes.

    Exact where values are independent given the label; nothing if there is too much to sum.

    Formula: the sum over rows of products p of max_s pi_s prod_j P(class_j = s p_j | s).
    """
    distributions: list[Floats] = []
    for column in columns:
        signed = np.concatenate([-centres[column], centres[column]]).round(_DIGITS)
        places = np.unique(signed, return_inverse=True)[1].reshape(2, -1)
        distribution = np.zeros((2, int(places.max()) + 1))
        for label in (0, 1):
            np.add.at(distribution[label], places[label], known.classes[column][label])
        distributions.append(distribution)
    if math.prod(distribution.shape[1] for distribution in distributions) > _MOST_CELLS:
        return None
    joint = known.labels[:, None]
    for distribution in distributions:
        joint = (joint[:, :, None] * distribution[:, None, :]).reshape(2, -1)
    return float(joint.max(axis=0).sum())


def _mean_success(known: PopulationMarginals, centres: Sequence[Floats]) -> float | None:
    """Return the success from one product, of each attribute as often."""
    each = [products_success(known, centres, [column]) for column in range(len(centres))]
    found = [one for one in each if one is not None]
    return sum(found) / len(found) if len(found) == len(each) else None


def _table(tables: Sequence[Floats]) -> Floats:
    """Return rows of different lengths as one table; what is missing is not a number."""
    table = np.full((len(tables), max(len(one) for one in tables)), np.nan)
    for place, one in enumerate(tables):
        table[place, : len(one)] = one
    return table


def _log_chance(
    sent: Floats,
    requested: AttributeIndices,
    centres: Sequence[Floats],
    known: PopulationMarginals,
    label: int,
) -> Floats:
    """Return ln P(products | label); a product that no class makes with this label has none."""
    values = _table(centres).round(_DIGITS)[requested]
    reported = (sent * (1 if label else -1)).round(_DIGITS)
    shares = _table([one[label] for one in known.classes])[requested]
    chances = np.where(values == reported[:, :, None], shares, 0.0).sum(axis=2)
    with np.errstate(divide="ignore"):
        return np.asarray(np.maximum(np.log(chances), _IMPOSSIBLE).sum(axis=1))
