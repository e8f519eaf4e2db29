"""Published texts in the world: what was posted, collected and published, and what attacks say."""

from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from noisefloor.adversary.text import authorship_bound
from noisefloor.errors import BadParameter, BadScenario, BadTable
from noisefloor.privacy import Neighbours
from noisefloor.publication.text import Documents, PseudoTexts
from noisefloor_sim.pipelines.texts import made_up_posts
from noisefloor_sim.pipelines.texts.block import block_of
from noisefloor_sim.pipelines.texts.posts import UserPosts
from noisefloor_sim.pipelines.texts.printed_plan import generalised, place_pieces
from noisefloor_sim.pipelines.texts.text_attacks import mean_interval
from noisefloor_sim.pipelines.texts.text_terms import used_texts
from simulated_worlds import simulated
from text_worlds import run_texts, texts_world

GUESSED: dict[str, Any] = {
    "attacks": ["texts.lengths", "texts.rare-word", "texts.k-boundary", "texts.exposure"]
}
TWO_WEEKS = {"release_every_days": 7, "post_over_days": 14}


def test_texts_are_published_proved_and_as_many_as_were_asked_for() -> None:
    seen = run_texts()
    (release,) = seen.pipeline.holder.releases
    published = PseudoTexts.read(release.content, seen.pipeline.posts.records.schema)
    assert published.count == 300
    assert release.card["method"] == "text-ngrams"
    assert {named.claim.verdict for named in seen.found.claims} == {"holds"}
    assert seen.value("utility.published.naive_bayes") > seen.value("utility.majority")


def test_counts_carry_the_declared_noise_and_a_quarter_less_would_be_found() -> None:
    """False alarm 1e-9."""
    (evidence,) = run_texts().found.flows
    assert (evidence.misfit, evidence.faults, evidence.verdict) == ("", (), "consistent")


def test_what_is_published_was_collected_over_the_bus() -> None:
    seen = run_texts(TWO_WEEKS, days=14)
    pipeline = seen.pipeline
    weeks = [one.owners for one in pipeline.holder.releases]
    assert len(weeks) == seen.value("releases.made") == 2
    assert (weeks[0] <= weeks[1]).all()
    assert weeks[0].sum() < weeks[1].sum()
    assert not (weeks[1] & pipeline.posts.is_test).any()
    assert pipeline.collected.records is not None
    assert pipeline.collected.records.count == weeks[1].sum() == seen.value("data.posts")
    (posted,) = (one for one in seen.outcome.flows if one.flow == "posted text")
    assert (posted.misfit, posted.faults) == ("", ())
    assert posted.rows == seen.value("data.collected")


def test_a_row_that_is_no_post_or_a_second_one_is_a_fault() -> None:
    collected = copy(run_texts().pipeline.collected)
    assert collected.faults() == ()
    collected.has = collected.has & (np.cumsum(collected.has) > 2)
    (fault,) = collected.faults()
    assert fault.startswith("2 rows were collected that are no post")


def test_posts_are_dropped_where_they_were_collected_once_they_are_taken() -> None:
    seen = run_texts(TWO_WEEKS, days=14)
    servers, kind = seen.engine.hosted.servers, seen.pipeline.kind.name
    for day in range(14):
        with pytest.raises(BadParameter, match="it was retired"):
            servers.aggregator.release_rows(kind, day)


def test_a_release_waits_for_what_is_on_its_way() -> None:
    late: dict[str, Any] = {"network": {"latency": {"median_s": 7200.0}, "loss": 0.1}}
    seen = run_texts({"release_every_days": 1}, **late)
    assert seen.value("data.collected") > 0.95 * seen.value("data.posts")


def test_cohorts_may_wake_in_any_order() -> None:
    scenario = texts_world()
    _, engine, one = simulated(scenario, [1, 0])
    assert one.findings["texts"] == run_texts().found
    assert len(engine.order) == 2


def test_a_post_that_was_drawn_out_is_not_sent_and_nobody_posts_more_than_the_cap() -> None:
    seen = run_texts({"posts": 3})
    pipeline = seen.pipeline
    rare = pipeline.posts.rare
    absent = rare.rows[~rare.is_posted]
    assert len(absent) > 0
    assert not pipeline.collected.has[absent].any()
    assert pipeline.collected.has[rare.rows[rare.is_posted]].mean() > 0.5
    assert seen.value("data.most_posts") <= 3
    words = pipeline.posts.documents(slice(None))
    counts = np.bincount(words.pieces, minlength=pipeline.posts.tokeniser.size)
    assert (counts[rare.pieces] == 1).all(), "nobody else has the word"


