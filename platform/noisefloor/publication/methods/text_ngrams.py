"""Made-up texts from noisy counts of pieces and pairs, crossed with public text if wanted."""

from dataclasses import dataclass
from typing import Any

from noisefloor.accounting import ReleaseLoss
from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.publication import synthesis
from noisefloor.publication.methods.canaries import TableCanary
from noisefloor.publication.methods.model_spec import ParameterReader
from noisefloor.publication.methods.text_plan import TextPlan, TextSpec
from noisefloor.publication.noised_vectors import ResidualObserver
from noisefloor.publication.release_run import NO_RUN, ReleaseRun
from noisefloor.publication.tensors import MOST_RELEASE_BYTES
from noisefloor.publication.text import (
    TEXTS_MEDIA_TYPE,
    Documents,
    PseudoTexts,
    TextTokeniser,
    read_documents,
    text_column,
)
from noisefloor.publication.text.evaluation import verbatim_runs
from noisefloor.publication.text.ngrams import (
    DEFAULT_PUBLIC_TEXTS,
    MOST_CLASSES,
    NgramPlan,
    NgramWriter,
    PublicCorpus,
    ReleasedTables,
    counting_tokeniser,
    fit_pairs,
    noise_of,
    public_corpus,
    read_ngrams,
    release_ngrams,
)
from noisefloor.randomness import Source
from noisefloor.tables import TextRecords, TextSchema

MOST_LENGTH = 512
DEFAULT_TEXTS = 10_000

_BYTES_A_PIECE = 8
"""More than a piece of text takes, with its space."""

_BYTES_A_LINE = 128

FLOATS = (
    "Nothing: the noise is of integers, drawn by exact integer weights. The guarantee is that of "
    "continuous noise which they are a rounding of; what was cut off their tails is part of delta."
)
_VERBATIM = 8
"""Pieces in a row that a card counts as copied from public text."""


def counting_canary(counting: NgramPlan) -> TableCanary:
    """Return the game about a document that moves every table as far as any can."""
    is_substitute = counting.cost.neighbours is Neighbours.RECORD_SUBSTITUTE
    groups = []
    for name in counting.multipliers:
        noise, step = noise_of(counting, name)
        # Two documents are furthest apart where one has what the other has the negative of.
        change = synthesis.RecordChange(1, 2 * step if is_substitute else step)
        groups.append((synthesis.GaussianEntries(noise), change))
    return TableCanary(groups)


def check_shape(schema: TextSchema) -> int:
    """Return the longest length of texts, or refuse texts too long or of too many classes."""
    _, longest = text_column(schema)
    if longest > MOST_LENGTH:
        raise BadParameter("text", longest, f"at most {MOST_LENGTH} pieces for this method")
    if schema.classes.size > MOST_CLASSES:
        rule = f"at most {MOST_CLASSES} classes for this method"
        raise BadParameter("label", schema.classes.size, rule)
    return longest


