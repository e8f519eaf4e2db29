"""Distinct n-grams, self-BLEU and rare words, each against a count by hand."""

import math
from collections import Counter

import numpy as np
import pytest

from made_up_texts import SIZE, class_texts, documents_of, shuffled
from noisefloor.errors import BadParameter
from noisefloor.publication.text.evaluation import measure_diversity, self_bleu
from noisefloor.randomness import SeededSource

ROWS = [[1, 2, 3, 4, 5], [1, 2, 3, 9], [4, 5, 4, 5, 4, 5], [7], [], [1, 2, 3, 4, 5, 6]]


def grams(row: list[int], order: int) -> Counter[tuple[int, ...]]:
    return Counter(tuple(row[at : at + order]) for at in range(len(row) - order + 1))


def bleu_by_hand(rows: list[list[int]], place: int) -> float:
    row, others = rows[place], rows[:place] + rows[place + 1 :]
    if not row:
        return 0.0
    logs, orders = 0.0, min(4, len(row))
    for order in range(1, orders + 1):
        most: Counter[tuple[int, ...]] = Counter()
        for other in others:
            most |= grams(other, order)
        matches = sum((grams(row, order) & most).values())
        extra = int(order > 1)
        if not matches + extra:
            return 0.0
        logs += math.log((matches + extra) / (len(row) - order + 1 + extra))
    nearest = min((abs(len(other) - len(row)), len(other)) for other in others)[1]
    return math.exp(logs / orders + min(0.0, 1 - nearest / len(row)))


def test_self_bleu_is_that_by_hand() -> None:
    draw = SeededSource(1, "bleu").generator()
    rows = [draw.integers(0, 4, draw.integers(0, 9)).tolist() for _ in range(40)]
    for some in (ROWS, rows):
        expected = [bleu_by_hand(some, place) for place in range(len(some))]
        assert self_bleu(documents_of(some)) == pytest.approx(expected, abs=1e-12)


def test_equal_texts_have_a_self_bleu_of_one() -> None:
    assert self_bleu(documents_of([[1, 2, 3, 4, 5]] * 3)) == pytest.approx(np.ones(3))
    with pytest.raises(BadParameter, match="at least 2"):
        self_bleu(documents_of([[1]]))


def test_pieces_bigrams_and_rare_pieces_are_counted() -> None:
    reference = documents_of([[1, 2], [1, 4], [1, 5]] * 400 + [[3]])
    found = measure_diversity(documents_of(ROWS), reference, 10, SeededSource(1, "rows"))
    assert found.vocabulary == 8
    assert found.distinct_1 == pytest.approx(8 / 22)
    # 4 + 3 + 5 + 5 bigrams; 12, 23, 34, 45, 39, 54, 56 differ.
    assert found.distinct_2 == pytest.approx(7 / 17)
    # 3 is in one of 1,201 documents; 6, 7 and 9 in none.
    assert found.rare_share == pytest.approx(6 / 22)
    assert found.rare_kinds == 4
    assert (found.texts, found.pieces, found.compared) == (6, 22, 6)
    assert found.as_json()["vocabulary"] == 8


def test_texts_that_repeat_themselves_are_less_diverse() -> None:
    real = class_texts(300, 1)
    alike = real[np.arange(300) % 20]
    found = [
        measure_diversity(some, real, SIZE, SeededSource(1, "alike", place), sample=100)
        for place, some in enumerate((real, alike, shuffled(real, 1)))
    ]
    assert found[1].distinct_2 < found[0].distinct_2 < found[2].distinct_2
    assert found[2].self_bleu < found[0].self_bleu < found[1].self_bleu
    assert found[0].compared == 100
