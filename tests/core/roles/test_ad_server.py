"""The ad server hands out a catalogue known by its hash; impressions and requests count once."""

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisefloor.ads.auction import bid_requests_kind
from noisefloor.ads.delivery import ad_requests_kind, ad_slates_kind
from noisefloor.errors import BadParameter, BadSnapshot, EpochOpen
from noisefloor.randomness import SeededSource, new_run
from noisefloor.roles import Ad, AdServer, Catalogue, FrameStatus, impressions_kind
from noisefloor.wire import Kind, Symbols, encode_frame, record_kind, symbol_kind

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


REQUESTS = (ad_requests_kind(3), bid_requests_kind(3, 2))


def requested(epoch: int, indices: list[int], seed: int) -> bytes:
    with new_run():
        return encode_frame(REQUESTS[0], epoch, np.array(indices), SeededSource(seed))


@given(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=9), max_size=8), st.data())
def test_requests_are_counted_once_in_any_order_apart_from_impressions(
    batches: list[list[int]], data: st.DataObject
) -> None:
    server = AdServer(CATALOGUE, requests=REQUESTS)
    frames = [requested(0, indices, seed) for seed, indices in enumerate(batches)]
    for frame in data.draw(st.permutations(frames + frames)):
        server.apply_requests(frame)
    server.close(0)
    flat = [index for indices in batches for index in indices]
    tally, rows = server.requests("ad-requests", 0)
    assert (tally.tolist(), rows) == ([flat.count(index) for index in range(3)], len(flat))
    assert server.counters.duplicates == len(batches)
    assert server.impressions(0).tolist() == [0, 0, 0]


def test_slates_and_bid_requests_are_counted_by_ad_symbol_and_topic() -> None:
    kinds = (ad_slates_kind(3, 2), bid_requests_kind(3, 2))
    server = AdServer(CATALOGUE, requests=kinds)
    slates, sold = np.array([[0, 1], [0, 2]]), {"symbol": [3, 1, 1], "topic": [0, 1, 1]}
    with new_run():
        server.apply_requests(encode_frame(kinds[0], 0, slates, SeededSource(0)))
        server.apply_requests(encode_frame(kinds[1], 0, sold, SeededSource(1)))
    server.close(0)
    assert server.requests("ad-slates", 0)[0].tolist() == [2, 1, 1]
    assert server.requests("bid-requests", 0)[0].tolist() == [0, 2, 0, 1, 1, 2]


def test_requests_close_with_the_day() -> None:
    server = AdServer(CATALOGUE, requests=REQUESTS)
    assert server.apply_requests(requested(0, [1], 0)).status is FrameStatus.COUNTED
    with pytest.raises(EpochOpen):
        server.requests("ad-requests", 0)
    server.close(0)
    assert server.apply_requests(requested(0, [1], 1)).status is FrameStatus.LATE
    assert server.apply_requests(requested(1, [1], 2)).status is FrameStatus.COUNTED
    assert server.requests("ad-requests", 0)[0].tolist() == [0, 1, 0]
    assert server.requests("bid-requests", 0)[1] == 0


def test_only_requests_are_taken_as_requests() -> None:
    server = AdServer(CATALOGUE, requests=REQUESTS)
    assert server.apply_requests(shown(0, [1], 0)).status is FrameStatus.DEAD_LETTER
    assert server.apply(shown(0, [1], 0)).status is FrameStatus.COUNTED
    assert server.apply(requested(0, [1], 1)).status is FrameStatus.COUNTED
    assert AdServer(CATALOGUE).apply(requested(0, [1], 1)).status is FrameStatus.DEAD_LETTER
    assert server.counters.is_conserved


def test_requests_are_restored() -> None:
    server = AdServer(CATALOGUE, requests=REQUESTS)
    server.apply_requests(requested(0, [1, 1], 0))
    restored = AdServer.restore(server.snapshot(), CATALOGUE, requests=REQUESTS)
    assert restored.apply_requests(requested(0, [1, 1], 0)).status is FrameStatus.DUPLICATE
    restored.close(0)
    assert restored.requests("ad-requests", 0)[1] == 2
    with pytest.raises(BadSnapshot):
        AdServer.restore(server.snapshot(), CATALOGUE)


@pytest.mark.parametrize(
    "kind",
    [
        ad_requests_kind(4),
        ad_slates_kind(4, 2),
        bid_requests_kind(2, 2),
        symbol_kind("clicks", 3),
        record_kind("ad-requests", {"symbol": Symbols(3)}),
    ],
)
def test_requests_are_for_the_ads_of_the_catalogue(kind: Kind) -> None:
    with pytest.raises(BadParameter):
        AdServer(CATALOGUE, requests=[kind])
