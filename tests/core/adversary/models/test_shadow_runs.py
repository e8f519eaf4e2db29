"""What is kept of shadow models: log-odds, by whatever road they came, and fair memberships."""

import os
import subprocess
import sys

import numpy as np
import pytest
from numpy.typing import NDArray

from noisefloor.adversary.models.shadow_runs import ShadowRuns, fair_members, train_shadows
from noisefloor.errors import BadParameter
from noisefloor.randomness import SeededSource, Source
from statistics_of_tests import FALSE_ALARM, binomial_p


def logits_of(models: int, records: int, classes: int, seed: int) -> NDArray[np.float32]:
    drawn = SeededSource(seed, "logits").normals(models * records * classes)
    return 3 * drawn.reshape(models, records, classes)


@pytest.mark.parametrize("classes", [2, 5])
def test_log_odds_are_those_of_the_softmax(classes: int) -> None:
    logits, labels = logits_of(3, 7, classes, 1), np.arange(7) % classes
    members = np.arange(21).reshape(3, 7) % 2 == 0
    runs = ShadowRuns.of_logits(members, logits, labels)
    shares = np.exp(logits.astype(np.float64))
    chance = (shares / shares.sum(axis=-1, keepdims=True))[:, np.arange(7), labels]
    assert runs.log_odds == pytest.approx(np.log(chance / (1 - chance)), abs=1e-9)
    assert runs.log_likelihood == pytest.approx(np.log(chance), abs=1e-9)
    correct = logits.argmax(axis=-1) == labels
    assert runs.accuracy == (correct[members].mean(), correct[~members].mean())
    everybody = ShadowRuns.of_logits(members | True, logits, labels)
    with pytest.raises(BadParameter, match="members and others"):
        _ = everybody.accuracy


def test_certainty_stays_finite() -> None:
    members = np.ones((1, 2), dtype=np.bool_)
    sure = np.array([[[1e4, 0.0], [0.0, 1e4]]], dtype=np.float32)
    runs = ShadowRuns.of_logits(members, sure, np.zeros(2, dtype=np.int64))
    assert runs.log_odds == pytest.approx(np.array([[1e4, -1e4]]))


def test_a_training_that_ended_in_nan_is_refused() -> None:
    members, labels = np.ones((2, 3), dtype=np.bool_), np.zeros(3, dtype=np.int64)
    logits = logits_of(2, 3, 2, 3)
    logits[1, 2, 0] = np.nan
    with pytest.raises(BadParameter, match="training has failed"):
        ShadowRuns.of_logits(members, logits, labels)


@pytest.mark.parametrize("shape", [(2, 3, 1), (2, 4, 2), (3, 3, 2)])
def test_logits_of_another_shape_are_refused(shape: tuple[int, int, int]) -> None:
    members, labels = np.ones((2, 3), dtype=np.bool_), np.zeros(3, dtype=np.int64)
    with pytest.raises(BadParameter, match="logits"):
        ShadowRuns.of_logits(members, np.zeros(shape, dtype=np.float32), labels)


def test_any_procedure_can_be_shadowed() -> None:
    def memorise(members: NDArray[np.bool_], source: Source) -> NDArray[np.float32]:
        return np.stack([members, ~members], axis=-1).astype(np.float32)

    runs = train_shadows(memorise, np.zeros(50, dtype=np.int64), 6, SeededSource(4, "any"))
    assert runs.is_fair
    assert (runs.models, runs.records) == (6, 50)
    assert np.array_equal(runs.log_odds > 0, runs.members)
    assert runs[2:4].models == 2


@pytest.mark.statistical
def test_memberships_are_fair_draws() -> None:
    """100,000 draws: a false alarm has probability 1e-6, a draw of 0.52 is found."""
    members = fair_members(100, 1000, SeededSource(5, "fair"))
    assert binomial_p(int(members.sum()), members.size, 0.5) > FALSE_ALARM
    assert binomial_p(int(members.sum()), members.size, 0.52) < FALSE_ALARM


def test_attacks_load_without_torch() -> None:
    code = "import sys; import noisefloor.adversary.models; print('torch' in sys.modules)"
    roots = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", code], env=roots, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
