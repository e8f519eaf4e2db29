"""Weights of generators: first ones from a source, and to and from what is published."""

import math

import numpy as np
import torch

from noisefloor.errors import BadParameter, BadSnapshot
from noisefloor.publication.private_sgd import initialise
from noisefloor.publication.text.generators.modules import (
    LstmGenerator,
    TransformerGenerator,
    module_of,
)
from noisefloor.publication.text.generators.shapes import GeneratorShape
from noisefloor.publication.text.generators.text_generator import TextGenerator, Weights
from noisefloor.publication.text.generators.vocabulary import PieceVocabulary
from noisefloor.randomness import Source

Module = LstmGenerator | TransformerGenerator


def fresh_module(shape: GeneratorShape, vocabulary: PieceVocabulary, source: Source) -> Module:
    """Return a module with first weights.

    If the vocabulary is public, the last layer starts at its shares: the module begins as the
    public unigram, and no noise is spent on learning what is public.
    """
    module = module_of(shape)
    initialise(module, source)
    with torch.no_grad():
        # Tables are drawn with deviation one: too much for a start, for sums of several tables
        # and for logits of a tied one.
        if shape.is_tied:
            module.embedding.weight.mul_(1 / math.sqrt(shape.embedding))
        if module.starts is not None:
            module.starts.weight.mul_(_SMALL)
        if isinstance(module, TransformerGenerator):
            module.positions.weight.mul_(_SMALL)
        module.head.bias.zero_()
        if vocabulary.is_public:
            if not shape.is_tied:
                module.head.weight.mul_(_SMALL)
            module.head.bias.copy_(torch.from_numpy(np.log(vocabulary.shares)))
    return module


_SMALL = 0.1
"""Of what distributions of first weights give."""


def copy_weights(module: Module, weights: Weights) -> None:
    """Put weights into a module of the same shape.

    Raises:
        BadSnapshot: They are of another shape.
    """
    own = dict(module.named_parameters())
    if {name: tuple(one.shape) for name, one in own.items()} != {
        name: tensor.shape for name, tensor in weights.items()
    }:
        raise BadSnapshot("Generator: its weights are not those of its shape.")
    with torch.no_grad():
        for name, parameter in own.items():
            parameter.copy_(torch.from_numpy(weights[name]))


def weights_of(module: Module) -> Weights:
    """Return the weights of a module as they are published; a tied matrix once."""
    own = module.named_parameters()
    return {name: one.detach().numpy().astype(np.float32, copy=True) for name, one in own}


def loaded_modules(generator: TextGenerator) -> list[Module]:
    """Return the modules of a generator, one or one for each label.

    Raises:
        BadSnapshot: Its weights are not of its shape.
    """
    modules = []
    for weights in generator.weights:
        module = module_of(generator.shape).eval()
        copy_weights(module, weights)
        modules.append(module)
    return modules


def check_start(
    start: TextGenerator, shape: GeneratorShape, vocabulary: PieceVocabulary, models: int
) -> None:
    """Refuse a start of another shape or vocabulary.

    Raises:
        BadParameter: It is.
    """
    is_alike = np.array_equal(start.vocabulary.pieces, vocabulary.pieces)
    if start.shape != shape or not is_alike or len(start.weights) != models:
        raise BadParameter("start", start.shape.kind, "of the same shape and vocabulary")
