"""The ad server hands out a catalogue known by its hash, and counts impressions exactly."""

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisefloor.errors import BadParameter, BadSnapshot, EpochOpen
from noisefloor.randomness import SeededSource, new_run
from noisefloor.roles import Ad, AdServer, Catalogue, FrameStatus, impressions_kind
from noisefloor.wire import encode_frame, symbol_kind

ADS = (Ad("shoes-1", 0, 1_500), Ad("books", 2), Ad("travel", 1, 20))
CATALOGUE = Catalogue(1, ADS)


def shown(epoch: int, indices: list[int], seed: int, ads: int = 3) -> bytes:
    with new_run():
        return encode_frame(impressions_kind(ads), epoch, np.array(indices), SeededSource(seed))


def test_equal_catalogues_have_equal_tags_and_any_change_gives_another() -> None:
    assert Catalogue(1, ADS).etag == CATALOGUE.etag
    others = [
        Catalogue(2, ADS),
        Catalogue(1, ADS[::-1]),
        Catalogue(1, ADS[:2]),
        Catalogue(1, (dataclasses.replace(ADS[0], price_floor_micros=1_501), *ADS[1:])),
        Catalogue(1, (dataclasses.replace(ADS[0], topic=3), *ADS[1:])),
    ]
    assert len({CATALOGUE.etag, *(other.etag for other in others)}) == 6
    assert CATALOGUE.etag.startswith('"') and CATALOGUE.etag.endswith('"')


def test_the_content_of_a_catalogue_lists_its_ads() -> None:
    listed = json.loads(CATALOGUE.content)["ads"]
    assert [ad["ad_id"] for ad in listed] == ["shoes-1", "books", "travel"]


@pytest.mark.parametrize(
    ("ad_id", "topic", "price_floor_micros"),
    [
        ("", 0, 0),
        ("A", 0, 0),
        ("<b>", 0, 0),
        ("a" * 65, 0, 0),
        ("a", -1, 0),
        ("a", 0, -1),
        ("a", 0, 0.5),
    ],
)
def test_impossible_ads_are_refused(ad_id: str, topic: int, price_floor_micros: int) -> None:
    with pytest.raises(BadParameter):
        Ad(ad_id, topic, price_floor_micros)


@pytest.mark.parametrize("ads", [(), (ADS[0], ADS[0])])
def test_impossible_catalogues_are_refused(ads: tuple[Ad, ...]) -> None:
    with pytest.raises(BadParameter, match="ads"):
        Catalogue(1, ads)


@given(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=9), max_size=8), st.data())
def test_impressions_are_counted_once_in_any_order(
    batches: list[list[int]], data: st.DataObject
) -> None:
    server = AdServer(CATALOGUE)
    frames = [shown(0, indices, seed) for seed, indices in enumerate(batches)]
    for frame in data.draw(st.permutations(frames + frames)):
        server.apply(frame)
    server.close(0)
    flat = [index for indices in batches for index in indices]
    assert server.impressions(0).tolist() == [flat.count(index) for index in range(3)]
    assert server.counters.is_conserved
    assert server.counters.duplicates == len(batches)


def test_impressions_of_an_open_epoch_are_not_released_and_late_ones_are_refused() -> None:
    server = AdServer(CATALOGUE, 5)
    assert server.apply(shown(5, [1], 0)).status is FrameStatus.COUNTED
    with pytest.raises(EpochOpen):
        server.impressions(5)
    server.close(5)
    assert server.apply(shown(5, [1], 1)).status is FrameStatus.LATE
    assert server.impressions(5).tolist() == [0, 1, 0]


def test_a_request_carries_an_ad_index_and_nothing_else() -> None:
    assert AdServer(CATALOGUE).kind.schema.names == ["symbol"]
    assert AdServer(CATALOGUE).kind == symbol_kind("impressions", 3)


def test_an_index_outside_the_catalogue_is_a_dead_letter() -> None:
    server = AdServer(CATALOGUE)
    assert server.apply(shown(0, [3], 0, ads=4)).status is FrameStatus.DEAD_LETTER


def test_a_restored_server_goes_on_counting() -> None:
    server = AdServer(CATALOGUE)
    server.apply(shown(0, [1, 1], 0))
    restored = AdServer.restore(server.snapshot(), CATALOGUE)
    assert restored.apply(shown(0, [1, 1], 0)).status is FrameStatus.DUPLICATE
    restored.apply(shown(0, [2], 1))
    restored.close(0)
    assert restored.impressions(0).tolist() == [0, 2, 1]
    with pytest.raises(BadSnapshot):
        AdServer.restore(server.snapshot(), Catalogue(1, ADS[:2]))
