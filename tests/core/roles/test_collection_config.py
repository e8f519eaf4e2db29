"""A collection as a document: what is read is what was written, for every kind and training."""

import json
from dataclasses import replace

import pytest

from batches import batched
from collection_worlds import schema
from noisefloor.ads.training.bit_training import BitTraining
from noisefloor.ads.training.gradient_noise import GradientBound
from noisefloor.ads.training.laplace_training import LaplaceTraining
from noisefloor.ads.training.rounds import AdTraining
from noisefloor.ads.training.spectral_training import SpectralTraining
from noisefloor.errors import BadCollection, BadParameter
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.roles import kind_registry
from noisefloor.roles.ad_server import Ad, Catalogue
from noisefloor.roles.batches import BatchTerms, ReportProtection
from noisefloor.roles.collection_config import CollectionConfig
from noisefloor.tasks import task_registry
from noisefloor.tasks.ad_task import AdTask
from noisefloor.tasks.record_task import RecordTask
from noisefloor.tasks.training_task import TrainingTask
from noisefloor.wire.columns import Column, Integers, Symbols, Text
from noisefloor.wire.kinds import record_kind
from wrong_types import leaves, replaced, wrong_types

SIZES: dict[str, dict[str, int]] = {
    "gradient-noise": {"ads": 4, "dimension": 3},
    "ad-slates": {"size": 6, "slate": 2},
    "bid-requests": {"ads": 6, "topics": 3},
    "joint-rows": {"attributes": 6, "classes": 4, "chosen": 2},
    "decisions": {},
    "range-rows": {"attributes": 6, "steps": 8},
    "asked-values": {"attributes": 6, "chosen": 2, "values": 9, "labels": 2},
    "told-values": {"chosen": 3, "values": 4, "labels": 2},
    "query-values": {"chosen": 3, "values": 4, "labels": 0},
    "posted-texts": {"classes": 2, "most_bytes": 300},
}
TRAININGS: list[AdTraining] = [
    BitTraining(8, 3, 1.5, 4, clip=0.1, rate=0.3, once=True, local="step"),
    LaplaceTraining(8, 3, 2, epsilon_bits=1 / 3, epsilon_values=0.1, form=GradientBound.BLOCK),
    SpectralTraining(8, 3, 2.0, shares=(0.1, 0.2, 0.7), form="lite"),
]
STATED = {"mechanism": "m", "epsilon": 1, "neighbours": "user"}
CATALOGUE = Catalogue(3, tuple(Ad(f"ad-{place}", place) for place in range(8)))


@pytest.mark.parametrize("name", sorted(kind_registry.KIND_BUILDERS))
def test_every_kind_reads_back_from_its_columns(name: str) -> None:
    (kind,) = kind_registry.kinds_from_sizes({name: SIZES.get(name, {"size": 6})}).values()
    assert kind_registry.kinds_from_sizes({name: kind_registry.kind_description(kind)}) == {
        name: kind
    }


def test_records_of_somebody_s_own_read_back() -> None:
    columns: dict[str, Column] = {"age": Integers(-3, 99), "blood": Symbols(4), "note": Text(80)}
    kind = record_kind("records", columns)
    read = kind_registry.kinds_from_sizes({"records": kind_registry.kind_description(kind)})[
        "records"
    ]
    assert read == kind
    assert read.reduction is kind.reduction


@pytest.mark.parametrize("training", TRAININGS, ids=lambda one: type(one).__name__)
def test_every_training_reads_back(training: AdTraining) -> None:
    task = AdTask(training)
    assert task_registry.task_from_description(task_registry.task_description(task)) == task
    collection = CollectionConfig(CATALOGUE, task=task)
    read = CollectionConfig.parse(collection.content)
    assert read == collection
    assert read.content == collection.content
    assert {training.kind(number).name for number in range(training.rounds)} <= set(read.kinds)


@pytest.mark.parametrize(
    "task",
    [None, *map(AdTask, TRAININGS), RecordTask(schema(4, 3), 2.0, 1000)],
    ids=lambda one: type(getattr(one, "training", one)).__name__,
)
def test_no_number_or_flag_of_a_document_is_coerced(task: TrainingTask | None) -> None:
    document = json.loads(CollectionConfig(CATALOGUE, task=task).content)
    for path, value in leaves(document):
        for wrong in wrong_types(value):
            changed = json.dumps(replaced(document, path, wrong)).encode()
            with pytest.raises(BadCollection) as refusal:
                CollectionConfig.parse(changed)
            assert f"{path[-1]} has to be" in str(refusal.value) or len(path) > 2, path


