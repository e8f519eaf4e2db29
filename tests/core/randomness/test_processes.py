"""Other processes: no copy of a stream repeats draws there."""

import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

from between_processes import sent
from forked_children import FORKS, in_forked_child
from noisefloor.errors import ForkedStream, StreamReopened
from noisefloor.randomness import SeededSource, new_run


def test_pickling_hands_on_the_path_and_no_state() -> None:
    source = SeededSource(7, "a", 1)
    pristine = pickle.dumps(source)
    first = source.words(3).tolist()
    assert pickle.dumps(source) == pristine
    with new_run():
        assert sent(source).words(3).tolist() == first


def test_a_pickled_copy_cannot_repeat_draws_in_the_same_run() -> None:
    source = SeededSource(7, "a")
    source.words(1)
    with pytest.raises(StreamReopened):
        sent(source).words(1)


def test_a_stage_cannot_be_pickled() -> None:
    with pytest.raises(ForkedStream, match="pass the path"):
        pickle.dumps(SeededSource(7, "a").stage("b"))


def test_a_spawned_worker_gets_the_draws_of_the_path() -> None:
    source = SeededSource(7, "worker", 1)
    here = source.words(5).tolist()
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=spawn) as pool:
        # A method of the package, since a spawned process cannot import this file by its name.
        there = pool.submit(SeededSource.words, source, 5).result()
    assert there.tolist() == here


@FORKS
@pytest.mark.parametrize("is_opened", [False, True])
def test_a_source_made_before_a_fork_refuses_to_draw_after_it(is_opened: bool) -> None:
    source = SeededSource(7, "a")
    if is_opened:
        source.words(1)
    assert in_forked_child(lambda: source.words(1).tobytes()) == b"ForkedStream"
    assert in_forked_child(lambda: source.bernoulli(1 << 63, 1).tobytes()) == b"ForkedStream"
    assert in_forked_child(lambda: repr(source.stage("b")).encode()) == b"ForkedStream"
    assert source.words(1).size == 1


@FORKS
def test_a_stage_made_before_a_fork_refuses_to_draw_after_it() -> None:
    stage = SeededSource(7, "a").stage("b")
    assert in_forked_child(lambda: stage.words(1).tobytes()) == b"ForkedStream"
    assert in_forked_child(lambda: stage.below(3, 1).tobytes()) == b"ForkedStream"


@FORKS
def test_a_stage_made_before_a_fork_refuses_to_open_stages_after_it() -> None:
    stage = SeededSource(7, "a").stage("b")
    assert in_forked_child(lambda: stage.stage("c").words(1).tobytes()) == b"ForkedStream"


@FORKS
def test_a_forked_child_may_make_sources_of_its_own() -> None:
    given = in_forked_child(lambda: SeededSource(7, "child").words(4).tobytes())
    with new_run():
        expected = SeededSource(7, "child").words(4)
    assert np.array_equal(np.frombuffer(given, dtype=np.uint64), expected)
