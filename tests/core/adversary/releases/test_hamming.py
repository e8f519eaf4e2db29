"""Hamming distances in blocks: the same as one by one."""

import numpy as np
import pytest

from noisefloor.adversary.releases.nearest_records import closest, distances
from noisefloor.errors import BadParameter
from noisefloor.randomness import SeededSource


def test_blocks_hold_every_pair_once() -> None:
    draw = SeededSource(1, "pairs").generator()
    rows, table = draw.integers(0, 4, (700, 5)), draw.integers(0, 4, (2_300, 5))
    whole = np.full((700, 2_300), -1)
    for some, others, apart in distances(rows, table):
        assert apart.size <= 1 << 18
        assert np.all(whole[some, others] == -1)
        whole[some, others] = apart
    for row in (0, 255, 256, 699):
        assert whole[row].tolist() == (rows[row] != table).sum(axis=1).tolist()
    assert closest(rows, table).tolist() == whole.min(axis=1).tolist()


def test_large_and_negative_codes_are_compared_as_they_are() -> None:
    rows = np.array([[0, 256], [-1, 3]])
    assert closest(rows, np.array([[256, 0], [255, 3]])).tolist() == [2, 1]


def test_tables_have_to_fit() -> None:
    with pytest.raises(BadParameter, match="columns"):
        closest(np.zeros((2, 3), np.int64), np.zeros((2, 4), np.int64))
    with pytest.raises(BadParameter, match="table"):
        closest(np.zeros((2, 3), np.int64), np.zeros((0, 3), np.int64))
