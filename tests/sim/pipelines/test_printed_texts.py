"""The paper's pipeline of texts in its parts, and what is declared of the noise of both."""

from collections.abc import Iterator

import numpy as np
import pytest

from noisefloor.publication import NoisedVector
from noisefloor.publication.methods import Parameter, TextNgramsPlan, TextSpec
from noisefloor.publication.text import Documents
from noisefloor.publication.text.generalisation import most_rewritten
from noisefloor.publication.text.generators import copied_prompts
from noisefloor.publication.text.ngrams import count_ngrams, fit_pairs
from noisefloor.randomness import SeededSource, new_run
from noisefloor_sim.pipelines.texts import made_up_posts
from noisefloor_sim.pipelines.texts.bare_plan import bare_plan
from noisefloor_sim.pipelines.texts.block import block_of
from noisefloor_sim.pipelines.texts.boundary_game import play_boundary
from noisefloor_sim.pipelines.texts.counting_check import CountingCheck, check_counting
from noisefloor_sim.pipelines.texts.posts import UserPosts
from noisefloor_sim.pipelines.texts.printed_plan import (
    PrintedTextsPlan,
    continued,
    generalised,
    place_pieces,
)
from noisefloor_sim.pipelines.texts.text_noise import WithinSteps, declared_noise
from noisefloor_sim.pipelines.texts.text_terms import used_texts
from text_worlds import texts_world

BLOCK = block_of(texts_world())


@pytest.fixture(name="plan", scope="module")
def fixture_plan() -> Iterator[PrintedTextsPlan]:
    parameters: dict[str, Parameter] = {"texts": 100, "public": "own", "k": 3}
    spec = TextSpec(made_up_posts.schema_of(30), BLOCK.cost, 200, parameters)
    with used_texts(BLOCK):
        yield PrintedTextsPlan.of(spec)


def posts(plan: TextNgramsPlan, count: int = 200) -> Documents:
    """Return made-up posts as pieces."""
    source = SeededSource(5, "posts")
    styles = made_up_posts.Styles.of(1, 0.0, source.child("styles"))
    texts, moods = styles.write(np.zeros(count, dtype=np.int64), source.child("texts"))
    pieces, offsets = plan.tokeniser.cut(texts, 30)
    return Documents(pieces, offsets, moods)


def test_texts_begin_with_their_seeds_and_have_their_lengths_and_known_pieces_alone(
    plan: PrintedTextsPlan,
) -> None:
    own, source = posts(plan), SeededSource(6, "printed")
    counts = count_ngrams(own, plan.counting, plan.public, source.child("counts"))
    model = fit_pairs(counts, plan.tokeniser.continuations)
    is_known = np.bincount(own.pieces, minlength=plan.tokeniser.size) > 0
    prompts = copied_prompts(own, source.child("prompts"))
    made = continued(model, is_known, prompts, source.child("texts"))
    assert np.array_equal(made.pieces[made.offsets[:-1]], prompts.seeds)
    assert np.array_equal(made.lengths, own.lengths)
    assert np.array_equal(made.labels, own.labels)
    assert is_known[made.pieces].all()
    assert len(np.unique(made.pieces)) > 60, "it goes on with many pieces"


def test_a_chain_with_next_to_no_noise_goes_on_as_the_posts_do(plan: PrintedTextsPlan) -> None:
    own, source = posts(plan), SeededSource(7, "printed")
    bare = bare_plan(plan)
    counts = count_ngrams(own, bare.counting, plan.public, source.child("counts"))
    model = fit_pairs(counts, plan.tokeniser.continuations)
    is_known = np.bincount(own.pieces, minlength=plan.tokeniser.size) > 0
    prompts = copied_prompts(own, source.child("prompts"))
    made = continued(model, is_known, prompts, source.child("texts"))

    def pairs(documents: Documents) -> set[tuple[int, int]]:
        inside = np.diff(documents.owners) == 0
        both = zip(documents.pieces[:-1][inside], documents.pieces[1:][inside], strict=True)
        return {(int(one), int(other)) for one, other in both}

    seen = pairs(own)
    assert len(pairs(made) & seen) / len(pairs(made)) > 0.7


def test_the_same_stream_writes_the_same_bytes(plan: PrintedTextsPlan) -> None:
    own = posts(plan)
    with new_run():
        one = plan.written(own, SeededSource(8, "printed"))
    with new_run():
        other = plan.written(own, SeededSource(8, "printed"))
    assert np.array_equal(one.pieces, other.pieces)


