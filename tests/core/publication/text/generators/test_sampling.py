"""Texts that generators write, their files, and the paper's prompts."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from generator_cases import (
    LABELS,
    LONGEST,
    SHAPES,
    a_generator,
    documents_of,
    some_documents,
)
from noisefloor.errors import BadParameter, BadSnapshot
from noisefloor.publication.tensors import read_metadata, read_tensors, write_tensors
from noisefloor.publication.text.generators import TextGenerator, copied_prompts, generate
from noisefloor.publication.text.generators.model_weights import loaded_modules
from noisefloor.randomness import SeededSource, new_run
from statistics_of_tests import FALSE_ALARM, chi_square_p, tilted

COUNT = 40
Whole = NDArray[np.int64]


def prompts() -> tuple[Whole, Whole, Whole]:
    drawn = SeededSource(5, "prompts").generator()
    lengths = drawn.integers(1, LONGEST + 1, COUNT)
    return drawn.integers(0, 2, COUNT), drawn.integers(100, 120, COUNT), lengths


def written(
    generator: TextGenerator, at_once: int, temperature: float = 1.0, seed: int = 1
) -> tuple[list[int], list[int]]:
    with new_run():
        source = SeededSource(seed, "writing")
        found = generate(generator, *prompts(), source, temperature, at_once=at_once)
    return found[0].tolist(), found[1].tolist()


@pytest.mark.parametrize("name", SHAPES)
def test_texts_do_not_depend_on_how_many_are_written_at_once(name: str) -> None:
    generator = a_generator(SHAPES[name])
    pieces, offsets = written(generator, 512)
    assert (pieces, offsets) == written(generator, 1) == written(generator, 7)
    assert written(generator, 512, seed=2)[0] != pieces


@pytest.mark.parametrize("name", SHAPES)
def test_seeds_and_lengths_are_as_given_and_nothing_unknown_is_written(name: str) -> None:
    generator = a_generator(SHAPES[name])
    _, seeds, lengths = prompts()
    pieces, offsets = written(generator, 512)
    assert np.diff(offsets).tolist() == lengths.tolist()
    assert [pieces[place] for place in offsets[:-1]] == seeds.tolist()
    after = np.delete(np.array(pieces), offsets[:-1])
    assert np.isin(after, generator.vocabulary.pieces).all()
    assert len(set(after.tolist())) > 5


def test_each_label_has_its_own_model() -> None:
    generator = a_generator(SHAPES["encoder-decoder"])
    swapped = TextGenerator(
        generator.shape,
        generator.vocabulary,
        LABELS,
        generator.tokeniser_sha256,
        generator.weights[::-1],
    )
    labels, seeds, lengths = prompts()
    with new_run():
        found = generate(generator, labels, seeds, lengths, SeededSource(1, "own"))
    with new_run():
        other = generate(swapped, 1 - labels, seeds, lengths, SeededSource(1, "own"))
    assert found[0].tolist() == other[0].tolist()


def test_at_temperature_zero_the_likeliest_piece_is_written() -> None:
    generator = a_generator(SHAPES["language model for both labels"])
    pieces, offsets = written(generator, 512, 0.0)
    assert (pieces, offsets) == written(generator, 512, 0.0, seed=2)
    labels, _, lengths = prompts()
    row = int(lengths.argmax())
    own = generator.vocabulary.places(np.array(pieces[offsets[row] : offsets[row + 1]]))
    module = loaded_modules(generator)[0]
    with torch.inference_mode():
        inputs = torch.from_numpy(own).unsqueeze(0)
        label = torch.tensor([int(labels[row])])
        logits = module(inputs, inputs[:, :1], label, torch.ones(1, 0))[0]
    assert logits[:-1, :-1].argmax(1).tolist() == own[1:].tolist()


@pytest.mark.statistical
@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_a_piece_comes_as_often_as_the_module_says(temperature: float) -> None:
    """20,000 texts of two pieces; a false alarm has probability 1e-6, a tilt by 10 % is seen."""
    generator = a_generator(SHAPES["encoder-decoder"])
    count = 20_000
    labels, seeds = np.ones(count, np.int64), np.full(count, 103)
    pieces, _ = generate(
        generator, labels, seeds, np.full(count, 2), SeededSource(1, "law"), temperature
    )
    places = generator.vocabulary.places(pieces[1::2])
    module = loaded_modules(generator)[1]
    with torch.inference_mode():
        seed = torch.tensor([[3]])
        read = torch.tensor([[-1] * 7 + [3]])
        logits = module(seed, read, torch.tensor([1]), torch.ones(1, 0))[0, 0, :-1].double()
    chances = torch.softmax(logits / temperature, 0).numpy()
    counts = np.bincount(places, minlength=len(chances))
    assert chi_square_p(counts, chances) > FALSE_ALARM
    assert chi_square_p(counts, tilted(chances, 1.1)) < FALSE_ALARM


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"labels": [0, 2]}, "labels"),
        ({"labels": [-1, 0]}, "labels"),
        ({"lengths": [0, 1]}, "lengths"),
        ({"lengths": [1, 12]}, "lengths"),
        ({"lengths": [1]}, "one for each of 2"),
        ({"seeds": [-1, 3]}, "seeds"),
        ({"temperature": -1.0}, "temperature"),
    ],
)
def test_prompts_out_of_range_are_refused(change: dict[str, object], match: str) -> None:
    given = {"labels": [0, 1], "seeds": [100, 101], "lengths": [2, 3], "temperature": 1.0} | change
    labels, seeds, lengths = (np.array(given[one]) for one in ("labels", "seeds", "lengths"))
    heat = float(str(given["temperature"]))
    with pytest.raises(BadParameter, match=match):
        generate(
            a_generator(SHAPES["transformer"]),
            *(labels, seeds, lengths),
            SeededSource(1, "refused"),
            heat,
        )


def test_no_prompts_make_no_texts() -> None:
    nothing = np.zeros(0, np.int64)
    pieces, offsets = generate(
        a_generator(SHAPES["transformer"]), nothing, nothing, nothing, SeededSource(1, "none")
    )
    assert (pieces.tolist(), offsets.tolist()) == ([], [0])


@pytest.mark.parametrize("name", SHAPES)
def test_a_file_is_read_as_it_was_written(name: str) -> None:
    generator = a_generator(SHAPES[name])
    found = TextGenerator.read(generator.written())
    assert found.shape == generator.shape
    assert found.labels == LABELS
    assert found.vocabulary.pieces.tolist() == generator.vocabulary.pieces.tolist()
    assert found.vocabulary.is_public
    assert found.written() == generator.written()
    assert found.parameters == sum(one.size for it in generator.weights for one in it.values())
    assert written(found, 512) == written(generator, 512)


def damaged(kind: str) -> bytes:
    content = a_generator(SHAPES["transformer"]).written()
    tensors, metadata = read_tensors(content), read_metadata(content)
    if kind == "no vocabulary":
        del tensors["vocabulary"]
    elif kind == "another form":
        metadata["noisefloor"] = metadata["noisefloor"].replace("text-generator", "other")
    elif kind == "a third model":
        tensors["2.head.bias"] = tensors["0.head.bias"]
    elif kind == "no number":
        tensors["0.head.bias"][0] = np.nan
    elif kind == "another size":
        metadata["noisefloor"] = metadata["noisefloor"].replace(
            '"vocabulary": 13', '"vocabulary": 14'
        )
    return b"{}" if kind == "no file" else write_tensors(tensors, metadata)


@pytest.mark.parametrize(
    "kind",
    ["no file", "no vocabulary", "another form", "a third model", "no number", "another size"],
)
def test_a_damaged_file_is_refused(kind: str) -> None:
    with pytest.raises(BadSnapshot):
        TextGenerator.read(damaged(kind))


def test_weights_of_another_shape_are_refused_where_they_are_used() -> None:
    content = a_generator(SHAPES["transformer"]).written()
    tensors = read_tensors(content)
    tensors["0.head.bias"] = tensors["0.head.bias"][:5]
    changed = TextGenerator.read(write_tensors(tensors, read_metadata(content)))
    with pytest.raises(BadSnapshot, match="not those of its shape"):
        loaded_modules(changed)


def test_the_papers_prompts_copy_labels_and_lengths_and_draw_seeds_of_the_label() -> None:
    documents = documents_of([[100, 101], [], [105], [100, 102, 103]], [0, 0, 1, 0])
    found = copied_prompts(documents, SeededSource(1, "copied"))
    assert found.labels.tolist() == [0, 1, 0]
    assert found.lengths.tolist() == [2, 1, 3]
    assert found.seeds[1] == 105
    assert set(found.seeds[[0, 2]].tolist()) <= {100, 101, 102, 103}


@pytest.mark.statistical
def test_a_seed_comes_as_often_as_its_piece() -> None:
    """6,000 seeds; a false alarm has probability 1e-6, a tilt by 20 % is seen."""
    documents = documents_of([[100, 100, 101, 102]] * 6000)
    seeds = copied_prompts(documents, SeededSource(1, "copied often")).seeds
    counts = np.bincount(seeds - 100, minlength=3)
    chances = np.array([0.5, 0.25, 0.25])
    assert chi_square_p(counts, chances) > FALSE_ALARM
    assert chi_square_p(counts, tilted(chances, 1.2)) < FALSE_ALARM


def test_prompts_of_real_sizes_fit_a_generator() -> None:
    documents = some_documents()
    found = copied_prompts(documents, SeededSource(1, "fit"))
    pieces, offsets = generate(
        a_generator(SHAPES["encoder-decoder"]), *found, SeededSource(1, "fit texts")
    )
    assert (
        np.diff(offsets).tolist()
        == found.lengths.tolist()
        == documents.lengths[documents.lengths > 0].tolist()
    )
    assert len(pieces) == offsets[-1]
