"""How sure a generator is of the piece after a seed, against what it finds of texts of two."""

import numpy as np
import pytest

from generator_cases import FIRST_PIECE, SHAPES, a_generator, documents_of
from noisefloor.errors import BadParameter
from noisefloor.publication.text.generators import document_losses, largest_chances


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("label", [0, 1])
def test_the_largest_chance_is_that_of_the_likeliest_text_of_two_pieces(
    name: str, label: int
) -> None:
    generator = a_generator(SHAPES[name])
    seeds = np.array([FIRST_PIECE, FIRST_PIECE + 5, 7])  # the last one is not in the vocabulary
    found = largest_chances(generator, label, seeds)
    for seed, chance in zip(seeds.tolist(), found.tolist(), strict=True):
        pairs = [[seed, piece] for piece in generator.vocabulary.pieces.tolist()]
        documents = documents_of(pairs, [label] * len(pairs))
        chances = np.exp(-document_losses(generator, documents))
        assert chance == pytest.approx(chances.max() / chances.sum(), rel=1e-5)
        assert 1 / len(pairs) < chance < 1


def test_a_label_that_is_not_there_is_refused() -> None:
    with pytest.raises(BadParameter, match="label"):
        largest_chances(a_generator(SHAPES["transformer"]), 2, np.array([FIRST_PIECE]))
