"""What a generator is made of: kind and sizes, without weights; torch-free."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias, get_args

from noisefloor.checks import check_count
from noisefloor.errors import BadParameter

STEP = 8
"""Positions by which lengths of texts are rounded up in training: fewer, fuller batches."""

GeneratorKind: TypeAlias = Literal["encoder-decoder", "language-model", "transformer"]
EncoderReads: TypeAlias = Literal["text", "seed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratorShape:
    """Kind and sizes of one generator.

    ``encoder-decoder``: an LSTM reads a text, another starts from its last state and predicts each
    piece from those before it. ``language-model``: the second LSTM alone. ``transformer``: blocks
    of causal attention in its place.

    Attributes:
        kind: Which of them.
        vocabulary: Places of pieces, that of unknown ones included.
        longest: The most pieces of a text.
        classes: How many labels one model is conditioned on; 0 if it is of one label.
        embedding: Width of looked-up pieces; of all layers of a transformer.
        hidden: Width of an LSTM, or of the wide layer of a transformer's blocks.
        layers: Recurrent layers, or blocks.
        heads: Of attention.
        is_tied: Whether pieces are predicted by the table they are looked up in.
        reads: What the encoder reads in training: the whole text, which the decoder then
            reproduces; or its first piece, which is all that it reads when texts are generated.
    """

    kind: GeneratorKind
    vocabulary: int
    longest: int
    classes: int = 0
    embedding: int = 96
    hidden: int = 128
    layers: int = 1
    heads: int = 4
    is_tied: bool = False
    reads: EncoderReads = "text"

    def __post_init__(self) -> None:
        if self.kind not in get_args(GeneratorKind):
            raise BadParameter("kind", self.kind, f"one of {', '.join(get_args(GeneratorKind))}")
        if self.reads not in get_args(EncoderReads):
            raise BadParameter("reads", self.reads, f"one of {', '.join(get_args(EncoderReads))}")
        check_count(self.vocabulary, "vocabulary", least=2, most=1 << 20)
        check_count(self.longest, "longest", least=2, most=1 << 12)
        check_count(self.classes, "classes", least=0, most=1 << 10)
        for name in ("embedding", "hidden", "layers", "heads"):
            check_count(getattr(self, name), name, most=1 << 12)
        if self.kind == "transformer" and self.embedding % self.heads:
            raise BadParameter("embedding", self.embedding, f"a multiple of {self.heads} heads")

    @property
    def reads_text(self) -> bool:
        """Whether an encoder is given the whole text in training."""
        return self.kind == "encoder-decoder" and self.reads == "text"

    @property
    def positions(self) -> int:
        """The longest row of a padded batch."""
        return -(-self.longest // STEP) * STEP

    @property
    def masked_widths(self) -> tuple[int, int]:
        """Widths on which dropout acts: of looked-up pieces, and before the last layer."""
        last = self.embedding if self.kind == "transformer" or self.is_tied else self.hidden
        return self.embedding, last

    def as_json(self) -> dict[str, Any]:  # Any: JSON
        """Write the shape for a file or a card."""
        return asdict(self)

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> "GeneratorShape":  # Any: JSON
        """Read what ``as_json`` wrote."""
        return cls(**fields)
