"""Runs of pieces against loops over all of them; verbatim runs against a search by hand."""

import numpy as np
import pytest

from made_up_texts import documents_of
from noisefloor.errors import BadParameter
from noisefloor.publication.text import Documents
from noisefloor.publication.text.evaluation import number_windows, verbatim_runs
from noisefloor.randomness import SeededSource


def few_pieces(count: int, seed: int, kinds: int = 3) -> list[list[int]]:
    draw = SeededSource(seed, "few").generator()
    return [draw.integers(0, kinds, draw.integers(0, 12)).tolist() for _ in range(count)]


def runs_of(documents: Documents, length: int) -> list[tuple[int, tuple[int, ...]]]:
    rows = np.split(documents.pieces, documents.offsets[1:-1])
    return [
        (owner, tuple(row[place : place + length].tolist()))
        for owner, row in enumerate(rows)
        for place in range(len(row) - length + 1)
    ]


@pytest.mark.parametrize("length", [1, 2, 3, 5, 6, 8, 11])
def test_equal_runs_have_equal_numbers_and_others_do_not(length: int) -> None:
    parts = [documents_of(few_pieces(40, seed)) for seed in (1, 2)]
    numbered, different = number_windows(parts, length)
    runs = [run for part in parts for run in runs_of(part, length)]
    numbers = np.concatenate([some.numbers for some in numbered])
    owners = np.concatenate([some.owners for some in numbered])
    assert owners.tolist() == [owner for owner, _ in runs]
    pairs = set(zip(numbers.tolist(), [run for _, run in runs], strict=True))
    assert len(pairs) == len(set(numbers.tolist())) == len({run for _, run in runs})
    assert numbers.max(initial=-1) < different


def test_a_run_longer_than_all_documents_is_nowhere() -> None:
    (only,), _ = number_windows([documents_of([[1, 2], [], [3]])], 3)
    assert only.numbers.size == only.owners.size == 0
    (only,), different = number_windows([documents_of([[], []])], 2)
    assert (only.numbers.size, different) == (0, 0)


def longest_by_hand(row: list[int], corpus: list[list[int]], reach: int) -> tuple[int, int]:
    best = (0, 0)
    for start in range(len(row)):
        for length in range(1, min(len(row) - start, reach) + 1):
            run = row[start : start + length]
            is_there = any(
                run == other[at : at + length]
                for other in corpus
                for at in range(len(other) - length + 1)
            )
            if is_there and length > best[0]:
                best = (length, start)
    return best


@pytest.mark.parametrize("reach", [1, 4, 5, 64])
def test_the_longest_shared_run_is_that_of_a_search_by_hand(reach: int) -> None:
    texts, corpus = few_pieces(60, 5, kinds=4), few_pieces(30, 6, kinds=5)
    found = verbatim_runs(documents_of(texts), documents_of(corpus), reach)
    expected = [longest_by_hand(row, corpus, reach) for row in texts]
    assert found.longest.tolist() == [length for length, _ in expected]
    assert found.begins.tolist() == [start for _, start in expected]
    assert found.share(1) == np.mean([length >= 1 for length, _ in expected])


def test_a_copied_text_is_a_run_of_its_whole_length() -> None:
    corpus = few_pieces(20, 8, kinds=50)
    found = verbatim_runs(documents_of(corpus), documents_of(corpus))
    assert found.longest.tolist() == [len(row) for row in corpus]
    apart = documents_of([[100 + piece for piece in row] for row in corpus])
    assert verbatim_runs(apart, documents_of(corpus)).longest.max() == 0
    assert verbatim_runs(apart, documents_of([])).share(1) == 0.0
    assert verbatim_runs(documents_of([]), apart).share(1) == 0.0


def test_a_run_ends_where_its_document_ends() -> None:
    split = documents_of([[1, 2], [3, 4]])
    assert verbatim_runs(documents_of([[1, 2, 3, 4]]), split).longest.tolist() == [2]
    with pytest.raises(BadParameter, match="least"):
        verbatim_runs(split, split, 3).share(4)