def test_nothing_is_proved_of_the_whole_and_what_is_claimed_is_charged(
    plan: PrintedTextsPlan,
) -> None:
    assert not plan.proved.is_finite
    assert plan.loss.epsilon == plan.spec.cost.epsilon
    assert set(plan.part_claims) == {
        "generalisation",
        "vocabulary",
        "seeds",
        "copied_lengths",
        "counts",
    }


def test_a_post_that_names_several_places_rewrites_no_more_than_its_group(
    plan: PrintedTextsPlan,
) -> None:
    """One with a city of each region, beside k - 1 posts that name each."""
    hierarchy, k = made_up_posts.place_hierarchy(), 3
    cities = place_pieces(plan.tokeniser)[-len(made_up_posts.REGIONS) :]
    pieces = np.concatenate([cities, *[cities] * (k - 1)])
    lengths = np.append(len(cities), np.ones(len(cities) * (k - 1), dtype=np.int64))
    documents = Documents(
        pieces, np.append(0, np.cumsum(lengths)), np.zeros(len(lengths), dtype=np.int64)
    )
    whole = generalised(documents, plan.tokeniser, k)
    left = generalised(documents[1:], plan.tokeniser, k)
    changed = np.count_nonzero(whole.pieces[len(cities) :] != left.pieces)
    assert 0 < changed <= most_rewritten(k, hierarchy.height - 1)
    star = place_pieces(plan.tokeniser)[0]
    assert (whole.pieces[1 : len(cities)] == star).all()
    assert whole.pieces[0] == cities[0]


def test_no_secret_names_a_place(plan: PrintedTextsPlan) -> None:
    planted = UserPosts.of(texts_world(), plan.tokeniser).secrets
    assert planted.phrases.size
    assert not np.isin(planted.phrases, place_pieces(plan.tokeniser)).any()


@pytest.mark.parametrize("k", [2, 5])
def test_the_boundary_of_k_is_read_off_without_an_error(plan: PrintedTextsPlan, k: int) -> None:
    source = SeededSource(9, "boundary", k)
    outcome, bound = play_boundary(plan.tokeniser, k, plan.spec.cost, 1e-3, source)
    assert outcome.success == outcome.closed_form == 1.0
    assert bound.epsilon > plan.spec.cost.epsilon


def test_declared_noise_is_that_of_the_multipliers_that_are_proved(
    plan: PrintedTextsPlan,
) -> None:
    declared = declared_noise(plan.counting)
    assert {name: part.noise.scale for name, part in declared.parts.items()} == dict(
        plan.counting.multipliers
    )
    assert [part.noise.is_integer for part in declared.parts.values()] == [True, False, False]


def test_documents_that_lengths_leave_out_are_noticed() -> None:
    reference = WithinSteps(7, SeededSource(10, "steps"))
    clean = np.array([3.0, 3.0])
    kept, cause = reference(NoisedVector("lengths", clean + 1, clean), 0)
    assert np.array_equal(kept, clean)
    assert "6 documents" in cause
    assert "7" in cause
    whole = np.array([3.0, 4.0])
    assert reference(NoisedVector("lengths", whole, whole), 0)[1] == ""
    within, cause = reference(NoisedVector("pairs", whole, whole), 0)
    assert cause == ""
    assert (np.abs(within - whole) <= 0.5).all()
    assert (within != whole).all()


def test_texts_fill_every_bound_and_pass_none(plan: PrintedTextsPlan) -> None:
    checked = check_counting(plan, SeededSource(11, "counting"))
    assert list(checked.longest) == ["lengths", "pieces", "pairs"]
    assert all(0.9 <= one <= 1 + 1e-12 for one in checked.longest.values())
    assert not list(checked.causes())
    assert checked.metrics()[-1].value == 1.0


def test_a_text_that_passes_a_bound_is_named_with_its_table() -> None:
    checked = CountingCheck({"pieces": [0.4, 1.2], "pairs": [0.5]})
    assert list(checked.causes()) == [
        "pieces: a text adds 1.2 times the largest norm that is declared"
    ]
    assert checked.metrics()[-1].value == 0.0, "no text came close to the bound of pairs"


def test_nothing_is_said_of_bounds_of_which_no_norm_was_seen() -> None:
    assert CountingCheck({}).metrics() == []
    assert CountingCheck({"pieces": [], "pairs": []}).metrics() == []
    half = {one.name: one.value for one in CountingCheck({"pieces": [1.0], "pairs": []}).metrics()}
    assert half == {"counting.longest.pieces": 1.0, "counting.filled": 0.0}
