"""The paper's pipeline in the parts that it calls private and that are not, and what they prove.

Places climb to k-anonymity, the vocabulary is that of the posts, and every published text has the
length of a post and a first piece that is drawn from posts. In place of the paper's
encoder-decoder a chain of noisy pairs continues the first piece, at the epsilon that is claimed:
it is private on the texts that it gets, as the paper's generator is, and can be run in a world.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import ReleaseLoss, group
from noisefloor.privacy import Claim, Guarantee
from noisefloor.publication import ResidualObserver
from noisefloor.publication.methods import TextNgramsPlan, TextSpec
from noisefloor.publication.text import Documents, TextTokeniser
from noisefloor.publication.text.generalisation import climb_to_k, group_size
from noisefloor.publication.text.generators import Prompts, copied_prompts
from noisefloor.publication.text.ngrams import (
    ChainSampler,
    PairModel,
    count_ngrams,
    fit_pairs,
)
from noisefloor.randomness import Source
from noisefloor_sim.pipelines.texts import made_up_posts

GENERALISATION, VOCABULARY = "generalisation", "vocabulary"
SEEDS, COPIED_LENGTHS, COUNTS = "seeds", "copied_lengths", "counts"

REASONS = {
    GENERALISATION: "whether a place is kept depends on who else names it",
    VOCABULARY: "a word is in the vocabulary exactly if a post has it",
    SEEDS: "a word of one post comes up as a first word, and never does without that post",
    COPIED_LENGTHS: "every post's length is that of a published text",
}
"""Why nothing is proved of a part."""

_PLACES = 1
"""Places that a made-up post names at most; others of a post are suppressed before the climb."""


@dataclass(frozen=True, slots=True)
class PrintedTextsPlan(TextNgramsPlan):
    """The paper's pipeline; nothing is proved of the whole.

    Attributes:
        k: Posts that share a place at least, or it is generalised.
        repeats: Texts for each post; the paper has one.
    """

    NAME = "printed-texts"
    HELP = "The paper's pipeline, as an experiment: nothing is proved of it. Parameter: `k`."

    k: int = 5
    repeats: int = 1

    @classmethod
    def of(cls, spec: TextSpec) -> "PrintedTextsPlan":
        """Plan the noise of the chain; a post is looked at by everything else."""
        rest = dict(spec.parameters)
        k = rest.pop("k", cls.k)
        made = TextNgramsPlan.of(TextSpec(spec.schema, spec.cost, spec.size, rest))
        return cls(
            spec,
            made.tokeniser,
            made.public,
            made.counting,
            made.texts,
            made.public_weight,
            made.guarantee,
            int(k),
        )

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of which nothing is proved; only made-up posts have places that are known."""
        is_made_up = self.tokeniser.name == made_up_posts.NAME
        return tuple(name for name in REASONS if is_made_up or name != GENERALISATION)

    @property
    def proved(self) -> Guarantee:
        """Nothing: each of the parts would be enough."""
        cost = self.spec.cost
        why = "; ".join(REASONS[name] for name in self.parts)
        return Guarantee.none(why, cost.neighbours, cost.model)

    @property
    def loss(self) -> ReleaseLoss:
        """That of what is claimed, which is what is debited."""
        return ReleaseLoss.of(self.spec.cost)

    @property
    def part_claims(self) -> dict[str, Claim]:
        """What is claimed and proved of each part."""
        cost = self.spec.cost
        claims = {
            name: Claim(cost, Guarantee.none(REASONS[name], cost.neighbours, cost.model))
            for name in self.parts
        }
        return {**claims, COUNTS: Claim(cost, self._after_climb())}

    def _after_climb(self) -> Guarantee:
        """Return what the noisy counts prove: of a text, and of all that its place rewrites."""
        if GENERALISATION not in self.parts:
            return self.guarantee
        levels = made_up_posts.place_hierarchy().height - 1
        cost, steps = self.spec.cost, group_size(_PLACES, self.k, levels)
        left = group(self.guarantee, steps, cost.neighbours)
        if left.delta < 1:
            return left
        reason = f"Removing a post takes up to {steps} steps: what is left of delta is 1"
        return Guarantee.none(reason, cost.neighbours, cost.model)

    def written(
        self, documents: Documents, source: Source, residuals: ResidualObserver | None = None
    ) -> Documents:
        """Return what is published as pieces; it is no release that anything is proved of."""
        posts = generalised(documents, self.tokeniser, self.k)
        counts = count_ngrams(posts, self.counting, self.public, source.child("counts"), residuals)
        model = fit_pairs(counts, self.tokeniser.continuations)
        is_known = np.bincount(posts.pieces, minlength=self.tokeniser.size) > 0
        drawn = [copied_prompts(posts, source.child("prompts", at)) for at in range(self.repeats)]
        prompts = Prompts(*(np.concatenate(part) for part in zip(*drawn, strict=True)))
        return continued(model, is_known, prompts, source.child("texts"))

    def describe(self, content: bytes) -> dict[str, Any]:  # Any: JSON
        """Return what a card says beside the guarantee: from the plan and the file alone."""
        # Named: a frozen class with slots is made anew, and a bare super() means the old one.
        said = TextNgramsPlan.describe(self, content)
        return {
            **said,
            "made_by": "posts' own first pieces, lengths and vocabulary; chains of noisy pairs",
            "without_guarantee": {name: REASONS[name] for name in self.parts},
        }


