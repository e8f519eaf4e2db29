"""Names and shapes of what may be trained of an encoder: public, and enough to plan by.

An encoder is whatever ends in a linear head and has its layers in a list: the top layers of a
pretrained one (``TopLayers``), or a small convolutional network that is trained from scratch.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, TypeAlias

from noisefloor.checks import check_count
from noisefloor.errors import BadParameter

if TYPE_CHECKING:
    from torch import nn

    from noisefloor.publication.fine_tuning.backbone import Backbone
    from noisefloor.publication.fine_tuning.top_layers import LayeredModule

Shape: TypeAlias = tuple[int, ...]
HEAD = "head"
HEAD_WEIGHT, HEAD_BIAS = f"{HEAD}.weight", f"{HEAD}.bias"

_BERT_MATRICES = (
    *("attention.self.query", "attention.self.key", "attention.self.value"),
    *("attention.output.dense", "intermediate.dense", "output.dense"),
)
_BERT_NORMS = ("attention.output.LayerNorm", "output.LayerNorm")


def sides_of(shape: Shape) -> tuple[int, int]:
    """Return rows and columns of a weight as a matrix: [out, in x h x w] of a convolution."""
    return shape[0], prod(shape[1:])


def kept_columns(shape: Shape, sparsity: float) -> int:
    """Return how many columns are left of a weight, where a share of its inputs is left out.

    The inputs of a convolution are channels; each is as many columns as its kernel has places.
    """
    return (shape[1] - int(sparsity * shape[1])) * prod(shape[2:])


@dataclass(frozen=True, slots=True)
class EncoderShapes:
    """The parameters of the top layers of an encoder and of a head, as ``TopLayers`` names them.

    Attributes:
        first: The first of the top layers, counted from 1.
        matrices: Weights of linear layers, by name: [outputs, inputs]; and of convolutions,
            [outputs, inputs, ...], which are matrices of sides ``sides_of``.
        vectors: Biases and normalisations, by name.
        head: Classes and features.
    """

    first: int
    matrices: tuple[tuple[str, Shape], ...]
    vectors: tuple[tuple[str, Shape], ...]
    head: tuple[int, int]

    @classmethod
    def of(
        cls, backbone: "Backbone", train_layers: int, pooled: Sequence[int], *, classes: int
    ) -> "EncoderShapes":
        """Read the shapes of a backbone's top layers."""
        first = backbone.depth - backbone.check_trained(train_layers) + 1
        head = (check_count(classes, "classes", least=2), backbone.width * len(pooled))
        return cls(first, *_parameters_of(backbone.layers[first - 1 :]), head)

    @classmethod
    def of_module(cls, module: "LayeredModule") -> "EncoderShapes":
        """Read the shapes of a module that has layers in a list and a linear head."""
        classes, features = module.head.weight.shape
        head = (check_count(classes, "classes", least=2), features)
        return cls(module.first, *_parameters_of(module.layers), head)

    @classmethod
    def bert(
        cls,
        depth: int,
        width: int,
        inner: int,
        *,
        train_layers: int | None = None,
        pooled: int = 1,
    ) -> "EncoderShapes":
        """Return the shapes of a BERT from its sizes alone: a plan needs no weights.

        Args:
            depth: Layers.
            width: Of a vector of a piece.
            inner: Width between the two matrices at the end of a layer.
            train_layers: Top layers that are trained; all if left out.
            pooled: How many layers' means are features of a head of two classes.
        """
        count = depth if train_layers is None else check_count(train_layers, "train_layers")
        sides = {"intermediate.dense": (inner, width), "output.dense": (width, inner)}
        matrices, vectors = [], []
        for place in range(count):
            for name in _BERT_MATRICES:
                rows, columns = sides.get(name, (width, width))
                matrices.append((f"layers.{place}.{name}.weight", (rows, columns)))
                vectors.append((f"layers.{place}.{name}.bias", (rows,)))
            for name in _BERT_NORMS:
                norms = [
                    (f"layers.{place}.{name}.{kind}", (width,)) for kind in ("weight", "bias")
                ]
                vectors.extend(norms)
        return cls(depth - count + 1, tuple(matrices), tuple(vectors), (2, width * pooled))

    def only(self, *ends: str) -> "EncoderShapes":
        """Return the same with those matrices alone whose layers' names end so.

        Others get no factors: ``only("query", "value")`` adapts these two of each attention.

        Raises:
            BadParameter: An end is that of no matrix.
        """
        whole = tuple(f"{end}.weight" for end in ends)
        kept = tuple(one for one in self.matrices if one[0].endswith(whole))
        for end in whole:
            if not any(name.endswith(end) for name, _ in kept):
                raise BadParameter("ends", ends, "each that of the name of a linear layer")
        return replace(self, matrices=kept)

    @property
    def head_parameters(self) -> dict[str, Shape]:
        """The head, which every method trains."""
        return {HEAD_WEIGHT: self.head, HEAD_BIAS: self.head[:1]}

    @property
    def layers(self) -> tuple[str, ...]:
        """The layers by the starts of their parameters' names."""
        names = [".".join(name.split(".")[:2]) for name, _ in (*self.matrices, *self.vectors)]
        return tuple(dict.fromkeys(names))


def _parameters_of(
    layers: "Sequence[nn.Module] | nn.ModuleList",
) -> tuple[tuple[tuple[str, Shape], ...], tuple[tuple[str, Shape], ...]]:
    """Return weights of linear layers and convolutions, and all other parameters."""
    from torch import nn

    matrices: list[tuple[str, Shape]] = []
    vectors: list[tuple[str, Shape]] = []
    for place, layer in enumerate(layers):
        weights = {
            f"{name}.weight".lstrip(".")
            for name, one in layer.named_modules()
            if type(one) in (nn.Linear, nn.Conv1d, nn.Conv2d)
        }
        for name, parameter in layer.named_parameters():
            found = matrices if name in weights else vectors
            found.append((f"layers.{place}.{name}", tuple(parameter.shape)))
    return tuple(matrices), tuple(vectors)