def test_an_author_has_the_guarantee_of_all_texts_and_it_is_another_relation() -> None:
    seen = run_texts({"posts": 3, "epsilon": 0.5})
    text, author = seen.claim("release"), seen.claim("author")
    assert author.proved.neighbours is Neighbours.USER is not text.proved.neighbours
    assert author.proved.epsilon == pytest.approx(6 * text.proved.epsilon)
    assert author.proved.delta > 6 * text.proved.delta


def test_as_printed_nothing_is_proved_and_each_part_says_why() -> None:
    seen = run_texts(variant="paper", **GUESSED)
    assert seen.claim("release").verdict == "overclaimed"
    reasons = set()
    for part in ("generalisation", "vocabulary", "seeds", "copied_lengths"):
        claim = seen.claim(part)
        assert not claim.proved.is_finite
        assert (claim.claimed.epsilon, claim.verdict) == (2.0, "overclaimed")
        assert claim.proved.reason in seen.claim("release").proved.reason
        reasons.add(claim.proved.reason)
    assert len(reasons) == 4
    counts = seen.claim("counts")
    rewritten = 1 + 2 * 4 * 3  # k = 5 on a ladder of cities, regions and countries
    assert not counts.proved.is_finite, "of a group that large, delta is 1"
    assert f"up to {rewritten} steps" in counts.proved.reason
    assert seen.value("spent.debited") == 2.0, "the ledger debits what is claimed"
    assert seen.found.flows[0].verdict == "consistent", "its counts have the noise declared"


def test_as_printed_lengths_and_places_are_read_off_and_corrected_they_are_not() -> None:
    paper, corrected = (run_texts(variant=one, **GUESSED) for one in ("paper", "corrected"))
    assert paper.value("attack.length.success") == 1.0
    assert corrected.metric("attack.length.success").low < 0.6
    # Made-up posts have a few lengths; guesses about one are one game.
    assert corrected.metric("attack.length.success").n < 20
    assert paper.value("attack.boundary.success") == 1.0
    assert paper.claim("generalisation").audited is not None
    assert paper.value("attack.boundary.audited") > 2.0
    assert not corrected.has("attack.boundary.success")
    low, high = (getattr(paper.metric("attack.seed.success"), end) for end in ("low", "high"))
    assert low <= paper.value("attack.seed.closed_form") <= high


def test_a_word_of_one_post_is_found_in_very_many_printed_texts_and_others_never_are() -> None:
    """Each word is missed with a probability below 1e-3; 15 words or so."""
    settings = {"searched": 30_000}
    paper = run_texts(settings, variant="paper", attacks=["texts.rare-word"])
    assert paper.value("attack.search.texts") >= 30_000
    assert paper.value("attack.search.closed_form") > 0.999
    assert paper.value("attack.search.success") == 1.0
    assert paper.value("attack.search.prior") == 0.0
    corrected = run_texts(settings, attacks=["texts.rare-word"])
    by_chance = corrected.value("attack.search.prior")
    low, high = (getattr(corrected.metric("attack.search.success"), it) for it in ("low", "high"))
    assert low <= by_chance + 0.3
    assert high >= by_chance - 0.3
    assert corrected.value("attack.search.bound") < 1.0


def test_bounds_are_shown_where_something_is_proved() -> None:
    paper, corrected = (run_texts(variant=one, **GUESSED) for one in ("paper", "corrected"))
    for game in ("length", "exposure", "seed"):
        assert corrected.has(f"attack.{game}.bound")
        assert not paper.has(f"attack.{game}.bound")
        assert paper.has(f"attack.{game}.claimed_bound")


def test_targets_of_one_length_are_one_game() -> None:
    """All posts equally long: one release has one count, and an interval of it says nothing."""
    assert mean_interval(0.8, np.array([1.0])) == (0.0, 1.0)
    low, high = mean_interval(0.5, np.full(400, 1 / 400))
    assert (low, high) == pytest.approx((0.5 - 0.0679, 0.5 + 0.0679), abs=1e-4)
    unequal = mean_interval(0.5, np.array([0.5, *[0.5 / 399] * 399]))
    assert unequal[0] < low


