"""One attribute of each owner, by square wave: a collector that keeps the order of values.

Half of epsilon goes to the value and half to the label, so it suits fine classes and pays for
that twice; ``JointResponse`` with one attribute is the same sampling with one answer for both.
"""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import sequential
from noisefloor.checks import Array, Floats, blocks, check_count, check_epsilon, check_reals
from noisefloor.collection.encoding import Discretiser
from noisefloor.collection.learners.naive_bayes import NaiveBayes, Shrinkage, model_from_counts
from noisefloor.distributions import ONE
from noisefloor.errors import BadParameter, OutOfDomain
from noisefloor.mechanisms import BinaryResponse, Reports, SquareWave, Tally, unsupported
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import Source
from noisefloor.tables import MOST_ATTRIBUTES, Categorical

_MOST_ROUNDS = 200
_CLOSE = 1e-5


@dataclass(frozen=True, slots=True)
class WaveResponse:
    """Draw one attribute, report its value by square wave and the label by randomised response.

    The draw does not depend on the record; given it, two independent answers are sent, whose
    epsilons add up.

    Guarantee:  pure DP, epsilon = that of the wave plus that of the label's answer, per report.
    Neighbours: item = user: any record to any other; one owner holds one record (local model).
    Domain:     rows of values in [-1, 1] and then the label, -1 or 1; anything else is refused.
    Reference:  Li et al. 2020, "Estimating numerical distributions under local differential
                privacy", SIGMOD (SW); Warner 1965 (the label).

    Attributes:
        attributes: How many there are.
        epsilon: As requested.
        bins: Classes of the distribution that is to be estimated; a power of two.
    """

    attributes: int
    epsilon: float
    bins: int = 8
    wave: SquareWave = field(init=False)
    label_response: BinaryResponse = field(init=False)

    def __post_init__(self) -> None:
        check_count(self.attributes, "attributes", most=MOST_ATTRIBUTES)
        half = check_epsilon(self.epsilon, parts=2) / 2
        object.__setattr__(self, "wave", SquareWave(half, self.bins))
        object.__setattr__(self, "label_response", BinaryResponse(half))

    def randomise(self, values: object, source: Source) -> NDArray[np.uint32]:
        """Return the drawn attribute, the cell of its value, and the label as 0 or 1."""
        rows = self._check_rows(values)
        draw, reports = source.stage("attribute"), np.empty((len(rows), 3), dtype=np.uint32)
        for some in blocks(len(rows), rows.shape[1]):
            reports[some, 0] = draw.below(self.attributes, len(rows[some]))
        drawn = np.take_along_axis(rows, reports[:, :1].astype(np.int64), axis=1)[:, 0]
        reports[:, 1] = self.wave.randomise((drawn + 1) / 2, source.stage("wave"))
        reports[:, 2] = self.label_response.randomise(rows[:, -1] > 0, source.stage("label"))
        return reports

    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return the sum of both answers' guarantees."""
        if neighbours not in (Neighbours.ITEM, Neighbours.USER):
            return unsupported(self, neighbours)
        return sequential(
            [self.wave.guarantee(neighbours), self.label_response.guarantee(neighbours)]
        )

    def log_likelihood(self, reports: Reports, value: Floats) -> Floats:
        """Return ln P(report | record)."""
        reported, record = np.asarray(reports), self._check_rows(np.reshape(value, (1, -1)))[0]
        logs = self.label_response.log_likelihood(reported[:, 2] > 0, record[-1] > 0)
        logs = logs - math.log(self.attributes)
        for attribute in np.unique(reported[:, 0]):
            some, share = reported[:, 0] == attribute, (float(record[attribute]) + 1) / 2
            logs[some] += self.wave.log_likelihood(reported[some, 1], share)
        return np.asarray(logs)

    def tally(self, reports: Reports) -> Tally:
        """Count each (attribute, group of cells, label); groups are as wide as a bin."""
        reported = np.asarray(reports, dtype=np.int64)
        sides = [(one, label) for one in range(self.attributes) for label in (0, 1)]
        counts = [
            self.wave.tally(reported[(reported[:, 0] == one) & (reported[:, 2] == label), 1])
            for one, label in sides
        ]
        return np.stack(counts).reshape(self.attributes, 2, -1).swapaxes(1, 2).reshape(-1)

    def _check_rows(self, values: object) -> Array:
        rows = check_reals(values, -1.0, 1.0, width=self.attributes + 1)
        if len(rows) and (np.abs(rows[:, -1]) != 1).any():
            raise OutOfDomain("Expected labels -1 or 1 in the last column.")
        return rows


def fit_wave(response: WaveResponse, tally: Tally, shrinkage: Shrinkage) -> NaiveBayes:
    """Fit a classifier to the tally, through the known response of both answers.

    Args:
        response: What the reports were made by.
        tally: Theirs.
        shrinkage: How counts of the classes become shares; ``bins`` of them for each attribute.
    """
    classes = shrinkage.classes
    _check_classes(classes, response)
    seen = np.asarray(tally, dtype=np.float64).reshape(response.attributes, -1, 2)
    value, flip = response.wave.response(), response.label_response.flip / ONE
    label = np.array([[1 - flip, flip], [flip, 1 - flip]])
    shares, prior = shrinkage.even(), np.array([0.5, 0.5])
    for _ in range(_MOST_ROUNDS):
        joint = (shares * prior).reshape(response.attributes, response.bins, 2)
        odds = seen / (value @ joint @ label)
        expected = joint * (value.T @ odds @ label.T)
        prior = (expected.sum(axis=(0, 1)) + 1) / (expected.sum() + 2)
        after = shrinkage.shares(expected.reshape(-1, 2), prior)
        moved, shares = float(np.abs(after - shares).max()), after
        if moved < _CLOSE:
            break
    return model_from_counts(classes, shares, prior)


def _check_classes(classes: Discretiser, response: WaveResponse) -> None:
    alike = classes.sizes == (response.bins,) * response.attributes
    if not alike or any(isinstance(one, Categorical) for one in classes.schema.attributes):
        rule = f"{response.bins} of each of {response.attributes} attributes, all of them ranges"
        raise BadParameter("classes", classes.most, rule)
