"""``noisefloor reproduce text``: what it lists, what it judges, and what it refuses."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from generalisation_cases import small_graph
from noisefloor.accounting import epsilon_at_least
from noisefloor.errors import BadParameter, BadRunDirectory, MissingData
from noisefloor.privacy import Neighbours
from noisefloor.publication.text import Documents, shared_tokeniser
from noisefloor.publication.text.entities import Mentions
from noisefloor.publication.text.generators import PieceVocabulary
from noisefloor.randomness import SeededSource, Source, new_run
from noisefloor.tables import load_texts
from noisefloor_sim.cli import commands
from noisefloor_sim.papers import cell_store, verdicts
from noisefloor_sim.papers.text import (
    claims,
    computed,
    corpora,
    measuring,
    plans,
    printed,
    reproduce_text,
    reproduction,
    systems,
)
from noisefloor_sim.papers.text.budgets import seed_delta
from noisefloor_sim.papers.text.plans import (
    FULL,
    ORIGINAL,
    QUICK,
    VARIANTS,
    TextCell,
    TextRunPlan,
    cell_at,
    cells_of,
    splits_of,
)
from noisefloor_sim.papers.text.results import GainFigure, TextFigure, privacy_loss, runs_of
from noisefloor_sim.papers.text.score_tables import score_table
from noisefloor_sim.papers.verdicts import NOT, REPRODUCED, UNDECIDED, Judge
from noisefloor_sim.report.readings import true_readings
from tiny_backbones import WORDS, write_piece_file

TINY = replace(
    QUICK,
    longest=8,
    records=0,
    vocabulary=24,
    embedding=4,
    hidden=4,
    batch=16,
    epochs=1.0,
    plain_epochs=1.0,
    inputs=10,
    compared=20,
    sample=10,
)
MORE = ("anna", "smith", "paris", "london", "in", "with", "but", "not")
Pair = tuple[str, str]
Counts = NDArray[np.int64]
GOOD, BAD = ("good", "great", "fine", "warm"), ("bad", "poor", "dull", "cold")


@pytest.mark.parametrize("plan", [FULL, QUICK, TINY], ids=["full", "quick", "tiny"])
def test_every_claim_is_about_cells_that_are_run(plan: TextRunPlan) -> None:
    cells = set(cells_of(plan))
    assert len({one.key for one in cells}) == len(cells_of(plan)) == len(cells)
    for some in claims.empirical_variants(plan).values():
        for setting in (one for claim in some for one in claim.settings()):
            if isinstance(setting, GainFigure):
                assert {cell_at(one, plan.epsilon, setting.variant) for one in plans.PRIVATE_EDS}
            else:
                assert setting.cell in cells
                last = replace(setting.cell, split=splits_of(plan, setting.cell.epsilon) - 1)
                assert last in cells


def test_without_privacy_there_is_one_printed_reading_and_no_epsilon() -> None:
    assert cell_at("plain", 8.0, "inside") == cell_at("plain", 3.0, "printed")
    assert cell_at("plain", 8.0, "corrected").epsilon == 0
    assert cell_at("ngrams", 8.0, "printed").variant == "corrected"
    systems_run = {one.system for one in cells_of(FULL)}
    assert systems_run == set(plans.NAMES)


def test_the_printed_table_has_what_its_text_says() -> None:
    assert len(printed.F1) == 24
    assert printed.F1["dpvg-ed", "tree", "NEG"] == 0.673
    assert printed.F1["dp-ed", "svm-rbf", "POS"] == 0.577
    judged = {one.key: Judge(1).judge(one, {}) for one in computed.table_claims()}
    assert {one.verdict for one in judged.values()} == {REPRODUCED}
    assert judged["table-largest"].deciding.value == pytest.approx(0.05)
    assert judged["table-smallest"].deciding.value == pytest.approx(0.007)


def test_a_table_without_these_orders_does_not_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin of the above: the scores of two systems are exchanged."""
    names = {"original": "original", "dp-ed": "dpvg-ed", "dpvg-ed": "dp-ed"}
    turned = {(names[one], *rest): value for (one, *rest), value in printed.F1.items()}
    monkeypatch.setattr(printed, "F1", turned)
    judged = {one.key: Judge(1).judge(one, {}).verdict for one in computed.table_claims()}
    wrong = {"table-generalised", "table-largest"}
    assert all(judged[one] == NOT for one in wrong)


