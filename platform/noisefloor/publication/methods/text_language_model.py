"""Made-up texts of a pretrained language model whose chances are shifted by noisy counts."""

from dataclasses import asdict, dataclass
from typing import Any

from noisefloor.accounting import ReleaseLoss
from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee
from noisefloor.publication.methods.canaries import TableCanary
from noisefloor.publication.methods.model_spec import ParameterReader
from noisefloor.publication.methods.text_ngrams import FLOATS, check_shape, counting_canary
from noisefloor.publication.methods.text_plan import TextPlan, TextSpec
from noisefloor.publication.noised_vectors import ResidualObserver
from noisefloor.publication.release_run import NO_RUN, ReleaseRun
from noisefloor.publication.text import (
    TEXTS_MEDIA_TYPE,
    Documents,
    PseudoTexts,
    read_documents,
    text_column,
)
from noisefloor.publication.text.language_models import (
    DEFAULT_MODEL,
    Decoding,
    LanguageModel,
    LanguageWriter,
    Steering,
    shared_language_model,
)
from noisefloor.publication.text.ngrams import NgramPlan
from noisefloor.randomness import Source
from noisefloor.tables import TextRecords

DEFAULT_TEXTS = 1_000
MOST_PIECES = 1_000_000
"""Of all texts together: a tenth of a second to half a second of a processor for 60 of them."""

MOST_PROMPT = 200
DEFAULT_STRENGTH, DEFAULT_TEMPERATURE, PLAUSIBLE = 1.0, 0.9, 0.01
"""Chosen on the tuning split of ``bench/language_texts.py``."""


_NOTE = (
    "The guarantee is about the documents that were counted. The model was trained on public "
    "texts before, with no guarantee for these: what it remembers of them may be written."
)


@dataclass(frozen=True, slots=True)
class TextLanguageModelPlan(TextPlan):
    """Texts written by a language model; the guarantee is that of the noisy counts.

    Attributes:
        spec: The request.
        model: The language model; it is public.
        decoding: The prompt, and how pieces are drawn; public.
        steering: How the counts lead it.
        counting: What is counted, with how much noise.
        texts: How many are published.
        guarantee: Of all tables together.
    """

    NAME = "text-language-model"
    HELP = f"""Made-up texts with labels, as JSON Lines, of a pretrained language model whose
chances of pieces are shifted by noisy counts of lengths and pieces: by far the most readable,
slow, and worse to train on than those of `text-ngrams`. Parameters: `language_model` (default
`{DEFAULT_MODEL}`; `own`: a directory of the publisher's); `texts`, how many (default
{DEFAULT_TEXTS:,}; at most {MOST_PIECES:,} pieces in all);
`prompt`, the prompt of the model, one line, which is public (default `Write` and what a record
is); `strength`, from 0 to 1, how far it is led towards the counts (default
{DEFAULT_STRENGTH:g}); `temperature` (default {DEFAULT_TEMPERATURE:g}). How many records there are
is counted, and need not be declared. The cost needs a delta."""
    MEDIA_TYPE = TEXTS_MEDIA_TYPE

    spec: TextSpec
    model: LanguageModel
    decoding: Decoding
    steering: Steering
    counting: NgramPlan
    texts: int
    guarantee: Guarantee

    @classmethod
    def of(cls, spec: TextSpec) -> "TextLanguageModelPlan":
        """Plan counts with the least noise that keeps to the cost; load the model."""
        known = ("language_model", "texts", "prompt", "strength", "temperature")
        reader = ParameterReader(spec.parameters, known)
        spec.check_delta()
        longest = check_shape(spec.schema)
        most = MOST_PIECES // longest
        texts = reader.whole("texts", min(DEFAULT_TEXTS, most), 1, most)
        prompt = reader.line("prompt", f"Write {spec.schema.record}."[:MOST_PROMPT], MOST_PROMPT)
        strength = reader.number("strength", DEFAULT_STRENGTH, 0.0, 1.0)
        temperature = reader.number("temperature", DEFAULT_TEMPERATURE, 0.1, 2.0)
        name = spec.parameters.get("language_model", DEFAULT_MODEL)
        model = shared_language_model(name if isinstance(name, str) else "")
        room = model.positions - len(model.prompt_pieces(prompt))
        if longest > room:
            raise BadParameter(
                "text", longest, f"at most {room} pieces, with this model and prompt"
            )
        size = model.tokeniser.size
        counting = NgramPlan.of(
            spec.cost, spec.schema.classes.size, longest, size, has_pairs=False
        )
        return cls(
            spec,
            model,
            Decoding(prompt, temperature, PLAUSIBLE),
            Steering(strength),
            counting,
            texts,
            counting.guarantee,
        )

    @property
    def proved(self) -> Guarantee:
        """Of both tables together: texts are made of them and of a public model alone."""
        return self.guarantee

    @property
    def loss(self) -> ReleaseLoss:
        """The noise of both tables."""
        return self.counting.loss

    @property
    def floats(self) -> str:
        """What floats leave open of this release, in words for the card."""
        return FLOATS

    @property
    def canary(self) -> TableCanary:
        """A document that moves both tables as far as any can."""
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
        tokeniser = self.model.tokeniser
        written = self.written(read_documents(records, tokeniser), source, residuals)
        texts = tokeniser.written(written.pieces, written.offsets)
        return PseudoTexts(self.spec.schema, texts, written.labels).written()

    def written(
        self, documents: Documents, source: Source, residuals: ResidualObserver | None = None
    ) -> Documents:
        """Return what is published as pieces; each call is a release of its own."""
        writer = LanguageWriter(self.model, self.decoding, self.steering)
        return writer.write(documents, self.counting, self.texts, source, residuals)

    def describe(self, content: bytes) -> dict[str, Any]:  # Any: JSON
        """Return what a card says beside the guarantee: from the plan and the file alone."""
        schema = self.spec.schema
        column, longest = text_column(schema)
        return {
            "format": "jsonl",
            "record": schema.record,
            "label": schema.label,
            "column": column,
            "text_count": PseudoTexts.read(content, schema).count,
            "longest": longest,
            "tokeniser_sha256": self.model.tokeniser.sha256,
            "made_by": "a pretrained language model, its chances shifted by noisy counts",
            "tables": self.counting.as_json(),
            "language_model": {
                "name": self.model.name,
                "weights_sha256": self.model.weights_sha256,
                "precision": self.model.precision,
                **asdict(self.decoding),
                "strength": self.steering.strength,
                "largest_shift": self.steering.most,
                "rounds": self.steering.rounds,
                "note": _NOTE,
            },
        }
