"""Canaries: a corpus that copies a secret exposes it, one that does not ranks it by chance."""

import math

import numpy as np
import pytest

from made_up_texts import SIZE, class_texts, documents_of
from noisefloor.adversary.text import CanaryExposure, occurrence_scores, rank_canaries
from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.publication.text import Documents
from noisefloor.randomness import SeededSource
from statistics_of_tests import FALSE_ALARM, binomial_p, chi_square_p

PLAIN = Guarantee.none("texts are copied", Neighbours.DOCUMENT)
PROMISED = Guarantee(1.0, Neighbours.DOCUMENT, delta=0.01)


def joined(*parts: Documents) -> Documents:
    rows = [row.tolist() for part in parts for row in np.split(part.pieces, part.offsets[1:-1])]
    return documents_of(rows)


def test_the_rank_counts_those_above_and_shares_ties() -> None:
    scores = np.array([[3.0, 1.0, 2.0, 0.0], [3.0, 1.0, 2.0, 0.0]])
    found = rank_canaries(scores, np.array([0, 1]), PROMISED, SeededSource(1, "ranks"))
    assert found.ranks.tolist() == [1, 3]
    assert found.exposures == pytest.approx([2.0, 2.0 - math.log2(3)])
    assert found.first.success == 0.5
    assert found.first.bound == pytest.approx(math.e / 4 + 0.01)
    assert found.first.baseline == 0.25


@pytest.mark.statistical
def test_ties_are_broken_evenly(seed: int) -> None:
    # 4,000 games of 8 equal scores: ranks are uniform, by chi-square at FALSE_ALARM.
    secrets = np.zeros(4000, dtype=np.int64)
    found = rank_canaries(np.zeros((4000, 8)), secrets, PLAIN, SeededSource(seed, "ties"))
    counts = np.bincount(found.ranks, minlength=9)[1:]
    assert chi_square_p(counts, np.full(8, 1 / 8)) > FALSE_ALARM
    assert found.exposures.mean() == pytest.approx(found.expected_exposure, abs=0.15)
    # The twin: a secret that is above the others in a tenth of the games.
    scores = np.zeros((4000, 8))
    scores[:400, 0] = 1
    exposed = rank_canaries(scores, secrets, PLAIN, SeededSource(seed, "above"))
    counts = np.bincount(exposed.ranks, minlength=9)[1:]
    assert chi_square_p(counts, np.full(8, 1 / 8)) < FALSE_ALARM


def exposure(seed: int, *, copies: int, games: int = 40) -> CanaryExposure:
    """Insert a secret of 16 in each game; a release copies some texts of it, secrets first."""
    table, secrets = [], []
    for game in range(games):
        draw = SeededSource(seed, "game", game).generator()
        start = draw.integers(0, SIZE, (1, 3))
        candidates = np.hstack([np.repeat(start, 16, axis=0), draw.integers(0, SIZE, (16, 3))])
        secret = int(draw.integers(0, 16))
        texts = documents_of(candidates.tolist())
        others = class_texts(60, seed, "others", str(game))
        kept = [secret] * copies
        published = joined(texts[np.array(kept, dtype=np.int64)], others)
        table.append(occurrence_scores(texts, published))
        secrets.append(secret)
    source = SeededSource(seed, "exposure", copies)
    return rank_canaries(np.array(table), np.array(secrets), PROMISED, source)


@pytest.mark.statistical
def test_a_copied_secret_is_exposed_and_an_absent_one_is_not(seed: int) -> None:
    # 40 games of 16 candidates; a null proves an epsilon with probability 1e-6 at most.
    null = exposure(seed, copies=0)
    assert null.lower_bound(1e-6).epsilon == 0.0
    assert null.first.interval[0] <= 1 / 16
    copied = exposure(seed, copies=1)
    assert copied.first.right == 40
    assert copied.exposures.min() == 4.0
    bound = copied.lower_bound(1e-6)
    # 40 of 40: p >= alpha^(1 / n).
    assert bound.epsilon == pytest.approx(math.log(16 * 1e-6 ** (1 / 40)), rel=1e-9)
    assert bound.epsilon == bound.ceiling
    assert bound.epsilon > PROMISED.epsilon  # what is claimed is refuted
    assert copied.lower_bound(1e-6, delta=0.1).epsilon < bound.epsilon


@pytest.mark.statistical
def test_a_secret_published_with_probability_delta_keeps_the_bound(seed: int) -> None:
    # 3,000 games of 16 candidates. A release that holds the secret with probability delta = 0.3
    # and nothing otherwise is (0, delta): first with 0.3 + 0.7 / 16 = 0.344, the bound is 0.3625.
    # Exact binomial at FALSE_ALARM. The twin holds it with probability 0.45.
    claimed = Guarantee(0.0, Neighbours.DOCUMENT, delta=0.3)
    secrets = SeededSource(seed, "secrets").generator().integers(0, 16, 3000)
    for chance, is_as_claimed in ((0.3, True), (0.45, False)):
        is_shown = SeededSource(seed, "shown", f"{chance:g}").generator().random(3000) < chance
        scores = np.zeros((3000, 16))
        scores[np.flatnonzero(is_shown), secrets[is_shown]] = 1.0
        source = SeededSource(seed, "ranks", f"{chance:g}")
        found = rank_canaries(scores, secrets, claimed, source)
        assert found.first.bound == pytest.approx(0.3625)
        expected = 0.3 + 0.7 / 16
        assert (binomial_p(found.first.right, 3000, expected) > FALSE_ALARM) == is_as_claimed
        assert (found.first.interval[0] <= found.first.bound) == is_as_claimed
        assert (found.lower_bound(1e-6, delta=0.3).epsilon == 0.0) == is_as_claimed


def test_a_reference_takes_off_what_is_common() -> None:
    candidates = documents_of([[1, 2, 3], [7, 8, 9]])
    published = documents_of([[1, 2, 3]] * 6 + [[7, 8, 9]] * 3)
    reference = documents_of([[1, 2, 3]] * 6 + [[4, 5, 6]] * 3)
    bare = occurrence_scores(candidates, published)
    assert bare[0] > bare[1]
    calibrated = occurrence_scores(candidates, published, reference=reference)
    assert calibrated[0] == pytest.approx(0.0)
    assert calibrated[1] > 0
    # Three pieces, two pairs, one triple, each seen three times.
    assert bare[1] == pytest.approx((3 + 2 * 2 + 3 * 1) * math.log(4))


def test_strange_scores_and_secrets_are_refused() -> None:
    scores = np.zeros((2, 3))
    with pytest.raises(BadParameter, match="one for each of 2 games"):
        rank_canaries(scores, np.array([0]), PLAIN, SeededSource(1, "a"))
    with pytest.raises(ValueError, match="integers in"):
        rank_canaries(scores, np.array([0, 3]), PLAIN, SeededSource(1, "b"))
    with pytest.raises(BadParameter, match="none of them NaN"):
        rank_canaries(scores * np.nan, np.array([0, 1]), PLAIN, SeededSource(1, "c"))
    with pytest.raises(BadParameter, match="candidates"):
        rank_canaries(scores[:, :1], np.array([0, 0]), PLAIN, SeededSource(1, "d"))
