"""Naive Bayes from debiased counts of joint responses (jNB): integer sums are all it needs.

A report is the truth with the known share ``lam`` and even noise with the rest, so counts are
debiased by a line. What is left is noise of a known size: each attribute has ``n_eff`` plain
records' worth of reports, and its shares are drawn towards even ones by as much as that demands.
The model is a function of the tally: it costs nothing beyond the reports (post-processing).
"""

import math

import numpy as np

from noisefloor.checks import Floats
from noisefloor.collection.bayes_model import NaiveBayes, check_sizes
from noisefloor.collection.classes import Classes
from noisefloor.collection.joint import JointResponse
from noisefloor.errors import BadParameter
from noisefloor.mechanisms.base import Tally

STRENGTH = 1.0
"""Plain records that each attribute is taken to have had before, even over its classes."""

_LEAST_SHARE = 0.05
"""Of a label: noise may put it outside [0, 1], and a prior of certainty helps nobody."""


def fit_counts(
    response: JointResponse, tally: Tally, classes: Classes, strength: float = STRENGTH
) -> NaiveBayes:
    """Fit a classifier to the tally of labelled joint responses.

    Args:
        response: What the reports were made by.
        tally: Theirs.
        classes: Of the attributes.
        strength: Plain records' worth of even shares that each attribute starts from.
    """
    check_sizes(classes, response.sizes)
    if not response.labelled:
        raise BadParameter("response", "<response>", "to have a label")
    n = max(1, int(np.sum(tally)) // response.chosen)
    shares = np.maximum(response.estimate(tally, n).value, 0).reshape(-1, 2)
    sizes = np.array(response.sizes)
    effective = np.repeat(effective_counts(response, tally), sizes)[:, None]
    labels = label_shares(response, tally)
    counts = shares * effective + strength * labels / np.repeat(sizes, sizes)[:, None]
    return model_of(classes, counts, labels)


def effective_counts(response: JointResponse, tally: Tally) -> Floats:
    """Return the plain records' worth of reports about each attribute: their sum of lam^2."""
    counts = np.asarray(tally, dtype=np.float64).reshape(len(response.spaces), response.cells)
    drawn = np.add.reduceat(counts, np.array(response.starts), axis=1)
    return np.asarray(response.kept_shares**2 @ drawn)


def label_shares(response: JointResponse, tally: Tally) -> Floats:
    """Return the shares of the negative and the positive label, debiased and within bounds."""
    counts = np.asarray(tally, dtype=np.float64).reshape(len(response.spaces), -1, 2).sum(axis=1)
    told, kept = counts.sum(axis=1), response.kept_shares
    weight = float(told @ kept**2)
    if weight == 0:
        return np.array([0.5, 0.5])
    positive = float(kept @ (counts[:, 1] - told * (1 - kept) / 2)) / weight
    positive = min(max(positive, _LEAST_SHARE), 1 - _LEAST_SHARE)
    return np.array([1 - positive, positive])


def model_of(classes: Classes, counts: Floats, labels: Floats) -> NaiveBayes:
    """Make the model of positive weights, a row for each class and a column for each label."""
    starts = np.cumsum([0, *classes.sizes[:-1]])
    totals = np.repeat(np.add.reduceat(counts, starts, axis=0), classes.sizes, axis=0)
    logs = np.log(counts / totals)
    return NaiveBayes(classes, logs[:, 1] - logs[:, 0], math.log(labels[1] / labels[0]))