def test_figures_of_independent_scripts_come_out() -> None:
    inside, outside = computed.script_epsilon("inside"), computed.script_epsilon("outside")
    assert (round(inside, 2), round(outside, 3)) == (22.92, 0.036)
    assert round(computed.script_sigma(20, 2.0), 1) == 1.6
    assert computed.script_steps(500) == 24_414


@pytest.mark.parametrize(("pieces", "texts", "count"), [(5, 3, 1), (7, 2, 3), (4, 1, 2)])
def test_the_chance_of_a_seed_is_that_of_drawing_it_at_least_once(
    pieces: int, texts: int, count: int
) -> None:
    assert seed_delta(pieces, texts, count) == pytest.approx(1 - (1 - count / pieces) ** texts)
    assert seed_delta(3, texts, 3) == 1


def test_splits_of_a_repetition_judge_each_text_once() -> None:
    judges = [corpora.split_rows(43, TINY, split)[1] for split in range(10)]
    for first in (0, 5):
        together = np.sort(np.concatenate(judges[first : first + 5]))
        assert together.tolist() == list(range(43))
    assert judges[0].tolist() != judges[5].tolist()
    rows, others = corpora.split_rows(43, TINY, 3)
    assert not set(rows.tolist()) & set(others.tolist())


def scores(neg: float, pos: float) -> dict[str, list[float]]:
    return {name: [neg, pos] for name in printed.CLASSIFIERS}


def found_with(plan: TextRunPlan, more: dict[TextCell, dict[str, Any]]) -> dict[TextCell, Any]:
    """Return cells that are all alike, but for what is given of some, whatever their split."""
    none = {"epsilon": None, "delta": 0.0, "reason": "because"}
    found: dict[TextCell, Any] = {}
    for cell in cells_of(plan):
        proved: dict[str, Any] = {}
        if cell.epsilon:
            proved = {"weights": {"epsilon": 0.9 * cell.epsilon, "delta": 9e-6, "reason": ""}}
            small = {"epsilon": 0.05 * cell.epsilon, "delta": 5e-7, "reason": ""}
            proved |= dict.fromkeys(
                ("generalisation", "lengths"), none if cell.is_paper else small
            )
        found[cell] = {
            "f1": scores(60.0, 55.0),
            "judged": 1_000,
            "row_means": [1.0, 2.0, 3.0] * 40,
            "row_maxima": [10.0, 20.0, 30.0] * 40,
            "heat": [[1.0, 2.0], [3.0, 4.0]],
            "largest": [0.5, 0.25, 0.125] * 60,
            "proved": proved,
            "substituted": {"epsilon": 15.5, "delta": 1.8e-5, "reason": ""},
            "noise": 2.0,
            "different_lengths": 1,
            "samples": [],
            "seeds": {
                "delta": 0.0165,
                "labels": [{"pieces": 60, "texts": 1, "delta": 0.0165}] * 2,
            },
            **dict.fromkeys(("distinct_1", "distinct_2", "rare_share", "self_bleu"), 5.0),
            **dict.fromkeys(("vocabulary", "rare_kinds"), 100),
            **more.get(replace(cell, split=0), {}),
        }
    return found


MANY = replace(TINY, splits=10)


def verdicts_of(found: dict[TextCell, Any], variant: str) -> dict[str, str]:
    _, judged = reproduction.judge_all(MANY, found)
    return {one.claim.key: one.verdict for one in judged[variant]}


def test_orders_are_judged_for_each_variant_by_its_own_corpora() -> None:
    dp, dpvg = (cell_at(one, 8.0, "inside") for one in plans.PRIVATE_EDS)
    better: dict[TextCell, dict[str, Any]] = {
        ORIGINAL: {"f1": scores(80.0, 78.0)},
        cell_at("plain", 0.0, "printed"): {"f1": scores(50.0, 48.0)},
        dpvg: {
            "f1": {**scores(70.0, 68.0), "logistic": [70.0, 75.0], "naive-bayes": [70.0, 57.0]},
            "row_means": [0.5] * 120,
            "row_maxima": [9.0] * 120,
            "rare_share": 7.0,
        },
        dp: {"f1": scores(60.0, 55.0)},
    }
    found = found_with(MANY, better)
    inside = verdicts_of(found, "As printed, but noise inside of 1/L")
    assert inside["raw-first"] == REPRODUCED
    assert inside["plain-first"] == NOT
    assert inside["generalised"] == REPRODUCED
    assert inside["negative"] == NOT  # MLR of DPvG E-D
    assert inside["largest-gain"] == REPRODUCED
    assert inside["smallest-gain"] == REPRODUCED
    assert inside["less-alike"] == REPRODUCED
    assert inside["rare-words"] == REPRODUCED
    assert verdicts_of(found, "Corrected")["generalised"] == UNDECIDED