def continued(
    model: PairModel, is_known: NDArray[np.bool_], prompts: Prompts, source: Source
) -> Documents:
    """Return a text for each prompt, continued by the chain of its label.

    Args:
        model: The chains.
        is_known: Which pieces the vocabulary has; no others follow.
        prompts: Labels, first pieces and lengths.
        source: Draws.
    """
    longest = int(prompts.lengths.max(initial=1))
    table = np.empty((len(prompts.seeds), longest), dtype=np.int32)
    table[:, 0] = prompts.seeds
    for label in range(len(model.chains)):
        rows = np.flatnonzero(prompts.labels == label)
        chain, stream = ChainSampler.of(model, label, is_known), source.child("pieces", label)
        for place in range(1, longest):
            last = table[rows, place - 1].astype(np.int64)
            table[rows, place] = chain.draw(last, stream.child(place))
    is_in = np.arange(longest) < prompts.lengths[:, None]
    return Documents(table[is_in], np.append(0, np.cumsum(prompts.lengths)), prompts.labels)


def generalised(documents: Documents, tokeniser: TextTokeniser, k: int) -> Documents:
    """Return documents whose places climbed until k documents share each; of made-up ones.

    Of a document one place is counted, the first: what others a document can rewrite is bounded
    by how many it names. Made-up posts name no more; any other place is suppressed.

    Args:
        documents: Posts as pieces.
        tokeniser: That cut them; of any but made-up posts no place is known.
        k: Of the climb.
    """
    if tokeniser.name != made_up_posts.NAME:
        return documents
    hierarchy = made_up_posts.place_hierarchy()
    node_of = np.full(tokeniser.size, -1, dtype=np.int64)
    node_of[place_pieces(tokeniser)] = np.arange(hierarchy.size)
    nodes = node_of[documents.pieces]
    mentions = np.flatnonzero(nodes >= 0)
    owners = documents.owners[mentions]
    is_counted = np.arange(len(mentions)) - np.searchsorted(owners, owners) < _PLACES
    climbed = np.zeros_like(mentions)  # the root
    first = mentions[is_counted]
    climbed[is_counted] = climb_to_k(hierarchy, nodes[first], owners[is_counted], k)
    pieces = documents.pieces.copy()
    pieces[mentions] = place_pieces(tokeniser)[climbed]
    return Documents(pieces, documents.offsets.copy(), documents.labels.copy())


def place_pieces(tokeniser: TextTokeniser) -> NDArray[np.int32]:
    """Return the piece of each node of the made-up places."""
    places = {str(word): at for at, word in enumerate(tokeniser.words)}
    labels = made_up_posts.place_hierarchy().labels
    return np.array([places[str(one)] for one in labels], dtype=np.int32)
