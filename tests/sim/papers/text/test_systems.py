"""Systems that write corpora: noise, seeds, lengths and generalised names."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from noisefloor.accounting import epsilon_at_least
from noisefloor.privacy import Neighbours
from noisefloor.publication.text import Documents, shared_tokeniser
from noisefloor.publication.text.entities import Mentions
from noisefloor.publication.text.generators import PieceVocabulary
from noisefloor.randomness import SeededSource, Source, new_run
from noisefloor_sim.papers.text import corpora, measuring, plans, systems
from noisefloor_sim.papers.text.plans import cell_at
from text_paper_cases import TINY, Pair

Counts = NDArray[np.int64]


def test_the_noise_of_the_printed_variant_is_a_batch_times_that_of_its_claim() -> None:
    sizes = (160, 160)
    shapes = systems.shape_of(cell_at("dp-ed", 8.0, "printed"), TINY, 24, 8)
    outside, inside = (
        systems.generator_plan(cell_at("dp-ed", 8.0, variant), TINY, shapes, sizes)
        for variant in ("printed", "inside")
    )
    for one, other in zip(outside.trainings, inside.trainings, strict=True):
        assert one.noise_multiplier == pytest.approx(TINY.batch * other.noise_multiplier)
        assert one.steps == other.steps == 10
        assert one.optimiser == other.optimiser == "adam-printed"
    assert inside.weights_guarantee.epsilon == pytest.approx(8.0, rel=1e-2)
    assert outside.claimed.epsilon == pytest.approx(inside.claimed.epsilon)
    assert outside.weights_guarantee.epsilon < 0.5
    assert not inside.guarantee.is_finite


@pytest.mark.parametrize("batch", [16, 160])
def test_a_substitution_costs_what_is_worse_of_keeping_and_changing_the_label(batch: int) -> None:
    """In full batches two steps in one training cost more than one step in each of two."""
    plan = replace(TINY, batch=batch, epochs=3.0)
    shapes = systems.shape_of(cell_at("dp-ed", 8.0), plan, 24, 8)
    made = systems.generator_plan(cell_at("dp-ed", 8.0), plan, shapes, (160, 160))
    weights, found = made.weights_guarantee, systems.of_substitution(made)
    assert found.neighbours is Neighbours.RECORD_SUBSTITUTE
    assert found.delta == pytest.approx(2 * weights.delta)
    (event,) = made.trainings[0].events
    kept = epsilon_at_least(event, found.delta, Neighbours.RECORD_SUBSTITUTE)
    assert found.epsilon >= max(kept, 2 * weights.epsilon)
    if batch == 160:
        assert found.epsilon > 2.05 * weights.epsilon


def test_declared_sizes_are_two_digits_of_four_fifths() -> None:
    labels = np.repeat([0, 1], [12_297, 12_171])
    assert systems.declared_sizes(labels) == (9_800, 9_700)


class PlannedNoise:
    """Adds what it is given, for a deviation of one."""

    variance = 1.0

    def __init__(self, drawn: Counts) -> None:
        self.drawn = drawn

    def add(self, values: Counts, source: Source) -> Counts:
        return values + self.drawn

    def log_likelihood(self, released: Counts, values: Counts) -> float:
        return 0.0


def test_lengths_follow_cells_well_above_the_noise_and_no_others() -> None:
    lengths = np.repeat([3, 8, 5, 8], [40, 20, 20, 20])
    offsets = np.append(0, np.cumsum(lengths))
    train = Documents(np.zeros(offsets[-1], np.int32), offsets, np.repeat([0, 1], [60, 40]))
    seeds = np.arange(100, dtype=np.int32)
    budget = systems.length_budget(8.0)
    found = []
    # Two deviations in every cell; then nothing is left of what there is.
    for noise in (np.full(16, 2), np.full(16, -50)):
        planned = replace(budget, noises={"lengths": PlannedNoise(noise)})
        with new_run():
            source = SeededSource(1, "lengths")
            found.append(systems.noisy_prompts(train, seeds, 8, planned, source))
    pairs = list(zip(found[0].labels.tolist(), found[0].lengths.tolist(), strict=True))
    assert {one: pairs.count(one) for one in pairs} == {
        (0, 3): 39,
        (0, 8): 20,
        (1, 5): 21,  # 42 + 22 + 22 of 108 is 79.6 of 100
        (1, 8): 20,
    }
    assert pairs != sorted(pairs)
    assert found[0].seeds.tolist() == seeds.tolist()
    assert set(found[1].lengths.tolist()) == {8}
    assert set(found[1].labels.tolist()) == {0, 1}
    assert budget.guarantee.epsilon <= 0.4


def test_public_seeds_follow_public_shares() -> None:
    """A seed of 2,000 is one of two pieces by 1 to 3; an error beyond 0.06 has chance 1e-9."""
    pieces = np.array([7, 9], dtype=np.int32)
    vocabulary = PieceVocabulary(pieces, np.array([0.2, 0.6, 0.2]), is_public=True)
    with new_run():
        seeds = systems.public_seeds(vocabulary, 2_000, SeededSource(3, "seeds"))
    assert set(seeds.tolist()) == {7, 9}
    assert abs((seeds == 9).mean() - 0.75) < 0.06


def test_names_are_generalised_by_training_documents_alone(
    tiny: Pair,
) -> None:
    texts = ["a film in Paris", "the story in Paris"] * 4
    starts = [text.index("Paris") for text in texts]
    ends = [start + 5 for start in starts]
    mentions = Mentions.of(texts, range(8), starts, ends, [1] * 8)
    pieces, offsets = shared_tokeniser().cut(texts, 8)
    documents = Documents(pieces, offsets, np.arange(8) % 2)
    prepared = corpora.PreparedCorpus(texts, documents, documents, mentions, 8)
    cell = cell_at("dpvg-ed", 8.0, "inside")
    with new_run():
        source = SeededSource(1, "names")
        kept, parts = systems.generalised(prepared, np.arange(5), cell, 8, source)
        climbed, _ = systems.generalised(prepared, np.arange(4), cell, 8, source)
        plain, none = systems.generalised(
            prepared, np.arange(4), cell_at("dp-ed", 8.0, "inside"), 8, source
        )
        noisy, paid = systems.generalised(
            prepared, np.arange(4), cell_at("dpvg-ed", 8.0), 8, source
        )
    written = shared_tokeniser().written
    assert all("paris" in one for one in written(kept.pieces, kept.offsets))
    assert not any("paris" in one for one in written(climbed.pieces, climbed.offsets))
    assert all("paris" in one for one in written(plain.pieces, plain.offsets))
    assert not any("paris" in one for one in written(noisy.pieces, noisy.offsets))
    assert not parts["generalisation"].is_finite
    assert not none
    assert 0 < paid["generalisation"].epsilon <= 8.0 * plans.PLACE_SHARE


def test_a_word_that_is_not_public_is_written_as_printed_and_never_corrected(tiny: Pair) -> None:
    """As printed it is one seed of three: among 60 texts it is missing with chance 3e-11."""
    texts = ["paris film story"] * 60
    pieces, offsets = shared_tokeniser().cut(texts, 8)
    documents = Documents(pieces, offsets, np.arange(60) % 2)
    word = int(pieces[0])
    public = measuring.without(documents, np.array([word]))
    none = np.empty(0, np.int64)
    mentions = Mentions.of(texts, *[none] * 4)
    prepared = corpora.PreparedCorpus(texts, documents, public, mentions, 8)
    found = {}
    for cell in (cell_at("dp-ed", 8.0, "inside"), cell_at("dp-ed", 8.0)):
        with new_run():
            source = SeededSource(1, cell.key)
            written = systems.write_corpus(cell, TINY, prepared, np.arange(60), source)
        found[cell.variant] = int((written.documents.pieces == word).sum())
        has_reasons = [not part.is_finite for part in written.parts.values()]
        assert any(has_reasons) == cell.is_paper
        assert written.documents.count == (60 if cell.is_paper else 48)
    assert found["inside"] > 0
    assert found["corrected"] == 0


@pytest.mark.parametrize("system", ["ngrams", "crossed", "dp-ed", "dpvg-ed"])
def test_neither_the_number_nor_the_longest_of_private_texts_shows(
    system: plans.TextSystem, tiny: Pair
) -> None:
    """Not one document less, nor a longer one among those that are held out."""
    none = np.empty(0, np.int64)
    found = []
    for count, held_out in ((60, "the film"), (59, "the film"), (60, "the good film was great")):
        texts = ["the film was"] * 60 + [held_out]
        pieces, offsets = shared_tokeniser().cut(texts, 8)
        documents = Documents(pieces, offsets, np.arange(61) % 2)
        mentions = Mentions.of(texts, *[none] * 4)
        prepared = corpora.PreparedCorpus(texts, documents, documents[:9], mentions, 8)
        with new_run():
            written = systems.write_corpus(
                cell_at(system, 8.0), TINY, prepared, np.arange(count), SeededSource(1, "same")
            )
        longest = written.generator.shape.longest if written.generator else 8
        found.append((written.documents.count, longest))
    assert found == [(sum(systems.declared_sizes(np.arange(61) % 2)), 8)] * 3