@pytest.mark.parametrize("content", [b"", b"[]", b"null", b"{}", b"\xff", b"[" * 100_000])
def test_anything_else_is_refused(content: bytes) -> None:
    with pytest.raises(BadCollection):
        CollectionConfig.parse(content)


def test_a_collection_without_ads_reads_back_and_counts_no_impressions() -> None:
    kinds = kind_registry.kinds_from_sizes({"decisions": {}})
    task = RecordTask(schema(4, 3), 2.0, 1000)
    for collection in (CollectionConfig(kinds=kinds), CollectionConfig(task=task)):
        assert "impressions" not in collection.kinds
        assert b"catalogue" not in collection.content
        read = CollectionConfig.parse(collection.content)
        assert read == collection
        assert read.content == collection.content


def test_a_document_without_anything_to_collect_is_refused() -> None:
    assert not CollectionConfig().kinds
    with pytest.raises(BadCollection, match=r"needs a catalogue, a kind of report or a course\."):
        CollectionConfig.parse(CollectionConfig().content)


def test_requests_are_kinds_of_the_catalogue_s_ads() -> None:
    kinds = kind_registry.kinds_from_sizes({"ad-requests": {"size": 8}, "clicks": {"size": 8}})
    collection = CollectionConfig(CATALOGUE, kinds)
    assert list(collection.requests) == ["ad-requests"]
    assert CollectionConfig.parse(collection.content) == collection
    other = kind_registry.kinds_from_sizes({"ad-slates": {"size": 7, "slate": 2}})
    for catalogue, wrong in ((None, kinds), (CATALOGUE, other)):
        with pytest.raises(BadParameter, match="kinds"):
            CollectionConfig(catalogue, wrong)


def test_kinds_are_as_catalogue_and_task_have_them() -> None:
    with pytest.raises(BadParameter, match="kinds"):
        CollectionConfig(CATALOGUE, kind_registry.kinds_from_sizes({"impressions": {"size": 7}}))


def test_minimum_and_protections_read_back_and_an_older_document_has_neither() -> None:
    stated = ReportProtection("KaryResponse", Guarantee(0.5, Neighbours.USER))
    made = CollectionConfig(CATALOGUE, minimum_batch=250, protections={"impressions": stated})
    read = CollectionConfig.parse(made.content)
    assert read == made
    assert read.terms == BatchTerms(250, {"impressions": stated})
    older = json.loads(made.content)
    for name in ("format", "minimum_batch", "protections"):
        del older[name]
    first = CollectionConfig.parse(json.dumps(older).encode())
    assert (first.minimum_batch, first.protections) == (None, {})


@batched(
    "change",
    [
        ({"minimum_batch": 0}, "minimum_batch has to be"),
        ({"minimum_batch": "100"}, "minimum_batch has to be"),
        ({"minimum_batch": True}, "minimum_batch has to be"),
        ({"format": 3}, "newer noisefloor"),
        ({"format": 0}, "format has to be"),
        ({"format": "2"}, "format has to be"),
        ({"protections": {"clicks": {}}}, "KeyError"),
        ({"protections": {"tea": STATED}}, "protections has to be of kinds"),
        ({"protections": {"impressions": {**STATED, "epsilon": -1}}}, "epsilon has to be"),
        ({"name": "tea"}, "A collection has"),
    ],
    label=str,
)
def test_a_document_with_wrong_terms_is_refused_by_name_and_rule(
    change: tuple[dict[str, object], str],
) -> None:
    fields, rule = change
    document = {**json.loads(CollectionConfig(CATALOGUE).content), **fields}
    with pytest.raises(BadCollection, match=rule):
        CollectionConfig.parse(json.dumps(document).encode())


def test_a_collection_may_raise_the_service_s_minimum_and_not_lower_it() -> None:
    plain = CollectionConfig(CATALOGUE)
    assert plain.at_least(100).minimum_batch == 100
    assert replace(plain, minimum_batch=500).at_least(100).minimum_batch == 500
    with pytest.raises(BadParameter, match="100 or more"):
        replace(plain, minimum_batch=99).at_least(100)


def test_only_the_first_collection_takes_frames_that_name_none_whatever_the_minimum() -> None:
    plain = CollectionConfig(CATALOGUE, minimum_batch=100)
    assert plain.frame_names == ("",)
    assert replace(plain, name="tea").frame_names == ("tea",)
    assert replace(plain, name="tea", minimum_batch=1).frame_names == ("tea",)