def test_the_claimed_bound_of_authors_follows_what_is_claimed() -> None:
    """Not what is proved, which may be less."""
    settings = {"posts": 1, "author_games": 8, "epsilon": 0.5}
    seen = run_texts(settings, attacks=["texts.author"])
    claim = seen.claim("release")
    authors = block_of(texts_world(settings)).authors
    for name, guarantee in (("claimed_bound", claim.claimed), ("bound", claim.proved)):
        expected = authorship_bound(guarantee, authors, 1)
        assert seen.value(f"attack.author.{name}") == pytest.approx(expected, abs=1e-15)
    assert claim.proved.epsilon < claim.claimed.epsilon


def test_texts_with_next_to_no_noise_give_authors_away() -> None:
    """Of 16 games among 8 candidates; by guessing 9 are right with a probability of 1e-4."""
    settings = {"posts": 20, "style": 0.6, "author_games": 16, "epsilon": 0.5}
    crowd: dict[str, Any] = {
        "population": {"users": 120, "cohort": 256},
        "attacks": ["texts.author"],
    }
    seen = run_texts(settings, **crowd)
    bare = seen.metric("attack.author_bare.success")
    assert bare.value > 0.5
    assert seen.value("attack.author.success") < bare.value
    assert seen.value("attack.author.bound") == 1.0, "group privacy excludes nothing"


def test_places_climb_until_k_posts_share_them() -> None:
    with used_texts(block_of(texts_world())) as tokeniser:
        posts = ["a film in qbaba", "a film in qbaba", "the song in qbabe", "a film today"]
        pieces, offsets = tokeniser.cut(posts, 60)
        documents = Documents(pieces, offsets, np.zeros(len(posts), dtype=np.int64))
        two, one = (generalised(documents, tokeniser, k) for k in (2, 1))
        two_texts, one_texts = (tokeniser.written(it.pieces, it.offsets) for it in (two, one))
        assert len(set(place_pieces(tokeniser).tolist())) == 58
    assert one_texts == posts
    assert two_texts[:2] == posts[:2]
    assert two_texts[2] == "the song in *", "its region and its country are named by no other post"


def test_the_made_up_vocabulary_has_every_word_once() -> None:
    words = made_up_posts.VOCABULARY
    assert len(set(words)) == len(words)
    assert not set(made_up_posts.RARE_WORDS) & set(made_up_posts.WORDS)


def test_a_refused_release_publishes_nothing() -> None:
    seen = run_texts({**TWO_WEEKS, "epsilon": 2.0, "budget": 2.1, "budget_delta": 2e-5}, days=14)
    assert (seen.value("releases.made"), seen.value("releases.refused")) == (1, 1)
    assert seen.value("spent.claimed") <= 2.1


REFUSED: dict[str, dict[str, Any]] = {
    "public": {"public": "imdb"},
    "public ": {"public": "imdb", "source": "imdb"},
    "source": {"source": "reviews.txt", "public": "imdb"},
    "posts": {"posts": 0},
    "text_bytes": {"text_bytes": 8},
}


@pytest.mark.parametrize("key", REFUSED)
def test_settings_that_do_not_go_together_name_their_key(key: str) -> None:
    with pytest.raises(BadScenario) as refused:
        texts_world(REFUSED[key])
    assert f"pipelines.texts.{key.strip()}" in str(refused.value)


def test_too_few_posts_for_what_is_planted_are_refused() -> None:
    scenario = texts_world({"rare_words": 200})
    with used_texts(block_of(scenario)) as tokeniser, pytest.raises(BadTable):
        UserPosts.of(scenario, tokeniser)


def test_own_files_with_too_few_texts_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "remarks.tsv"
    rows = [f"a good film {number}\tgood\na bad film {number}\tbad" for number in range(60)]
    path.write_text("\n".join(["text\tmood", *rows, ""]), encoding="utf-8")
    schema = "record: one remark\ncolumns:\n  text: {text: 8}\n  mood: {categories: [bad, good]}\n"
    (tmp_path / "remarks.schema.yaml").write_text(f"{schema}label: mood\n", encoding="utf-8")
    scenario = texts_world({"source": str(path), "public": "rotten-tomatoes"})
    scenario.pipelines["texts"].open_files()
    with (
        used_texts(block_of(texts_world())) as tokeniser,
        pytest.raises(BadTable, match="300 posts, found 120"),
    ):
        UserPosts.of(scenario, tokeniser)
