"""Guarantees of a document, of several and of a user, as attacks need them."""

import math

import pytest

from noisefloor.adversary.text import membership_bound, of_exchange, of_removal
from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee, Neighbours

ONE = Guarantee(0.5, Neighbours.DOCUMENT, delta=1e-6)


def test_a_text_that_becomes_another_is_two_steps_and_r_texts_are_2_r() -> None:
    assert of_removal(ONE) == ONE
    assert of_exchange(ONE).epsilon == pytest.approx(1.0)
    assert of_exchange(ONE).delta == pytest.approx(1e-6 * (1 + math.exp(0.5)))
    assert of_removal(ONE, 3).epsilon == pytest.approx(1.5)
    assert of_exchange(ONE, 3).epsilon == pytest.approx(3.0)
    swapped = Guarantee(0.5, Neighbours.RECORD_SUBSTITUTE)
    assert of_exchange(swapped) == of_removal(swapped) == swapped
    assert of_exchange(swapped, 4).epsilon == pytest.approx(2.0)


def test_a_guarantee_for_users_holds_for_all_their_texts() -> None:
    user = Guarantee(0.5, Neighbours.USER)
    assert of_exchange(user, 30) == of_removal(user, 30) == user
    with pytest.raises(BadParameter, match="a relation of texts"):
        of_removal(Guarantee(0.5, Neighbours.BIT))


@pytest.mark.parametrize("prior", [0.5, 0.1, 0.9, 0.0])
@pytest.mark.parametrize("delta", [0.0, 0.1])
def test_the_bound_of_membership_is_the_best_of_a_grid_of_tests(
    prior: float, delta: float
) -> None:
    # All tests that (epsilon, delta) allows: TPR <= e^eps FPR + delta and the same of the misses.
    epsilon = 1.0
    best = 0.0
    for step in range(2001):
        false = step / 2000
        true = min(1.0, math.e * false + delta, 1 - (1 - delta - false) / math.e)
        best = max(best, prior * true + (1 - prior) * (1 - false))
    found = membership_bound(Guarantee(epsilon, Neighbours.DOCUMENT, delta=delta), prior)
    assert best <= found + 1e-12
    assert found == pytest.approx(best, abs=2e-3)
