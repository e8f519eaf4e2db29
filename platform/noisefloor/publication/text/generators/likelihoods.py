"""How likely a generator finds documents: the negative log-likelihood of each.

Nothing of it is private if the documents are not those that were learnt from; of these it is what
membership attacks look at.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from noisefloor.publication.text.documents import Documents
from noisefloor.publication.text.generators.model_weights import loaded_modules
from noisefloor.publication.text.generators.shapes import EncoderReads
from noisefloor.publication.text.generators.teacher_forcing import (
    MICRO_BATCH,
    forced,
    piece_losses,
)
from noisefloor.publication.text.generators.text_generator import TextGenerator
from noisefloor.publication.text.generators.training_texts import lay_out


def document_losses(
    generator: TextGenerator, documents: Documents, reads: EncoderReads = "seed"
) -> NDArray[np.float64]:
    """Return the negative log-likelihood in nats of each document, given label and first piece.

    It is summed over all pieces but the first, which a generator is given. Pieces outside of the
    vocabulary count as one piece, the unknown one.

    Args:
        generator: What finds documents likely or not.
        documents: Any, of its labels.
        reads: What an encoder reads: the first piece, as when texts are generated; or the text
            itself, as in training, which says how well texts are reproduced.
    """
    texts = lay_out(documents, generator.vocabulary, generator.shape, reads)
    found = np.zeros(texts.count)
    for number, module in enumerate(loaded_modules(generator)):
        mine = (texts.labels == number) | generator.is_conditional
        rows = np.flatnonzero(mine)
        own = texts[rows]
        examples, padding = forced(own, torch.ones(own.count, 0))
        with torch.inference_mode():
            for part in padding.micro_batches(None, MICRO_BATCH):
                taken = padding.cut(examples.taken(part), part)
                losses = piece_losses(module(*taken.inputs), taken.targets)
                found[rows[part.numpy()]] = losses.double().sum(1).numpy()
    return found