def test_nothing_is_reproduced_of_systems_that_are_all_alike() -> None:
    """The twin of the above: identical corpora show no order, and equality alone."""
    found = found_with(MANY, {})
    for variant in VARIANTS:
        verdict = verdicts_of(found, claims.variant_title(variant))
        orders = {key for key, one in verdict.items() if one == REPRODUCED}
        assert orders == {"negative", "loss-equal", "loss-zero"}


def test_gaps_of_losses_are_paired_input_by_input() -> None:
    low, high = (cell_at(one, 8.0, "printed") for one in plans.PRIVATE_EDS)
    found = found_with(MANY, {})
    found[replace(high, split=1)]["largest"] = [0.25, 0.125, 0.0625] * 60
    runs = runs_of(found, MANY)
    assert runs[TextFigure("loss", high)] == pytest.approx([math.log(2)] * 180)
    assert runs[TextFigure("loss", low)] == [0.0] * 180
    assert privacy_loss(found, high).mean == pytest.approx(math.log(2))
    judged = verdicts_of(found, "As printed, noise outside of 1/L")
    assert judged["loss-above"] == REPRODUCED


def test_the_parts_of_privacy_are_infinite_as_printed_and_add_up_corrected() -> None:
    found = found_with(TINY, {})
    parts = {one.name: one for one in computed.parts_of(found, TINY, "inside")}
    for name in ("seeds", "lengths", "vocabulary", "generalisation", "whole"):
        assert not parts[name].guarantee.is_finite
        assert parts[name].guarantee.reason
    assert "equally long here" in parts["lengths"].words
    after = parts["weights after generalisation"].guarantee
    # 5 mentions, (5 - 1)(4 + 1) others each: 101 documents, each but one in two steps.
    assert after.epsilon == pytest.approx(201 * 7.2)
    assert after.delta == 1
    assert "if no document has more than 5 mentions" in parts["weights after generalisation"].words
    right = {one.name: one.guarantee for one in computed.parts_of(found, TINY, "corrected")}
    assert right["whole"].epsilon == pytest.approx(7.2 + 0.4 + 0.4)
    assert right["whole"].delta == pytest.approx(1e-5)
    assert right["whole, for an author"].epsilon == pytest.approx(5 * 8.0)
    assert right["labels may change"].epsilon == pytest.approx(15.5)
    assert right["labels may change"].neighbours is Neighbours.RECORD_SUBSTITUTE
    assert right["seeds"].epsilon == right["vocabulary"].epsilon == 0


def test_what_is_claimed_is_refuted_by_seeds_and_not_by_the_lack_of_a_proof() -> None:
    found = found_with(TINY, {})
    judged = {
        one.key: Judge(1).judge(one, {}).verdict for one in computed.privacy_claims(found, TINY)
    }
    assert judged["whole-printed"] == judged["whole-inside"] == NOT
    assert judged["whole-corrected"] == judged["after-corrected"] == REPRODUCED
    assert judged["after-inside"] == UNDECIDED
    assert judged["less-noise"] == NOT
    rare = {**found[cell_at("dp-ed", 8.0, "inside")], "seeds": {"delta": 1e-6}}
    found[cell_at("dp-ed", 8.0, "inside")] = rare
    claim = next(one for one in computed.privacy_claims(found, TINY) if one.key == "whole-inside")
    assert Judge(1).judge(claim, {}).verdict == UNDECIDED


