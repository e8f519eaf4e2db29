"""The whole of a release: counts lead the model, labels and lengths follow the noisy tables."""

import numpy as np
import pytest

from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.publication import NoisedVector
from noisefloor.publication.text import Documents
from noisefloor.publication.text.language_models import Decoding, LanguageWriter, Steering
from noisefloor.publication.text.ngrams import NgramPlan
from noisefloor.randomness import SeededSource, new_run
from tiny_language_models import private_documents, tiny_model

LONGEST = 12


def a_plan(epsilon: float = 12.0, classes: int = 2) -> NgramPlan:
    cost = Guarantee(epsilon, Neighbours.RECORD_ADD_REMOVE, delta=1e-5, model=TrustModel.CENTRAL)
    return NgramPlan.of(cost, classes, LONGEST, tiny_model().tokeniser.size, has_pairs=False)


def a_writer(**steering: float) -> LanguageWriter:
    settings = {"texts": 64, **steering}
    return LanguageWriter(tiny_model(), Decoding("Write."), Steering(**settings))  # type: ignore[arg-type]  # whole numbers


def shares(documents: Documents, label: int) -> np.ndarray:
    mine = documents[documents.labels == label].pieces
    return np.bincount(mine, minlength=tiny_model().tokeniser.size) / len(mine)


def distance(one: Documents, other: Documents) -> float:
    return float(np.mean([np.abs(shares(one, k) - shares(other, k)).sum() / 2 for k in (0, 1)]))


def test_texts_come_closer_to_the_private_shares_the_stronger_the_shift() -> None:
    private = private_documents(2_000)
    found = {}
    for name, strength, rounds in (("none", 0.0, 0), ("first", 1.0, 0), ("rounds", 1.0, 3)):
        writer = a_writer(strength=strength, rounds=rounds, most=8.0)
        written = writer.write(private, a_plan(), 300, SeededSource(1, "strength", name))
        found[name] = distance(written, private)
    assert found["first"] < found["none"] - 0.2
    assert found["rounds"] < found["first"]


def test_labels_and_lengths_follow_the_noisy_tables() -> None:
    private = private_documents(2_000)
    few = private[np.flatnonzero((private.labels == 0) | (np.arange(2_000) % 4 == 0))]
    written = a_writer(rounds=0).write(few, a_plan(), 400, SeededSource(2, "labels"))
    assert written.count == 400
    assert written.labels.mean() == pytest.approx(few.labels.mean(), abs=0.03)
    assert written.lengths.mean() == pytest.approx(few.lengths.mean(), abs=0.4)
    # The order is drawn: labels are not in blocks.
    assert 20 < np.count_nonzero(np.diff(written.labels)) < 380


def test_a_release_is_the_same_for_the_same_seed_and_another_for_another() -> None:
    private = private_documents(300)
    both = []
    for seed in (3, 3, 4):
        with new_run():
            written = a_writer().write(private, a_plan(4.0), 40, SeededSource(seed, "same"))
        both.append((written.pieces.tolist(), written.labels.tolist()))
    assert both[0] == both[1] != both[2]


def test_private_documents_are_looked_at_by_the_noisy_tables_alone() -> None:
    """With the same noisy tables nothing else of the texts comes through."""
    seen: list[NoisedVector] = []
    private = private_documents(300)
    written = a_writer(rounds=1).write(
        private, a_plan(), 40, SeededSource(5, "tables"), seen.append
    )
    assert [one.part for one in seen] == ["lengths", "pieces"]
    shuffled = private[SeededSource(5, "order").permutation(private.count)]
    with new_run():
        again = a_writer(rounds=1).write(shuffled, a_plan(), 40, SeededSource(5, "tables"))
    assert again.pieces.tolist() == written.pieces.tolist()


def test_an_empty_corpus_is_written_from() -> None:
    none = private_documents(4)[np.zeros(0, dtype=np.int64)]
    written = a_writer(rounds=1).write(none, a_plan(1.0), 10, SeededSource(6, "empty"))
    assert written.count == 10


def test_a_plan_without_pairs_spends_all_on_the_others() -> None:
    plan = a_plan(8.0)
    with_pairs = NgramPlan.of(plan.cost, 2, LONGEST, plan.vocabulary)
    assert [*plan.multipliers] == ["lengths", "pieces"]
    assert plan.multipliers["pieces"] < with_pairs.multipliers["pieces"]
    assert plan.guarantee.epsilon == pytest.approx(with_pairs.guarantee.epsilon, rel=1e-3)
    assert 7.9 < plan.guarantee.epsilon <= 8.0
    assert set(plan.as_json()) == {"lengths", "pieces"}
