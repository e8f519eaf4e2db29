"""Witnesses: values are exchanged, sums stay, and guesses of their bits bound epsilon."""

import math

import numpy as np
import pytest

from noisefloor.adversary.audit import WITNESS_ALPHA, bound_from_guesses, guesses_of
from noisefloor.randomness import SeededSource, new_run
from noisefloor_sim.inspection import draw_pairs, with_bits
from noisefloor_sim.pipelines import PIPELINES
from noisefloor_sim.runs.engine import Engine
from noisefloor_sim.scenario.sections import Witnesses
from worlds import small_world, with_clicks


def test_pairs_share_nobody_and_an_exchange_keeps_the_values() -> None:
    chance = SeededSource(1, "pairs").generator()
    first, second = draw_pairs(np.arange(100, 200), 20, chance)
    assert len(set(first) | set(second)) == 2 * len(first)
    values = np.arange(300)
    pairs = with_bits(first, second, chance)
    exchanged = pairs.exchange(values)
    assert sorted(exchanged) == list(range(300))
    moved = exchanged[first] != values[first]
    assert moved.tolist() == pairs.swapped.tolist()
    assert values.tolist() == list(range(300))


@pytest.mark.statistical
def test_the_bound_is_passed_as_rarely_as_it_says() -> None:
    """Exactly: guesses that are right with the largest probability that epsilon allows."""
    from scipy.stats import binom

    for epsilon in (0.5, 2.0):
        for n in (200, 1_000):
            share = 1 / (1 + math.exp(-epsilon))
            k = np.arange(n + 1)
            passed = [bound_from_guesses(int(one), n).epsilon > epsilon for one in k]
            wrong = binom.pmf(k, n, share)[passed].sum()
            assert wrong <= WITNESS_ALPHA
            assert binom.pmf(k, n, 1 / (1 + math.exp(-3 * epsilon)))[passed].sum() > wrong


def test_guesses_near_zero_are_left_out() -> None:
    scores, bits = np.array([2.0, -2.0, 0.0, 0.1]), np.array([True, True, True, False])
    assert guesses_of(scores, bits, 1.0) == (1, 2)
    assert guesses_of(scores, bits, 0.0) == (1, 3)
    assert bound_from_guesses(0, 0).epsilon == 0


def test_no_sum_changes_with_witnesses() -> None:
    """Truths, budgets and traffic are the same; estimates are made of other random draws."""
    noisy: tuple[str, ...] = (
        "error",
        "needed",
        "coverage",
        "estimate",
        "kept.",
        "kept_rate",
        "ctr",
    )
    noisy += ("attack.delivered.success", "attack.delivered.advantage", "formula_coverage")
    for form in ("one-click", "split", "delivered", "memoised", "pad-and-sample"):
        found = []
        for share in (0.0, 0.4):
            world = small_world(witnesses=Witnesses(share=share))
            with new_run():
                engine = Engine(with_clicks(world, form=form), PIPELINES)
                outcome = engine.run()
            metrics = [*outcome.findings["clicks"].metrics, *outcome.world]
            found.append({one.name: one for one in metrics if not one.name.startswith(noisy)})
            flow = engine.pipelines["clicks"].flows[0]
            assert bool(flow.witnesses) is (share > 0)  # type: ignore[attr-defined] # of clicks
        assert repr(found[0]) == repr(found[1]), form


def test_without_witnesses_nothing_is_audited() -> None:
    with new_run():
        engine = Engine(small_world(witnesses=Witnesses(share=0.0)), PIPELINES)
        (named,) = engine.run().findings["clicks"].claims
    assert named.claim.audited is None
    assert named.claim.verdict == "holds"