def test_the_noise_of_the_printed_variant_is_a_batch_times_that_of_its_claim() -> None:
    sizes = (160, 160)
    shapes = systems.shape_of(cell_at("dp-ed", 8.0, "printed"), TINY, 24, 8)
    outside, inside = (
        systems.generator_plan(cell_at("dp-ed", 8.0, variant), TINY, shapes, sizes)
        for variant in ("printed", "inside")
    )
    for one, other in zip(outside.trainings, inside.trainings, strict=True):
        assert one.noise_multiplier == pytest.approx(TINY.batch * other.noise_multiplier)
        assert one.steps == other.steps == 10
        assert one.optimiser == other.optimiser == "adam-printed"
    assert inside.weights_guarantee.epsilon == pytest.approx(8.0, rel=1e-2)
    assert outside.claimed.epsilon == pytest.approx(inside.claimed.epsilon)
    assert outside.weights_guarantee.epsilon < 0.5
    assert not inside.guarantee.is_finite


@pytest.mark.parametrize("batch", [16, 160])
def test_a_substitution_costs_what_is_worse_of_keeping_and_changing_the_label(batch: int) -> None:
    """In full batches two steps in one training cost more than one step in each of two."""
    plan = replace(TINY, batch=batch, epochs=3.0)
    shapes = systems.shape_of(cell_at("dp-ed", 8.0), plan, 24, 8)
    made = systems.generator_plan(cell_at("dp-ed", 8.0), plan, shapes, (160, 160))
    weights, found = made.weights_guarantee, systems.of_substitution(made)
    assert found.neighbours is Neighbours.RECORD_SUBSTITUTE
    assert found.delta == pytest.approx(2 * weights.delta)
    (event,) = made.trainings[0].events
    kept = epsilon_at_least(event, found.delta, Neighbours.RECORD_SUBSTITUTE)
    assert found.epsilon >= max(kept, 2 * weights.epsilon)
    if batch == 160:
        assert found.epsilon > 2.05 * weights.epsilon


def test_declared_sizes_are_two_digits_of_four_fifths() -> None:
    labels = np.repeat([0, 1], [12_297, 12_171])
    assert systems.declared_sizes(labels) == (9_800, 9_700)


class PlannedNoise:
    """Adds what it is given, for a deviation of one."""

    variance = 1.0

    def __init__(self, drawn: Counts) -> None:
        self.drawn = drawn

    def add(self, values: Counts, source: Source) -> Counts:
        return values + self.drawn

    def log_likelihood(self, released: Counts, values: Counts) -> float:
        return 0.0


def test_lengths_follow_cells_well_above_the_noise_and_no_others() -> None:
    lengths = np.repeat([3, 8, 5, 8], [40, 20, 20, 20])
    offsets = np.append(0, np.cumsum(lengths))
    train = Documents(np.zeros(offsets[-1], np.int32), offsets, np.repeat([0, 1], [60, 40]))
    seeds = np.arange(100, dtype=np.int32)
    budget = systems.length_budget(8.0)
    found = []
    # Two deviations in every cell; then nothing is left of what there is.
    for noise in (np.full(16, 2), np.full(16, -50)):
        planned = replace(budget, noises={"lengths": PlannedNoise(noise)})
        with new_run():
            source = SeededSource(1, "lengths")
            found.append(systems.noisy_prompts(train, seeds, 8, planned, source))
    pairs = list(zip(found[0].labels.tolist(), found[0].lengths.tolist(), strict=True))
    assert {one: pairs.count(one) for one in pairs} == {
        (0, 3): 39,
        (0, 8): 20,
        (1, 5): 21,  # 42 + 22 + 22 of 108 is 79.6 of 100
        (1, 8): 20,
    }
    assert pairs != sorted(pairs)
    assert found[0].seeds.tolist() == seeds.tolist()
    assert set(found[1].lengths.tolist()) == {8}
    assert set(found[1].labels.tolist()) == {0, 1}
    assert budget.guarantee.epsilon <= 0.4


