"""How sure a generator is of the piece after a seed: what the paper plots as its privacy loss."""

import math

import numpy as np
import torch
from numpy.typing import NDArray

from noisefloor.errors import BadParameter
from noisefloor.publication.text.generators.model_weights import loaded_modules
from noisefloor.publication.text.generators.text_generator import TextGenerator
from noisefloor.publication.text.generators.training_texts import seed_rows


def largest_chances(
    generator: TextGenerator, label: int, seeds: NDArray[np.integer]
) -> NDArray[np.float64]:
    """Return the probability of the likeliest piece after each seed, given a label.

    Args:
        generator: What writes.
        label: Of the texts.
        seeds: First pieces, of the tokeniser; those outside of the vocabulary are one place. The
            unknown piece is never written, so it is no likeliest one.
    """
    if not 0 <= label < len(generator.labels):
        raise BadParameter("label", label, f"below {len(generator.labels)}")
    places = generator.vocabulary.places(seeds)
    module = loaded_modules(generator)[0 if generator.is_conditional else label]
    labels = torch.full((len(places),), label)
    with torch.inference_mode():
        states = module.begin(torch.from_numpy(seed_rows(places, generator.shape)), labels)
        logits, _ = module.advance(torch.from_numpy(places), states)
        logits[:, -1] = -math.inf
        found = torch.softmax(logits.double(), 1).max(1).values
    return np.asarray(found.numpy())
