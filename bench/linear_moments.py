"""A linear classifier from debiased moments: least squares whose risk is unbiased.

The squared risk needs E[x_j x_l] and E[x_j t] only, t being the label as -1 or +1. For any
function f of a symbol, a joint response has mean lam f(truth) + (1 - lam) (mean of f over all
symbols); so every moment is debiased by a line, and the risk of every linear rule is estimated
without bias, in the manner of Natarajan et al. 2013. Off the diagonal only owners who drew both
attributes count. What noise makes of the second moments need not be positive: eigenvalues are
raised to the known size of the noise. A function of the reports (post-processing).
"""

import math
from dataclasses import dataclass

import numpy as np

from noisefloor.checks import Floats, blocks, check_reals
from noisefloor.collection.encoding import Discretiser, JointResponse
from noisefloor.collection.learners.naive_bayes import check_class_sizes
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import Reports
from noisefloor.tables import Labels

_MOST_LABEL = 0.9
"""Of the debiased mean of a label in {-1, +1}: noise may take it further."""

_NOTHING = 1e-300


@dataclass(frozen=True, slots=True, eq=False)
class LinearRule:
    """Positive where ``values @ weights + offset`` is.

    Attributes:
        weights: One for each attribute.
        offset: Added to each score.
    """

    weights: Floats
    offset: float

    def scores(self, values: Floats) -> Floats:
        """Return the scores of records in [-1, 1]."""
        numbers = check_reals(values, -1.0, 1.0, width=len(self.weights))
        return np.asarray(numbers @ self.weights + self.offset)

    def predict(self, values: Floats) -> Labels:
        """Return whether each record is taken to be positive."""
        return np.asarray(self.scores(values) > 0)


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Debiased moments of the classes' centres x and of the label t in {-1, +1}.

    Attributes:
        means: E[x_j].
        products: E[x_j x_l]; where nobody drew both, that of independent attributes.
        with_label: E[x_j t].
        label: E[t].
        noise: Standard error of a product on the diagonal, on average.
    """

    means: Floats
    products: Floats
    with_label: Floats
    label: float
    noise: float


def moments_of(response: JointResponse, reports: Reports, classes: Discretiser) -> Moments:
    """Return the debiased moments of labelled joint responses."""
    check_class_sizes(classes, response.sizes)
    if not response.labelled:
        raise BadParameter("response", "<response>", "to have a label")
    sums = _Sums.of(response, response.check_reports(reports), classes)
    weight, lie = np.diag(sums.weight), np.diag(sums.lies)
    even, background = _over_all_symbols(classes)
    means = _over(sums.values - lie * even, weight)
    products = _over(sums.products - sums.lies * background, sums.weight)
    products = np.where(sums.weight > 0, products, np.outer(means, means))
    squares = float(np.diag(background).mean())
    noise = math.sqrt(squares / max(float(weight.mean()), _NOTHING))
    label = min(max(sums.label, -_MOST_LABEL), _MOST_LABEL)
    return Moments(means, products, _over(sums.with_label, weight), label, noise)


@dataclass(frozen=True, slots=True, eq=False)
class _Sums:
    """Sums over reports, each weighted by its share of truth.

    Attributes:
        weight: Of those who drew both attributes, squared shares.
        lies: Of those, shares times what is left of them.
        values: Of the classes' centres.
        products: Of two centres.
        with_label: Of centre times label.
        label: The debiased mean of the label.
    """

    weight: Floats
    lies: Floats
    values: Floats
    products: Floats
    with_label: Floats
    label: float

    @classmethod
    def of(cls, response: JointResponse, reports: Reports, classes: Discretiser) -> "_Sums":
        """Add up checked reports, in blocks."""
        d = len(response.sizes)
        kept = response.kept_shares[response.groups_of(reports)]
        signs = 2.0 * reports[:, -1] - 1
        squares = [np.zeros((d, d)) for _ in range(3)]
        lines = [np.zeros(d) for _ in range(2)]
        for rows in blocks(len(reports), d):
            values, drawn = _dense(response, reports[rows], classes)
            share = kept[rows, None]
            squares[0] += (drawn * share**2).T @ drawn
            squares[1] += (drawn * share * (1 - share)).T @ drawn
            squares[2] += (values * share).T @ values
            lines[0] += share[:, 0] @ values
            lines[1] += (share[:, 0] * signs[rows]) @ values
        label = float(kept @ signs) / max(float(kept @ kept), _NOTHING)
        return cls(squares[0], squares[1], lines[0], squares[2], lines[1], label)


def _dense(
    response: JointResponse, reports: Reports, classes: Discretiser
) -> tuple[Floats, Floats]:
    """Return a column for each attribute: its class's centre, and whether it was drawn."""
    chosen, sizes = response.chosen, np.array(response.sizes)
    centres = np.concatenate([classes.centres(column) for column in range(len(sizes))])
    columns = reports[:, :chosen].astype(np.int64)
    places = (np.cumsum(sizes) - sizes)[columns] + reports[:, chosen:-1]
    values, drawn = np.zeros((2, len(reports), len(sizes)))
    np.put_along_axis(values, columns, centres[places], axis=1)
    np.put_along_axis(drawn, columns, 1.0, axis=1)
    return values, drawn


def _over_all_symbols(classes: Discretiser) -> tuple[Floats, Floats]:
    """Return the means of centres, and of products of two, where every symbol is as likely."""
    centres = [classes.centres(column) for column in range(len(classes.sizes))]
    even = np.array([some.mean() for some in centres])
    products = np.outer(even, even)
    np.fill_diagonal(products, [float((some**2).mean()) for some in centres])
    return even, products


def fit_linear(response: JointResponse, reports: Reports, classes: Discretiser) -> LinearRule:
    """Fit the rule of least unbiased squared risk, with eigenvalues raised to the noise."""
    found = moments_of(response, reports, classes)
    covariance = found.products - np.outer(found.means, found.means)
    along = found.with_label - found.means * found.label
    sizes, axes = np.linalg.eigh((covariance + covariance.T) / 2)
    floor = max(found.noise * float(np.sqrt(len(sizes))), 1e-6)
    weights = axes @ ((axes.T @ along) / (np.maximum(sizes, 0) + floor))
    return LinearRule(weights, _offset(found, weights))


def _offset(found: Moments, weights: Floats) -> float:
    """Put the border half-way between the labels' means, moved by their shares."""
    share = (1 + found.label) / 2
    positive = (found.means + found.with_label) / (2 * share)
    negative = (found.means - found.with_label) / (2 * (1 - share))
    spread = float(weights @ (positive - negative))
    return float(-weights @ (positive + negative) / 2 + 0.1 * spread * (2 * share - 1))


def _over(sums: Floats, weights: Floats) -> Floats:
    return np.divide(sums, weights, out=np.zeros_like(sums), where=weights > 0)
