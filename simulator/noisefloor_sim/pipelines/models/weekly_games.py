"""Differencing: what two releases say of whoever came in between."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting.bounds import binary_success
from noisefloor.adversary.releases.bounds import as_substitution
from noisefloor.adversary.releases.nearest_records import area_margin, area_under_curve
from noisefloor.privacy import Guarantee
from noisefloor.publication.published_model import PublishedModel
from noisefloor_sim.pipelines.base import Metric
from noisefloor_sim.pipelines.models.held import Holdings
from noisefloor_sim.pipelines.models.holder import Release
from noisefloor_sim.pipelines.models.reading import log_odds

FEWEST = 20
"""People on either side, below which nothing is told."""

Scores = NDArray[np.float64]


def attack_newcomers(
    releases: Sequence[Release], models: Sequence[PublishedModel], holdings: Holdings
) -> list[Metric]:
    """Tell who came between two releases from those who never did.

    Sees:      two releases, one after the other.
    Knows:     the record of the target, label included; no other record.
    Guesses:   that whose label the later model tells more surely than the earlier one came in
               between; beside it, the same by the later model alone.
    Reference: Yeom et al. 2018, arXiv 1709.01604, for the loss; the difference is taken here.

    A newcomer and somebody who never came change places by one substitution in the later release,
    so its guarantee bounds the area under the curve.
    """
    apart: list[tuple[Scores, Scores]] = []
    alone: list[tuple[Scores, Scores]] = []
    for (before, after), (earlier, later) in zip(
        pairwise(releases), pairwise(models), strict=True
    ):
        came = after.owners & ~before.owners
        if np.count_nonzero(came) < FEWEST or np.count_nonzero(holdings.is_test) < FEWEST:
            continue
        sides = [holdings.records[some] for some in (came, holdings.is_test)]
        now = [log_odds(later, side) for side in sides]
        then = [log_odds(earlier, side) for side in sides]
        apart.append((now[0] - then[0], now[1] - then[1]))
        alone.append((now[0], now[1]))
    if not apart:
        return []
    last = releases[-1].plan
    proved, claimed = as_substitution(last.proved), as_substitution(last.wanted.cost)
    n = sum(len(came) for came, _ in apart)
    area, low, high = _area(apart)
    return [
        Metric("attack.newcomer.auc", area, low, high, n),
        Metric("attack.newcomer.auc_bound", _success(proved), n=n),
        Metric("attack.newcomer.claimed_auc", _success(claimed), n=n),
        Metric("attack.newcomer_alone.auc", *_area(alone), n),
        Metric("attack.newcomer.records", n / len(apart), n=n),
    ]


def _success(guarantee: Guarantee) -> float:
    return float(binary_success(guarantee.epsilon, guarantee.delta))


def _area(sides: Sequence[tuple[Scores, Scores]]) -> tuple[float, float, float]:
    """Return the mean area over pairs of releases, and the ends of its interval."""
    areas = [area_under_curve(*one) for one in sides]
    came = sum(len(one) for one, _ in sides)
    margin = area_margin(came, min(len(one) for _, one in sides))
    area = float(np.mean(areas))
    return area, max(0.0, area - margin), min(1.0, area + margin)
