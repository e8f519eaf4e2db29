"""The trigram model is a distribution, is Kneser and Ney's by hand, and knows fluent texts."""

from collections import defaultdict

import numpy as np
import pytest

from made_up_texts import SIZE, class_texts, documents_of, shuffled
from noisefloor.errors import BadParameter
from noisefloor.publication.text.evaluation import TrigramModel, fluency_of

CORPUS = [[0, 1, 2, 0, 1, 3], [0, 1, 2], [3, 3, 3, 1], [], [2, 0]]
START = 5

Counts = dict[tuple[int, ...], int]


def by_hand(size: int = 5) -> dict[tuple[int, int, int], float]:
    """Return P(w | u, v) of all triples by loops over dictionaries."""
    three: Counts = defaultdict(int)
    for row in CORPUS:
        marked = [START, START, *row]
        for at in range(2, len(marked)):
            three[tuple(marked[at - 2 : at + 1])] += 1
    two: Counts = {
        pair: len({k for k in three if k[1:] == pair}) for pair in {k[1:] for k in three}
    }
    one: Counts = {(w,): sum(pair[1] == w for pair in two) for w in {pair[1] for pair in two}}
    discounts = []
    for counts in (one, two, three):
        once, twice = (sum(value == n for value in counts.values()) for n in (1, 2))
        discounts.append(min(0.9, max(0.1, once / (once + 2 * twice))) if once else 0.5)

    def chance(run: tuple[int, ...], order: int) -> float:
        if order < 0:
            return 1 / size
        counts = (one, two, three)[order]
        mine = run[len(run) - order - 1 :]
        rest = [value for key, value in counts.items() if key[:-1] == mine[:-1]]
        shorter = chance(run, order - 1)
        if not rest:
            return shorter
        own = max(counts.get(mine, 0) - discounts[order], 0.0)
        return (own + discounts[order] * len(rest) * shorter) / sum(rest)

    marks = [*range(size), START]
    return {(u, v, w): chance((u, v, w), 2) for u in marks for v in marks for w in range(size)}


def test_the_probabilities_are_those_by_hand_and_sum_to_one() -> None:
    model = TrigramModel.train(documents_of(CORPUS), 5)
    expected = by_hand()
    for u in (*range(5), START):
        for v in (*range(5), START):
            total = sum(expected[u, v, w] for w in range(5))
            assert total == pytest.approx(1.0, abs=1e-12)
    contexts = [[], *[[v] for v in range(5)], *[[u, v] for u in range(5) for v in range(5)]]
    for context in contexts:
        rows = [[*context, w] for w in range(5)]
        found = np.exp(model.log_probabilities(documents_of(rows)))[
            len(context) :: len(context) + 1
        ]
        u, v = [START, START, *context][-2:]
        assert found == pytest.approx([expected[u, v, w] for w in range(5)], rel=1e-12)
    assert model.trained == 15


def test_texts_cost_the_sum_of_their_pieces() -> None:
    model = TrigramModel.train(documents_of(CORPUS), 5)
    rows = [[0, 1], [], [4]]
    nats = model.nats(documents_of(rows))
    costs = -model.log_probabilities(documents_of(rows))
    assert nats == pytest.approx([costs[0] + costs[1], 0.0, costs[2]])
    assert np.isfinite(nats).all()  # 4 is in no text


@pytest.mark.statistical
def test_real_texts_are_fluent_and_shuffled_ones_are_not(seed: int) -> None:
    # 300 texts of 20 pieces each. The gap of a null is within 6 standard errors (false alarm
    # below 1e-6, were it normal; pieces cost at most some nats). The twin is shuffled.
    model = TrigramModel.train(class_texts(2000, seed, "public"), SIZE)
    texts = [class_texts(300, seed, name) for name in ("real", "more")]
    real, more = (fluency_of(model.nats(some), some.lengths) for some in texts)
    broken = shuffled(texts[1], seed)
    bad = fluency_of(model.nats(broken), broken.lengths)
    spread = np.hypot(real.error, more.error)
    assert abs(real.nats - more.nats) < 6 * spread
    assert bad.nats - real.nats > 6 * np.hypot(real.error, bad.error)


def test_what_cannot_be_counted_is_refused() -> None:
    with pytest.raises(BadParameter, match="at least one piece"):
        TrigramModel.train(documents_of([[], []]), 5)
    with pytest.raises(BadParameter, match="pieces of a vocabulary"):
        TrigramModel.train(documents_of([[5]]), 5)
    with pytest.raises(BadParameter, match="size"):
        TrigramModel.train(documents_of([[5]]), 1 << 21)
    one = TrigramModel.train(documents_of([[0]]), 1)
    assert one.nats(documents_of([[0, 0]])) == pytest.approx([0.0])
