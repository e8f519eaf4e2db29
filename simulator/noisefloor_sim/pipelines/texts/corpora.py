"""Published corpora as an analyst reads them, and the posts that only scoring sets beside them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from noisefloor.publication.methods import TextNgramsPlan
from noisefloor.publication.text import Documents, PseudoTexts, read_documents
from noisefloor_sim.pipelines.releases import Release
from noisefloor_sim.pipelines.texts.posts import UserPosts

Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class PublishedCorpora:
    """What was published, release by release.

    Attributes:
        releases: As they were made.
        published: The texts of each, read from its file as anybody would.
        posts: Of all users, for scoring.
    """

    releases: Sequence[Release[TextNgramsPlan]]
    published: Sequence[Documents]
    posts: UserPosts

    @classmethod
    def of(
        cls, releases: Sequence[Release[TextNgramsPlan]], posts: UserPosts
    ) -> "PublishedCorpora":
        """Read the files of some releases."""
        schema = posts.records.schema
        read = [PseudoTexts.read(one.content, schema).records() for one in releases]
        return cls(releases, [read_documents(one, posts.tokeniser) for one in read], posts)

    @property
    def last(self) -> Documents:
        """The texts of the last release."""
        return self.published[-1]

    @property
    def plan(self) -> TextNgramsPlan:
        """That the last release was made by."""
        return self.releases[-1].plan

    @property
    def public(self) -> Documents:
        """The public texts of the publisher, which everybody has."""
        return self.plan.public.documents

    @property
    def size(self) -> int:
        """Of the vocabulary."""
        return self.posts.tokeniser.size

    @cached_property
    def everything(self) -> Documents:
        """All texts of all users as pieces, for scoring."""
        return self.posts.documents(slice(None))

    @cached_property
    def held_out(self) -> Documents:
        """Texts that were never posted."""
        return self.everything[self.posts.is_test]

    def collected(self, place: int = -1) -> Documents:
        """Return what a release was made from."""
        return self.everything[self.releases[place].owners]
