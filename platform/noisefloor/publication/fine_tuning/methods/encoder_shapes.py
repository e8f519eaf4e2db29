"""Names and shapes of what may be trained of an encoder: public, and enough to plan by."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from noisefloor.checks import check_count

if TYPE_CHECKING:
    from noisefloor.publication.fine_tuning.backbone import Backbone

Shape: TypeAlias = tuple[int, ...]
HEAD = "head"
HEAD_WEIGHT, HEAD_BIAS = f"{HEAD}.weight", f"{HEAD}.bias"

_BERT_MATRICES = (
    *("attention.self.query", "attention.self.key", "attention.self.value"),
    *("attention.output.dense", "intermediate.dense", "output.dense"),
)
_BERT_NORMS = ("attention.output.LayerNorm", "output.LayerNorm")


@dataclass(frozen=True, slots=True)
class EncoderShapes:
    """The parameters of the top layers of an encoder and of a head, as ``TopLayers`` names them.

    Attributes:
        first: The first of the top layers, counted from 1.
        matrices: Weights of linear layers, by name: [outputs, inputs].
        vectors: Biases and normalisations, by name.
        head: Classes and features.
    """

    first: int
    matrices: tuple[tuple[str, tuple[int, int]], ...]
    vectors: tuple[tuple[str, Shape], ...]
    head: tuple[int, int]

    @classmethod
    def of(
        cls, backbone: "Backbone", train_layers: int, pooled: Sequence[int], *, classes: int
    ) -> "EncoderShapes":
        """Read the shapes of a backbone's top layers."""
        from torch import nn

        first = backbone.depth - backbone.check_trained(train_layers) + 1
        matrices: list[tuple[str, tuple[int, int]]] = []
        vectors: list[tuple[str, Shape]] = []
        for place, layer in enumerate(backbone.layers[first - 1 :]):
            linear = {
                f"{name}.weight" for name, one in layer.named_modules() if type(one) is nn.Linear
            }
            for name, parameter in layer.named_parameters():
                whole = f"layers.{place}.{name}"
                if name in linear:
                    matrices.append((whole, (parameter.shape[0], parameter.shape[1])))
                else:
                    vectors.append((whole, tuple(parameter.shape)))
        head = (check_count(classes, "classes", least=2), backbone.width * len(pooled))
        return cls(first, tuple(matrices), tuple(vectors), head)

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

    @property
    def head_parameters(self) -> dict[str, Shape]:
        """The head, which every method trains."""
        return {HEAD_WEIGHT: self.head, HEAD_BIAS: self.head[:1]}

    @property
    def layers(self) -> tuple[str, ...]:
        """The layers by the starts of their parameters' names."""
        names = [".".join(name.split(".")[:2]) for name, _ in (*self.matrices, *self.vectors)]
        return tuple(dict.fromkeys(names))
