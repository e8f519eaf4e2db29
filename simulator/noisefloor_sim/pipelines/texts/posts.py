"""Who writes which texts when: several of a user, some kept back, some planted for attacks.

A post with a rare word has a word that nobody else uses; it is posted with probability one half.
A secret is one of many phrases of frequent words in no order, each as likely. Both are posts like
others on their way, and only scoring reads which they are.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from noisefloor.errors import BadTable
from noisefloor.publication.text import (
    Documents,
    TextTokeniser,
    cut_to_bytes,
    read_documents,
)
from noisefloor.randomness import SeededSource
from noisefloor.tables import TextRecords, TextSchema, check_texts, load_texts
from noisefloor_sim.pipelines.texts import made_up_posts
from noisefloor_sim.pipelines.texts.block import TextsBlock, block_of
from noisefloor_sim.scenario import Scenario
from noisefloor_sim.world import cohort_sizes

Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]

SECRET_WORDS = 6
"""Words of a secret."""

_SECRET_VOCABULARY = 100
"""Frequent words that secrets are made of, fewer where texts have fewer."""

_SHORTEST_WORD = 4


@dataclass(frozen=True, slots=True, eq=False)
class RareWords:
    """Posts of which each has a word that no other text has.

    Attributes:
        rows: The posts.
        pieces: The word of each, as a piece.
        is_posted: Whether it is posted, drawn for each.
    """

    rows: Numbers
    pieces: Numbers
    is_posted: Flags


@dataclass(frozen=True, slots=True, eq=False)
class Secrets:
    """Posts of a secret each.

    Attributes:
        rows: The posts.
        phrases: Pieces of what each could be: [secrets, candidates, words].
        drawn: Which one it is.
    """

    rows: Numbers
    phrases: Numbers
    drawn: Numbers

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.rows)

    def candidates(self) -> Documents:
        """Return all phrases as texts, the candidates of one secret after those of another."""
        flat = self.phrases.reshape(-1, SECRET_WORDS)
        offsets = np.arange(len(flat) + 1, dtype=np.int64) * SECRET_WORDS
        labels = np.zeros(len(flat), dtype=np.int64)
        return Documents(flat.reshape(-1).astype(np.int32), offsets, labels)


@dataclass(frozen=True, slots=True, eq=False)
class UserPosts:
    """All texts of the users of one world, in the order of their users.

    Attributes:
        records: The texts.
        users: Whose each is.
        days: When each is written.
        is_test: Which are never posted: they are for evaluation.
        rare: Posts with a rare word.
        secrets: Posts of a secret.
        tokeniser: Cuts them.
        cut: How many were longer than a post may be.
        styles: Of the users, where posts are made up.
    """

    records: TextRecords
    users: Numbers
    days: Numbers
    is_test: Flags
    rare: RareWords
    secrets: Secrets
    tokeniser: TextTokeniser
    cut: int
    styles: made_up_posts.Styles | None

    @classmethod
    def of(cls, scenario: Scenario, tokeniser: TextTokeniser) -> "UserPosts":
        """Load or draw what a scenario names; a data set that was not fetched is an error."""
        block, source = block_of(scenario), SeededSource(scenario.seed, "pipeline", "texts")
        users = _writers(scenario, block, source)
        styles = None
        if block.is_made_up:
            count = scenario.population.users
            styles = made_up_posts.Styles.of(count, block.style, source.child("styles"))
            texts, labels = styles.write(users, source.child("posts"))
            schema = made_up_posts.schema_of(block.pieces)
        else:
            schema, texts, labels = _assigned(block, len(users), source)
        is_test = _kept_back(users, block.test_share, scenario.population.users, source)
        draws = source.child("days").generator()
        days = draws.integers(0, block.post_over_days, len(users))
        posted = np.flatnonzero(~is_test)
        needed = block.rare_words + block.secrets
        if needed * 2 > len(posted):
            rule = f"Expected at least {2 * needed} posts for rare words and secrets, found "
            raise BadTable(block.source, f"{rule}{len(posted)}.")
        planted = posted[source.child("planted").generator().permutation(len(posted))[:needed]]
        rare, secrets, texts = _planted(block, texts, planted, tokeniser, source)
        short = cut_to_bytes(texts, block.text_bytes)
        cut = sum(one != other for one, other in zip(short, texts, strict=True))
        (name,) = schema.texts
        checked = check_texts(short, block.source, name)
        records = TextRecords(schema, {name: checked}, labels.astype(np.int64))
        return cls(records, users, days, is_test, rare, secrets, tokeniser, cut, styles)

    @property
    def count(self) -> int:
        """How many texts there are."""
        return self.records.count

    @property
    def expected(self) -> int:
        """How many are to be posted: a public figure, since these draws are left out of it."""
        return int(np.count_nonzero(~self.is_test))

    @property
    def is_written(self) -> Flags:
        """Which are posted if their users are ever in contact."""
        written = ~self.is_test
        written[self.rare.rows[~self.rare.is_posted]] = False
        return written

    @property
    def ordinary(self) -> Flags:
        """Which posts have nothing planted in them."""
        found = ~self.is_test
        found[self.rare.rows] = False
        found[self.secrets.rows] = False
        return found

    def documents(self, rows: Flags | Numbers | slice) -> Documents:
        """Return some texts as pieces."""
        return read_documents(self.records[rows], self.tokeniser)


def _writers(scenario: Scenario, block: TextsBlock, source: SeededSource) -> Numbers:
    """Draw how many texts each user has, cohort by cohort, and return the user of each text."""
    people = scenario.population
    counts = [
        source.child("counts", number).generator().integers(1, block.posts + 1, people.cohort)
        for number in range(len(cohort_sizes(people.users, people.cohort)))
    ]
    return np.repeat(np.arange(people.users), np.concatenate(counts)[: people.users])


def _kept_back(users: Numbers, share: float, count: int, source: SeededSource) -> Flags:
    """Return the texts of users who never post: the same share of users, whatever is drawn."""
    kept = min(max(1, round(count * share)), count - 1)
    chosen = np.zeros(count, dtype=np.bool_)
    chosen[source.child("split").generator().permutation(count)[:kept]] = True
    return chosen[users]


def _assigned(
    block: TextsBlock, count: int, source: SeededSource
) -> tuple[TextSchema, list[str], Numbers]:
    """Give each text of a user a row of a data set; nobody shares one."""
    table = load_source(block)
    if count > table.count:
        rule = f"Expected a text for each of {count} posts, found {table.count}."
        raise BadTable(block.source, rule)
    rows = source.child("held").generator().permutation(table.count)[:count]
    (name,) = table.schema.texts
    schema = TextSchema(
        table.schema.record, {name: block.pieces}, table.schema.label, table.schema.classes
    )
    return schema, [str(one) for one in table.texts[name][rows]], table.labels[rows]


@lru_cache(maxsize=2)
def _loaded(source: str) -> TextRecords:
    return load_texts(source)


def load_source(block: TextsBlock) -> TextRecords:
    """Load the texts of a data set by its name, or of a file with its schema beside it."""
    return _loaded(block.source)


def _planted(
    block: TextsBlock,
    texts: list[str],
    rows: Numbers,
    tokeniser: TextTokeniser,
    source: SeededSource,
) -> tuple[RareWords, Secrets, list[str]]:
    """Write rare words and secrets into some posts."""
    texts, draws = list(texts), source.child("plants").generator()
    frequent, unused = _words(texts, tokeniser)
    needed = block.rare_words
    if len(unused) < needed:
        rule = f"Expected {needed} words of the vocabulary that no text has, found {len(unused)}."
        raise BadTable(block.source, rule)
    own = unused[draws.permutation(len(unused))[:needed]]
    rare = RareWords(rows[:needed], own, draws.random(needed) < 0.5)
    for row, piece in zip(rare.rows.tolist(), own.tolist(), strict=True):
        texts[row] = f"{tokeniser.words[piece]} {texts[row]}"
    shape = (block.secrets, block.candidates, SECRET_WORDS)
    phrases = frequent[draws.integers(0, len(frequent), shape)]
    drawn = draws.integers(0, block.candidates, block.secrets)
    secrets = Secrets(rows[block.rare_words :], phrases, drawn)
    for place, row in enumerate(secrets.rows.tolist()):
        texts[row] = " ".join(tokeniser.words[phrases[place, drawn[place]]])
    return rare, secrets, texts


def _words(texts: list[str], tokeniser: TextTokeniser) -> tuple[Numbers, Numbers]:
    """Return pieces that are whole words: the most frequent, and those that no text has."""
    pieces, _ = tokeniser.cut(texts, 4_096)
    seen = np.bincount(pieces, minlength=tokeniser.size)
    is_word = np.array([_is_word(str(one)) for one in tokeniser.words], dtype=np.bool_)
    if tokeniser.name == made_up_posts.NAME:
        # No names of places: a post names one at most, and secrets would name several. Regions
        # and countries are what generalised posts have.
        words = tokeniser.words.astype(str)
        is_word &= ~np.isin(words, made_up_posts.place_hierarchy().labels.astype(str))
        is_word &= (seen > 0) | np.isin(words, made_up_posts.RARE_WORDS)
    is_word[tokeniser.marks] = False
    by_count = np.argsort(-seen * is_word, kind="stable")[:_SECRET_VOCABULARY]
    return by_count[seen[by_count] * is_word[by_count] > 0], np.flatnonzero(is_word & (seen == 0))


def _is_word(word: str) -> bool:
    return len(word) >= _SHORTEST_WORD and word.isascii() and word.isalpha() and word.islower()