@dataclass(frozen=True, slots=True)
class TextNgramsPlan(TextPlan):
    """Texts written by chains of pieces; the guarantee is that of the noisy counts.

    Attributes:
        spec: The request.
        tokeniser: Of this publisher's backbone, or of its own public texts; it is public.
        public: The public corpus that says what is frequent.
        counting: What is counted, with how much noise.
        texts: How many are published.
        public_weight: The chance that a piece comes from public text.
        guarantee: Of all tables together.
    """

    NAME = "text-ngrams"
    HELP = f"""Made-up texts with labels, as JSON Lines, from noisy counts of lengths, pieces and
pairs of pieces. Parameters: `texts`, how many (default {DEFAULT_TEXTS:,}); `public`, the public
texts that say what is frequent (default `{DEFAULT_PUBLIC_TEXTS}`; `own`: a file of the
publisher's); `public_weight`, the chance that a piece is taken from what follows in public text
(default 0; at 0.5 and above it reads like text, and copies some). How many records there are is
counted, and need not be declared. The cost needs a delta."""
    MEDIA_TYPE = TEXTS_MEDIA_TYPE

    spec: TextSpec
    tokeniser: TextTokeniser
    public: PublicCorpus
    counting: NgramPlan
    texts: int
    public_weight: float
    guarantee: Guarantee

    @classmethod
    def of(cls, spec: TextSpec) -> "TextNgramsPlan":
        """Plan counts with the least noise that keeps to the cost."""
        reader = ParameterReader(spec.parameters, ("texts", "public", "public_weight"))
        spec.check_delta()
        longest = check_shape(spec.schema)
        most = MOST_RELEASE_BYTES // (longest * _BYTES_A_PIECE + _BYTES_A_LINE)
        texts = reader.whole("texts", min(DEFAULT_TEXTS, most), 1, most)
        public_weight = reader.number("public_weight", 0.0, 0.0, 1.0)
        named = spec.parameters.get("public", DEFAULT_PUBLIC_TEXTS)
        public = named if isinstance(named, str) else ""
        tokeniser = counting_tokeniser(public)
        counting = NgramPlan.of(spec.cost, spec.schema.classes.size, longest, tokeniser.size)
        return cls(
            spec,
            tokeniser,
            public_corpus(public, tokeniser),
            counting,
            texts,
            public_weight,
            counting.guarantee,
        )

    @property
    def proved(self) -> Guarantee:
        """Of all tables together: texts are made of them and of public text alone."""
        return self.guarantee

    @property
    def loss(self) -> ReleaseLoss:
        """The noise of every table."""
        return self.counting.loss

    @property
    def floats(self) -> str:
        """What floats leave open of this release, in words for the card."""
        return FLOATS

    @property
    def canary(self) -> TableCanary:
        """A document that moves every table as far as any can."""
        return counting_canary(self.counting)

    def release(
        self,
        records: TextRecords,
        source: Source,
        residuals: ResidualObserver | None = None,
        run: ReleaseRun = NO_RUN,
    ) -> bytes:
        """Return the file that is published; each call is a release of its own."""
        self.spec.check_records(records)
        documents = read_documents(records, self.tokeniser)
        return self.file_of(self.written(documents, source, residuals))

    def written(
        self, documents: Documents, source: Source, residuals: ResidualObserver | None = None
    ) -> Documents:
        """Return what is published as pieces; each call is a release of its own."""
        tables = release_ngrams(
            documents, self.counting, self.public, source.child("counts"), residuals
        )
        return self.written_from(tables, source.child("texts"))

    def written_from(self, tables: ReleasedTables, source: Source) -> Documents:
        """Write from noisy tables alone: the same tables and draws give the same texts.

        Args:
            tables: As they were released.
            source: Of the draws of the writer.
        """
        counts = read_ngrams(self.counting, self.public, tables)
        writer = NgramWriter(
            fit_pairs(counts, self.tokeniser.continuations),
            self.counting.bin_width,
            self.counting.longest,
            self.public,
            self.public_weight,
        )
        return writer.write(self.texts, source)

    def file_of(self, written: Documents) -> bytes:
        """Return the file of some written texts."""
        texts = self.tokeniser.written(written.pieces, written.offsets)
        return PseudoTexts(self.spec.schema, texts, written.labels).written()

    def describe(self, content: bytes) -> dict[str, Any]:  # Any: JSON
        """Return what a card says beside the guarantee: from the plan and the file alone."""
        schema = self.spec.schema
        column, longest = text_column(schema)
        found = PseudoTexts.read(content, schema)
        documents = read_documents(found.records(), self.tokeniser)
        runs = verbatim_runs(documents, self.public.documents, reach=_VERBATIM)
        return {
            "format": "jsonl",
            "record": schema.record,
            "label": schema.label,
            "column": column,
            "text_count": found.count,
            "longest": longest,
            "tokeniser_sha256": self.tokeniser.sha256,
            "made_by": "chains of pieces fitted to noisy counts",
            "tables": self.counting.as_json(),
            "public_texts": {
                "name": self.public.name,
                "sha256": self.public.sha256,
                "weight": self.public_weight,
                f"share_of_texts_with_{_VERBATIM}_pieces_of_it_in_a_row": round(
                    runs.share(_VERBATIM), 4
                ),
            },
        }
