"""Who wrote it: corpora of one author's posts among other people's, published and linked by style.

Each game draws an author among known candidates. All posts of the author, as many as a device
lets through, are published together with those of other people, and the analyst, who has other
posts of every candidate, names the author.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.adversary import text as adversary
from noisefloor.adversary.audit import AttackOutcome
from noisefloor.privacy import Guarantee
from noisefloor.publication.methods import TextNgramsPlan
from noisefloor.publication.text import Documents, TextTokeniser
from noisefloor.randomness import SeededSource
from noisefloor_sim.pipelines.texts.block import TextsBlock
from noisefloor_sim.pipelines.texts.made_up_posts import Styles

KNOWN = 60
"""Posts of each candidate that the analyst has."""

OTHERS = 40
"""Posts of other people in each corpus."""

_BACKGROUND = 4
"""Corpora of other people alone, from which the analyst estimates what is usual."""

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class AuthorGames:
    """Games about the author of a corpus.

    Attributes:
        block: The settings.
        plan: Of a release of as many posts as a corpus has.
        tokeniser: Cuts posts.
        source: Of all draws.
    """

    block: TextsBlock
    plan: TextNgramsPlan
    tokeniser: TextTokeniser
    source: SeededSource

    def play(self, guarantee: Guarantee) -> AttackOutcome:
        """Publish the corpora, and link them.

        Args:
            guarantee: For one text, by which the bound is stated.
        """
        block, people = self.block, self.source.child("people")
        styles = Styles.of(block.authors + OTHERS, block.style, people)
        candidates = np.arange(block.authors)
        known = self._posts(styles, np.repeat(candidates, KNOWN), "known")
        linked = adversary.train_stylometry(known, block.authors, self.tokeniser.size)
        draws = self.source.child("truth").generator()
        truth = draws.integers(0, block.authors, block.author_games)
        corpora = [
            self._published(styles, np.repeat([author], block.posts), number)
            for number, author in enumerate(truth.tolist())
        ]
        nobody = np.empty(0, dtype=np.int64)
        usual = [
            self._published(styles, nobody, block.author_games + number)
            for number in range(_BACKGROUND)
        ]
        return adversary.link_authors(
            linked,
            _joined(corpora),
            truth,
            guarantee,
            pseudonyms=np.repeat(np.arange(len(corpora)), [one.count for one in corpora]),
            texts=block.posts,
            background=_joined(usual),
        )

    def _posts(self, styles: Styles, authors: Numbers, *name: str | int) -> Documents:
        """Return a post of each author as pieces; labels are the authors."""
        texts, _ = styles.write(authors, self.source.child("posts", *name))
        pieces, offsets = self.tokeniser.cut(texts, self.block.pieces)
        return Documents(pieces, offsets, authors.astype(np.int64))

    def _published(self, styles: Styles, own: Numbers, number: int) -> Documents:
        """Publish posts of an author among those of others."""
        others = self.block.authors + np.arange(OTHERS)
        authors = np.concatenate([own, others])
        texts, moods = styles.write(authors, self.source.child("corpus", number))
        pieces, offsets = self.tokeniser.cut(texts, self.block.pieces)
        release = self.source.child("release", number)
        return self.plan.written(Documents(pieces, offsets, moods), release)


def _joined(parts: list[Documents]) -> Documents:
    """Return several corpora as one."""
    lengths = np.concatenate([one.lengths for one in parts])
    return Documents(
        np.concatenate([one.pieces for one in parts]),
        np.append(0, np.cumsum(lengths)),
        np.concatenate([one.labels for one in parts]),
    )
