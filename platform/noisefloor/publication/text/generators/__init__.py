"""Text generators: networks that write texts piece by piece, learnt privately or as printed.

    vocabulary = most_frequent_pieces(public.pieces, 3_000, is_public=True)
    shape = GeneratorShape(kind="encoder-decoder", vocabulary=vocabulary.size, longest=60,
                           classes=2)
    plan = GeneratorPlan.for_budget(cost, shape, [10_000, 10_000], expected_batch=256, epochs=5)
    trained = learn_generator(plan, documents, vocabulary, source, labels=("neg", "pos"),
                              tokeniser_sha256=tokeniser.sha256)
    pieces, offsets = generate(trained.generator, labels, seeds, lengths, draws)

Shapes, vocabularies, plans, files and the paper's prompts need no torch. Seeds and lengths are
given to ``generate``: what they are drawn from is another release, with its own cost; the
paper copies them from the private documents (``copied_prompts``), and nothing is guaranteed.
"""

from typing import TYPE_CHECKING, Any

from noisefloor.publication.text.generators.copied_prompts import Prompts, copied_prompts
from noisefloor.publication.text.generators.generator_plan import (
    PRIVATE_PARTS,
    GeneratorPlan,
    GeneratorVariant,
)
from noisefloor.publication.text.generators.shapes import (
    EncoderReads,
    GeneratorKind,
    GeneratorShape,
)
from noisefloor.publication.text.generators.text_generator import TextGenerator
from noisefloor.publication.text.generators.vocabulary import (
    PieceVocabulary,
    most_frequent_pieces,
)

if TYPE_CHECKING:
    from noisefloor.publication.text.generators.likelihoods import document_losses
    from noisefloor.publication.text.generators.next_pieces import largest_chances
    from noisefloor.publication.text.generators.plain_learning import learn_without_privacy
    from noisefloor.publication.text.generators.private_learning import (
        TrainedGenerator,
        learn_generator,
    )
    from noisefloor.publication.text.generators.sampling import draw_places, generate

__all__ = [
    "PRIVATE_PARTS",
    "EncoderReads",
    "GeneratorKind",
    "GeneratorPlan",
    "GeneratorShape",
    "GeneratorVariant",
    "PieceVocabulary",
    "Prompts",
    "TextGenerator",
    "TrainedGenerator",
    "copied_prompts",
    "document_losses",
    "draw_places",
    "generate",
    "largest_chances",
    "learn_generator",
    "learn_without_privacy",
    "most_frequent_pieces",
]

_WITH_TORCH = {
    "TrainedGenerator": "private_learning",
    "document_losses": "likelihoods",
    "draw_places": "sampling",
    "generate": "sampling",
    "largest_chances": "next_pieces",
    "learn_generator": "private_learning",
    "learn_without_privacy": "plain_learning",
}


def __getattr__(name: str) -> Any:  # Any: whatever the module has by that name
    """Import what needs torch on first use."""
    if name not in _WITH_TORCH:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_WITH_TORCH[name]}"), name)
