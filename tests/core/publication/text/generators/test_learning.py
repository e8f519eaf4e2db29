"""Generators learnt from documents, privately and not."""

from dataclasses import replace

import numpy as np
import pytest

from generator_cases import (
    LABELS,
    SHAPES,
    a_generator,
    a_plan,
    a_vocabulary,
    documents_of,
    some_documents,
)
from noisefloor.errors import BadParameter
from noisefloor.publication.noised_vectors import NoisedVector
from noisefloor.publication.text.generators import (
    GeneratorPlan,
    TextGenerator,
    document_losses,
    learn_generator,
    learn_without_privacy,
    most_frequent_pieces,
)
from noisefloor.randomness import SeededSource, new_run

ABOUT = {"labels": LABELS, "tokeniser_sha256": "0" * 64}


def trained(plan: GeneratorPlan, seed: int = 1, **change: object) -> TextGenerator:
    with new_run():
        found = learn_generator(
            plan,
            some_documents(),
            a_vocabulary(),
            SeededSource(seed, "training"),
            **{**ABOUT, **change},  # type: ignore[arg-type] # as a call has them
        )
    assert all(report.road == "book-keeping" for report in found.reports)
    return found.generator


@pytest.mark.parametrize("name", SHAPES)
def test_a_generator_is_trained_by_the_same_draws_again(name: str) -> None:
    plan = a_plan(SHAPES[name], dropout=0.2)
    assert trained(plan).written() == trained(plan).written()
    assert trained(plan).written() != trained(plan, seed=2).written()


def test_a_text_without_a_second_piece_says_nothing() -> None:
    """Empty texts and texts of one piece have no target, and stop no training."""
    plan = a_plan(SHAPES["encoder-decoder"])
    documents = documents_of([[], [100], [], [101]], [0, 0, 1, 1])
    source = SeededSource(1, "empty")
    made = learn_generator(plan, documents, a_vocabulary(), source, **ABOUT)  # type: ignore[arg-type]
    assert all(report.steps == report.plan.steps > 0 for report in made.reports)
    assert all(report.moved > 0 for report in made.reports), "noise moves weights all the same"


@pytest.mark.parametrize(("share", "spread"), [(0.0, 1e-3), (0.5, 0.1)])
def test_dropout_changes_from_epoch_to_epoch(share: float, spread: float) -> None:
    """Every step takes all texts, and weights stay: sums differ by the factors alone."""
    plan = a_plan(SHAPES["language model for both labels"], dropout=share)
    still = replace(
        plan.trainings[0], expected_batch=24, learning_rate=1e-7, noise_multiplier=1e-3
    )
    sums: list[NoisedVector] = []
    trained(replace(plan, trainings=(still,)), residuals=sums.append)
    assert len(sums) == still.steps
    first, *others = [one.clean for one in sums if one.clean is not None]
    gaps = [np.abs(one - first).max() for one in others]
    assert (min(gaps) > spread) if share else (max(gaps) < spread)


def test_a_private_vocabulary_is_refused_unless_the_plan_is_the_papers() -> None:
    private = most_frequent_pieces(some_documents().pieces, 12, is_public=False)
    with pytest.raises(BadParameter, match="of a public corpus"):
        learn_generator(
            a_plan(SHAPES["transformer"]),
            some_documents(),
            private,
            SeededSource(1),
            **ABOUT,  # type: ignore[arg-type]
        )
    plan = GeneratorPlan.as_printed(
        SHAPES["transformer"],
        [12, 12],
        noise_multiplier=1.0,
        expected_batch=6,
        epochs=1,
        delta=1e-5,
    )
    made = learn_generator(plan, some_documents(), private, SeededSource(2), **ABOUT)  # type: ignore[arg-type]
    assert not TextGenerator.read(made.generator.written()).vocabulary.is_public


def test_a_public_start_is_where_the_training_begins() -> None:
    shape = SHAPES["language model for both labels"]
    start = a_generator(shape)
    plan = a_plan(shape)
    slow = replace(
        plan, trainings=tuple(replace(one, learning_rate=1e-6) for one in plan.trainings)
    )
    found = trained(slow, start=start)
    for name, one in start.weights[0].items():
        assert np.allclose(found.weights[0][name], one, atol=1e-4)
    with pytest.raises(BadParameter, match="same shape and vocabulary"):
        trained(slow, start=a_generator(SHAPES["transformer"], "other"))


@pytest.mark.parametrize("labels", [("bad",), ("bad", "good", "so so")])
def test_labels_have_to_fit(labels: tuple[str, ...]) -> None:
    with pytest.raises(BadParameter, match="labels"):
        trained(a_plan(SHAPES["transformer"]), labels=labels)
    with pytest.raises(BadParameter, match="labels"):
        trained(a_plan(SHAPES["transformer, tied, for both labels"]), labels=labels)


@pytest.mark.parametrize("name", SHAPES)
def test_without_privacy_a_pattern_is_trained(name: str) -> None:
    """After 101 comes 102, after 102 comes 101: nearly nothing is left to guess."""
    texts = [[101, 102] * 5 if row % 2 else [102, 101] * 5 for row in range(32)]
    documents = documents_of(texts, [0, 0, 1, 1] * 8)
    found = learn_without_privacy(
        SHAPES[name],
        documents,
        a_vocabulary(),
        SeededSource(1, "pattern"),
        batch=4,
        epochs=12.5,
        learning_rate=0.02,
        dropout=0.1,
        **ABOUT,  # type: ignore[arg-type]
    )
    assert document_losses(found, documents).mean() / 9 < 0.7
    before = learn_without_privacy(
        SHAPES[name],
        documents,
        a_vocabulary(),
        SeededSource(2, "pattern"),
        epochs=0,
        **ABOUT,  # type: ignore[arg-type]
    )
    # It begins as the public unigram.
    shares = a_vocabulary().shares[1:3]
    assert document_losses(before, documents).mean() / 9 == pytest.approx(
        -np.log(shares).mean(), abs=0.5
    )


@pytest.mark.parametrize("name", SHAPES)
def test_probabilities_of_all_second_pieces_add_up_to_one(name: str) -> None:
    generator = a_generator(SHAPES[name])
    pieces = [*generator.vocabulary.pieces.tolist(), 119]  # the last one is unknown
    documents = documents_of([[103, piece] for piece in pieces], [1] * len(pieces))
    assert np.exp(-document_losses(generator, documents)).sum() == pytest.approx(1, abs=1e-5)


def test_a_text_that_is_read_is_more_than_its_first_piece() -> None:
    generator = a_generator(SHAPES["encoder-decoder"])
    documents = documents_of([[103, 104, 105]])
    by_seed, by_text = (document_losses(generator, documents, one) for one in ("seed", "text"))
    assert by_seed != pytest.approx(by_text)
