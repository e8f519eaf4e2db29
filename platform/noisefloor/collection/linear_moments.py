"""A linear classifier from debiased moments: least squares whose risk is unbiased.

The squared risk needs E[x_j x_l] and E[x_j t] only, t being the label as -1 or +1. For any
function f of a symbol, a joint response has mean lam f(truth) + (1 - lam) (mean of f over all
symbols); so every moment is debiased by a line, and the risk of every linear rule is estimated
without bias, in the manner of Natarajan et al. 2013. Off the diagonal only owners who drew both
attributes count. What noise makes of the second moments need not be positive: eigenvalues are
raised to the known size of the noise. A function of the reports (post-processing).
"""

from dataclasses import dataclass

import numpy as np

from noisefloor.checks import check_reals
from noisefloor.collection.bayes_model import check_sizes
from noisefloor.collection.classes import Classes
from noisefloor.collection.joint import JointResponse
from noisefloor.collection.schema import Labels
from noisefloor.errors import BadParameter
from noisefloor.mechanisms.base import Floats, Reports


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


def moments_of(response: JointResponse, reports: Reports, classes: Classes) -> Moments:
    """Return the debiased moments of labelled joint responses."""
    check_sizes(classes, response.sizes)
    if not response.labelled:
        raise BadParameter("response", "<response>", "to have a label")
    told, chosen, d = response.check_reports(reports), response.chosen, len(response.sizes)
    kept = response.kept_shares[response.groups_of(told)]
    values = np.zeros((len(told), d))
    drawn = np.zeros((len(told), d))
    columns = told[:, :chosen].astype(np.int64)
    centres = np.zeros((d, max(response.sizes)))
    for column, size in enumerate(response.sizes):
        centres[column, :size] = classes.centres(column)
    np.put_along_axis(drawn, columns, 1.0, axis=1)
    np.put_along_axis(values, columns, centres[columns, told[:, chosen:-1]], axis=1)
    signs = 2.0 * told[:, -1] - 1
    even = np.array([classes.centres(column).mean() for column in range(d)])
    squares = np.array([(classes.centres(column) ** 2).mean() for column in range(d)])
    weight = (drawn * kept[:, None] ** 2).T @ drawn
    lies = (drawn * (kept * (1 - kept))[:, None]).T @ drawn
    single, lie = np.diag(weight), np.diag(lies)
    by_kept = values * kept[:, None]
    means = _over(by_kept.sum(axis=0) - lie * even, single)
    background = np.outer(even, even)
    np.fill_diagonal(background, squares)
    products = _over(by_kept.T @ values - lies * background, weight)
    products = np.where(weight > 0, products, np.outer(means, means))
    with_label = _over((by_kept * signs[:, None]).sum(axis=0), single)
    label = float((kept * signs).sum() / max(float((kept**2).sum()), 1e-300))
    noise = float(np.sqrt(squares.mean() / max(float(single.mean()), 1e-300)))
    return Moments(means, products, with_label, min(max(label, -0.9), 0.9), noise)


def fit_linear(response: JointResponse, reports: Reports, classes: Classes) -> LinearRule:
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