def test_public_seeds_follow_public_shares() -> None:
    """A seed of 2,000 is one of two pieces by 1 to 3; an error beyond 0.06 has chance 1e-9."""
    pieces = np.array([7, 9], dtype=np.int32)
    vocabulary = PieceVocabulary(pieces, np.array([0.2, 0.6, 0.2]), is_public=True)
    with new_run():
        seeds = systems.public_seeds(vocabulary, 2_000, SeededSource(3, "seeds"))
    assert set(seeds.tolist()) == {7, 9}
    assert abs((seeds == 9).mean() - 0.75) < 0.06


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write made-up reviews, private and public ones, and a tiny tokeniser beside them."""
    found = tmp_path_factory.mktemp("texts")
    write_piece_file(found / "tiny", (*WORDS, *MORE))
    for name, shift, count in (("own", 0, 128), ("public", 3, 96)):
        rows = []
        for row in range(count):
            words, place = (BAD, GOOD)[row % 2], row // 2 + shift
            end = ("in Paris", "with Anna Smith", "in London")[row % 3]
            rows.append(
                f"the {words[place % 4]} film was<br />{words[place // 4 % 4]} "
                f"{words[place // 16 % 4]} {end}\t{row % 2}"
            )
        (found / f"{name}.tsv").write_text("\n".join(("text\tlabel", *rows, *rows[:16], "")))
        schema = {"text": {"text": 8}, "label": {"categories": [1, 0]}}
        document = {"record": "one review", "columns": schema, "label": "label"}
        (found / f"{name}.schema.json").write_text(json.dumps(document))
    return found


@pytest.fixture
def tiny(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Pair:
    """Run the tiny plan with the tiny tokeniser; return private and public texts."""
    graph = small_graph()
    for module in (systems, reproduction):
        monkeypatch.setattr(module, "shared_place_graph", lambda: graph)
    monkeypatch.setattr(plans, "QUICK", TINY)
    monkeypatch.setenv("NOISEFLOOR_BACKBONE", str(folder / "tiny"))
    corpora.read_prepared.cache_clear()
    return str(folder / "own.tsv"), str(folder / "public.tsv")


def test_texts_are_read_once_each_without_marks_and_by_label(tiny: Pair, folder: Path) -> None:
    found = corpora.load_corpus(*tiny, TINY)
    texts = load_texts(tiny[0]).texts["text"].tolist()
    assert len(set(texts)) == found.count < len(texts)
    assert len(set(found.texts)) == found.count
    assert "<br" not in " ".join(found.texts)
    is_good = np.array([any(word in text for word in GOOD) for text in found.texts])
    assert (found.documents.labels == is_good).all()
    assert found.documents.lengths.max() <= found.longest == 8
    some = corpora.load_corpus(*tiny, replace(TINY, records=60))
    assert some.count == 60
    assert set(some.texts) < set(found.texts)


def test_texts_are_cut_after_a_word_by_themselves() -> None:
    assert corpora._shortened("ab cd", 60) == "ab cd"
    cut = corpora._shortened("word " * 400, 60)
    assert cut == ("word " * 144).rstrip()
    assert corpora._shortened("x" * 2_000, 60) == "x" * 720


def test_names_are_generalised_by_training_documents_alone(
    tiny: Pair,
) -> None:
    texts = ["a film in Paris", "the story in Paris"] * 4
    starts = [text.index("Paris") for text in texts]
    ends = [start + 5 for start in starts]
    mentions = Mentions.of(texts, range(8), starts, ends, [1] * 8)
    pieces, offsets = shared_tokeniser().cut(texts, 8)
    documents = Documents(pieces, offsets, np.arange(8) % 2)
    prepared = corpora.PreparedCorpus(texts, documents, documents, mentions, 8)
    cell = cell_at("dpvg-ed", 8.0, "inside")
    with new_run():
        source = SeededSource(1, "names")
        kept, parts = systems.generalised(prepared, np.arange(5), cell, 8, source)
        climbed, _ = systems.generalised(prepared, np.arange(4), cell, 8, source)
        plain, none = systems.generalised(
            prepared, np.arange(4), cell_at("dp-ed", 8.0, "inside"), 8, source
        )
        noisy, paid = systems.generalised(
            prepared, np.arange(4), cell_at("dpvg-ed", 8.0), 8, source
        )
    written = shared_tokeniser().written
    assert all("paris" in one for one in written(kept.pieces, kept.offsets))
    assert not any("paris" in one for one in written(climbed.pieces, climbed.offsets))
    assert all("paris" in one for one in written(plain.pieces, plain.offsets))
    assert not any("paris" in one for one in written(noisy.pieces, noisy.offsets))
    assert not parts["generalisation"].is_finite
    assert not none
    assert 0 < paid["generalisation"].epsilon <= 8.0 * plans.PLACE_SHARE


def test_a_word_that_is_not_public_is_written_as_printed_and_never_corrected(tiny: Pair) -> None:
    """As printed it is one seed of three: among 60 texts it is missing with chance 3e-11."""
    texts = ["paris film story"] * 60
    pieces, offsets = shared_tokeniser().cut(texts, 8)
    documents = Documents(pieces, offsets, np.arange(60) % 2)
    word = int(pieces[0])
    public = measuring.without(documents, np.array([word]))
    none = np.empty(0, np.int64)
    mentions = Mentions.of(texts, *[none] * 4)
    prepared = corpora.PreparedCorpus(texts, documents, public, mentions, 8)
    found = {}
    for cell in (cell_at("dp-ed", 8.0, "inside"), cell_at("dp-ed", 8.0)):
        with new_run():
            source = SeededSource(1, cell.key)
            written = systems.write_corpus(cell, TINY, prepared, np.arange(60), source)
        found[cell.variant] = int((written.documents.pieces == word).sum())
        has_reasons = [not part.is_finite for part in written.parts.values()]
        assert any(has_reasons) == cell.is_paper
        assert written.documents.count == (60 if cell.is_paper else 48)
    assert found["inside"] > 0
    assert found["corrected"] == 0


@pytest.mark.parametrize("system", ["ngrams", "crossed", "dp-ed", "dpvg-ed"])
def test_neither_the_number_nor_the_longest_of_private_texts_shows(
    system: plans.TextSystem, tiny: Pair
) -> None:
    """Not one document less, nor a longer one among those that are held out."""
    none = np.empty(0, np.int64)
    found = []
    for count, held_out in ((60, "the film"), (59, "the film"), (60, "the good film was great")):
        texts = ["the film was"] * 60 + [held_out]
        pieces, offsets = shared_tokeniser().cut(texts, 8)
        documents = Documents(pieces, offsets, np.arange(61) % 2)
        mentions = Mentions.of(texts, *[none] * 4)
        prepared = corpora.PreparedCorpus(texts, documents, documents[:9], mentions, 8)
        with new_run():
            written = systems.write_corpus(
                cell_at(system, 8.0), TINY, prepared, np.arange(count), SeededSource(1, "same")
            )
        longest = written.generator.shape.longest if written.generator else 8
        found.append((written.documents.count, longest))
    assert found == [(sum(systems.declared_sizes(np.arange(61) % 2)), 8)] * 3


def test_likeness_of_texts_with_themselves_is_complete() -> None:
    offsets = np.arange(0, 60, 5)
    pieces = np.repeat(np.arange(11), 5).astype(np.int32)
    real = Documents(pieces, offsets, np.zeros(11, np.int64))
    with new_run():
        found = measuring.likeness(real, real, 20, TINY, SeededSource(1, "likeness"))
    other = Documents((pieces + 1) % 20, offsets, real.labels)
    with new_run():
        less = measuring.likeness(real, other, 20, TINY, SeededSource(1, "likeness"))
    assert found["row_maxima"] == pytest.approx([100.0] * 11)
    assert found["cosine_mean"] == pytest.approx(100 / 11)
    assert less["cosine_mean"] < found["cosine_mean"]
    assert sum(one > 99 for one in less["row_maxima"]) == 10


def test_pieces_are_left_out_of_their_own_documents() -> None:
    texts = Documents(np.array([5, 1, 1, 7, 5], np.int32), np.array([0, 2, 3, 3, 5]), np.arange(4))
    found = measuring.without(texts, np.array([5, 9]))
    assert found.pieces.tolist() == [1, 1, 7]
    assert found.offsets.tolist() == [0, 1, 2, 2, 3]
    assert found.labels.tolist() == [0, 1, 2, 3]


def test_a_score_table_has_printed_numbers_beside_ours() -> None:
    found = found_with(MANY, {cell_at("dpvg-ed", 8.0, "inside"): {"f1": scores(70.0, 50.0)}})
    table = score_table(runs_of(found, MANY), MANY, "inside")
    row = dict(zip(table.header, table.rows[1], strict=True))
    assert (row["classifier"], row["class"]) == ("MLR", "POS")
    assert row["DPvG E-D, printed"] == "0.510"
    assert row["DPvG E-D"] == "0.500 (0.50 to 0.50)"
    (said,) = true_readings(table)
    assert "DPvG E-D is above DP E-D in 4" in said


@pytest.mark.slow
def test_an_interrupted_run_goes_on_and_ends_with_the_same_bytes(
    tiny: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["reproduce", "text", "--quick", "--jobs", "1", "--data", tiny[0], "--public", tiny[1]]
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    real = measuring.run_cell
    done: list[TextCell] = []

    def interrupted(cell: TextCell, plan: TextRunPlan, frozen: Path) -> dict[str, Any]:
        if len(done) == 5:
            raise KeyboardInterrupt
        done.append(cell)
        return real(cell, plan, frozen)

    monkeypatch.setattr(measuring, "run_cell", interrupted)
    stopped = CliRunner().invoke(commands.app, [*words, "--out", str(broken)])
    assert (stopped.exit_code, len(done)) == (130, 5)
    monkeypatch.setattr(measuring, "run_cell", real)
    kept = sorted((broken / cell_store.CELLS).glob("*.json"))
    assert len(kept) == 5
    stamps = [path.stat().st_mtime_ns for path in kept]
    with pytest.raises(BadRunDirectory, match="field plan is of another run"):
        reproduce_text(
            quick=True,
            jobs=1,
            out=broken,
            force=False,
            resume=True,
            seed=2,
            data=tiny[0],
            public=tiny[1],
        )
    results = [
        CliRunner().invoke(commands.app, [*words, "--out", str(out), *more])
        for out, more in ((broken, ["--resume"]), (whole, []))
    ]
    assert [one.exit_code for one in results] == [0, 0], results[0].output
    assert [path.stat().st_mtime_ns for path in kept] == stamps
    for name in ("reproduction.json", "reproduction.csv", "report.html"):
        assert (broken / name).read_bytes() == (whole / name).read_bytes()
    check_finished(whole, results[1].output)


def check_finished(out: Path, said: str) -> None:
    assert "As printed nothing is proved of the texts as a whole" in said
    assert "Quick run" in said
    assert "MB of memory" in said
    assert not (out / cell_store.FROZEN).exists()
    found = json.loads((out / "reproduction.json").read_text())
    assert len(found["cells"]) == len(cells_of(TINY))
    assert set(found["verdicts"]) == {
        *map(claims.variant_title, VARIANTS),
        computed.PRIVACY_VARIANT,
        computed.TABLE_VARIANT,
    }
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["peak_mb"] > 10
    page = (out / "report.html").read_text()
    for words in ("no audit", "Epsilon of each part of DPvG E-D", "rgba(0,114,178,"):
        assert words in page


def test_missing_data_are_named_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOISEFLOOR_DATA", str(tmp_path / "none"))
    monkeypatch.setattr(reproduction, "shared_place_graph", small_graph)
    with pytest.raises(MissingData, match="noisefloor data fetch imdb"):
        reproduce_text(quick=True, jobs=1, out=tmp_path / "run", force=False)
    assert not (tmp_path / "run").exists()


def test_few_texts_many_classes_and_private_public_texts_are_refused(
    tiny: Pair, tmp_path: Path
) -> None:
    own = Path(tiny[0]).read_text().splitlines()
    schema = json.loads(Path(tiny[0]).with_name("own.schema.json").read_text())
    (tmp_path / "few.tsv").write_text("\n".join([*own[:30], ""]))
    (tmp_path / "few.schema.json").write_text(json.dumps(schema))
    schema["columns"]["label"] = {"categories": [1, 0, 2]}
    (tmp_path / "three.tsv").write_text("\n".join([*own, ""]))
    (tmp_path / "three.schema.json").write_text(json.dumps(schema))

    def run(data: str, public: str, splits: int = 0, jobs: int = 1) -> None:
        reproduce_text(
            quick=True,
            jobs=jobs,
            out=tmp_path / "run",
            force=False,
            data=data,
            public=public,
            splits=splits,
        )

    with pytest.raises(BadParameter, match="at least 50 different texts"):
        run(str(tmp_path / "few.tsv"), tiny[1])
    with pytest.raises(BadParameter, match="of two classes"):
        run(str(tmp_path / "three.tsv"), tiny[1])
    with pytest.raises(BadParameter, match="another data set than the private one"):
        run(tiny[0], tiny[0])
    with pytest.raises(BadParameter, match="splits"):
        run(*tiny, splits=1)
    with pytest.raises(BadParameter, match="jobs"):
        run(*tiny, jobs=0)
    assert not (tmp_path / "run").exists()


def test_computed_claims_take_no_share_of_the_error() -> None:
    assert verdicts.tests_in({"any": computed.table_claims()}) == 0
