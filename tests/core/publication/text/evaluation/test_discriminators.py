"""Discriminators: texts without grammar are found, texts of the same kind are not."""

from pathlib import Path

import numpy as np
import pytest

from made_up_texts import SIZE, class_texts, documents_of, shuffled
from noisefloor.errors import BadParameter
from noisefloor.publication.fine_tuning import Backbone, load_backbone, run_frozen, tokenise
from noisefloor.publication.text.evaluation import (
    Discrimination,
    discriminate_meaning,
    discriminate_pairs,
    token_table,
)
from noisefloor.randomness import SeededSource
from noisefloor.tables import Categories, TextSchema
from tiny_backbones import SPECIAL, WORDS, write_tiny_bert

N = 400


@pytest.fixture(scope="module")
def backbone(tmp_path_factory: pytest.TempPathFactory) -> Backbone:
    return load_backbone(write_tiny_bert(tmp_path_factory.mktemp("models") / "tiny"))


def strays(found: Discrimination) -> float:
    """Return how far an area of a null strays but for 1e-6 (Hoeffding 1963, two samples)."""
    return float(np.sqrt(np.log(2 / 1e-6) / (2 * found.tested)))


@pytest.mark.statistical
def test_pairs_find_texts_without_grammar_and_no_others(seed: int) -> None:
    # 200 tested of each kind: a null strays by 0.19 from a half with probability 1e-6.
    real, more = class_texts(N, seed, "real"), class_texts(N, seed, "more")
    null = discriminate_pairs(real, more, SIZE, SeededSource(seed, "null"))
    assert abs(null.auc - 0.5) < strays(null)
    assert (null.n, null.tested, len(null.scores)) == (N, N // 2, N)
    # The twin: the same pieces, shuffled. Pieces alone cannot tell them.
    found = discriminate_pairs(real, shuffled(more, seed), SIZE, SeededSource(seed, "found"))
    assert found.auc > 0.5 + strays(found)
    assert found.interval[0] < found.auc < found.interval[1]


def test_pieces_alone_are_enough_where_they_differ() -> None:
    real = documents_of([[1, 2], [2], [2, 2, 2]] * 20)
    fake = documents_of([[3], [3, 4], [4]] * 20)
    found = discriminate_pairs(real, fake, 5, SeededSource(1, "apart"))
    assert found.auc == 1.0
    assert found.interval[0] > 0.85
    assert found.as_json()["tested"] == 30


def test_as_many_texts_take_part_as_were_asked_for() -> None:
    real, fake = class_texts(100, 1, "a"), class_texts(60, 1, "b")
    assert discriminate_pairs(real, fake, SIZE, SeededSource(1, "all")).n == 60
    some = discriminate_pairs(real, fake, SIZE, SeededSource(1, "some"), most=21)
    assert (some.n, some.tested) == (21, 11)
    with pytest.raises(BadParameter, match="at least 8 of each kind"):
        discriminate_pairs(real, fake[:7], SIZE, SeededSource(1, "few"))


def test_rows_of_the_encoder_are_those_of_its_own_tokeniser(backbone: Backbone) -> None:
    schema = TextSchema("a text", {"text": 12}, "mood", Categories(("bad", "good")))
    texts = ["good film", "the plot is dull and the actor is weak", "great"]
    expected = tokenise(backbone, schema, {"text": texts})
    first = len(SPECIAL)
    rows = [[first + WORDS.index(word) for word in text.split()] for text in texts]
    tokens = token_table(documents_of([*rows, [], [7] * 50]), backbone)
    assert tokens.lengths.tolist() == [*expected.lengths, 2, backbone.positions]
    for row in range(3):
        used = expected.lengths[row]
        assert tokens.ids[row, :used].tolist() == expected.ids[row, :used].tolist()
        assert (tokens.ids[row, used:] == backbone.padding).all()
    assert tokens.ids[3, :3].tolist() == [2, 3, backbone.padding]
    assert tokens.ids[4].tolist() == [2, *[7] * (backbone.positions - 2), 3]
    states = [run_frozen(backbone, some, (2, 3)).pooled for some in (tokens[:3], expected)]
    assert np.allclose(states[0], states[1], atol=1e-5)


@pytest.mark.statistical
def test_meaning_finds_other_words_and_no_others(backbone: Backbone, seed: int) -> None:
    # 60 tested of each kind: a null strays by 0.35 from a half with probability 1e-6.
    draw = SeededSource(seed, "words").generator()
    rows = draw.integers(len(SPECIAL), len(SPECIAL) + 12, (240, 20)).tolist()
    real, more = documents_of(rows[:120]), documents_of(rows[120:])
    null = discriminate_meaning(real, more, backbone, SeededSource(seed, "null"), None, (1, 2))
    assert abs(null.auc - 0.5) < strays(null)
    other = draw.integers(len(SPECIAL) + 12, len(SPECIAL) + 24, (120, 20)).tolist()
    for is_scaled in (True, False):
        found = discriminate_meaning(
            real,
            documents_of(other),
            backbone,
            SeededSource(seed, "found", int(is_scaled)),
            None,
            (1, 2),
            is_scaled=is_scaled,
        )
        assert found.auc > 0.5 + strays(found)


def test_layers_have_to_be_there(backbone: Backbone) -> None:
    texts = documents_of([[7]] * 10)
    with pytest.raises(BadParameter, match="pooled_layers"):
        discriminate_meaning(texts, texts, backbone, SeededSource(1, "x"))


@pytest.mark.slow
def test_a_tokeniser_that_changes_pieces_is_refused(tmp_path: Path) -> None:
    from dataclasses import replace

    class Odd:
        """Marks alone."""

        def encode(self, text: str, add_special_tokens: bool) -> "Odd":
            self.ids = [9, 8] if add_special_tokens else [1]
            return self

    tiny = load_backbone(write_tiny_bert(tmp_path / "tiny"))
    with pytest.raises(BadParameter, match="leaves the pieces"):
        token_table(documents_of([[7]]), replace(tiny, tokenizer=Odd()))
