"""Bid requests: they have OpenRTB's shape, and no field for anybody."""

import itertools
import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisefloor.ads.auction.clearing import AuctionType
from noisefloor.ads.auction.openrtb import (
    MOST_BYTES,
    ReleasedSymbol,
    Slot,
    bid_request,
    check_request,
    read_request,
    released_of,
    write_request,
)
from noisefloor.ads.auction.openrtb_fields import (
    IDENTIFIERS,
    MICROS_PER_CPM,
    MOST_DEPTH,
    find_identifiers,
)
from noisefloor.errors import BadParameter, OutOfDomain
from noisefloor.randomness import SecureSource, SeededSource

SECRET = "5f2b7c1e-secret"  # noqa: S105  stands for what may not pass

# Every field of OpenRTB 2.6 that says something about a person, a device or a place.
KNOWN_TO_OPENRTB = [
    *(f"user.{name}" for name in "id buyeruid keywords kwarray customdata geo data".split()),
    *(f"user.{name}" for name in "consent eids yob gender ext".split()),
    *(f"user.eids.{name}" for name in "inserter source matcher mm uids".split()),
    *(f"user.eids.uids.{name}" for name in "id atype".split()),
    *(f"user.geo.{name}" for name in "lat lon country zip".split()),
    *(f"device.{name}" for name in "ua sua ip ipv6 ifa dnt lmt".split()),
    *(f"device.{name}" for name in "didsha1 didmd5 dpidsha1 dpidmd5 macsha1 macmd5".split()),
    *(f"device.{name}" for name in "make model os osv hwv h w ppi pxratio js geofetch".split()),
    *(f"device.{name}" for name in "flashver language langb carrier mccmnc".split()),
    *(f"device.{name}" for name in "connectiontype ext".split()),
    *(f"device.sua.{name}" for name in "browsers platform mobile architecture model".split()),
    *(f"device.geo.{name}" for name in "lat lon type accuracy lastfix ipservice".split()),
    *(f"device.geo.{name}" for name in "region regionfips104 metro city zip utcoffset".split()),
    *(f"site.{name}" for name in "id name domain page ref search keywords kwarray".split()),
    *(f"site.content.{name}" for name in "id url title keywords".split()),
    *(f"source.{name}" for name in "tid pchain".split()),
    *(f"regs.{name}" for name in "gpp gpp_sid us_privacy".split()),
    *(f"app.{name}" for name in "id bundle storeurl".split()),
]


def sample(**changes: Any) -> dict[str, Any]:
    released = ReleasedSymbol(3, 20, 1.0)
    slot = Slot(category="IAB17-2", floor_micros=1234, blocked_domains=("example.com",))
    options: dict[str, Any] = {"country": "NLD", "device_type": 4} | changes
    return bid_request(released, slot, SecureSource(), **options)


def planted(path: str) -> dict[str, Any]:
    """Return a sample with a secret at a path, other fields beside it staying as they are."""
    request = sample()
    place: dict[str, Any] = request
    *objects, last = path.split(".")
    for name in objects:
        inner = place.setdefault(name, {})
        place = inner if isinstance(inner, dict) else place
    place[last] = SECRET
    return request


def test_a_request_has_the_fields_of_openrtb_and_no_others() -> None:
    request = sample()
    assert set(request) == {"id", "imp", "site", "device", "at", "tmax", "cur", "regs", "badv"}
    assert request["at"] == 2
    assert request["imp"] == [
        {
            "id": "1",
            "banner": {"w": 300, "h": 250},
            "bidfloor": 1.234,
            "bidfloorcur": "USD",
            "secure": 1,
        }
    ]
    assert request["device"] == {"devicetype": 4, "geo": {"country": "NLD"}}
    data = request["site"]["content"]["data"][0]
    assert data["segment"] == [{"id": "3"}]
    assert data["ext"] == {"noisefloor": {"epsilon": 1.0, "symbols": 20}}
    assert released_of(request) == ReleasedSymbol(3, 20, 1.0)


def test_two_requests_of_one_device_differ_in_a_random_id_only() -> None:
    first, second = sample(), sample()
    assert first.pop("id") != second.pop("id")
    assert first == second


def test_a_source_serves_one_request() -> None:
    source = SeededSource(1, "request")
    bid_request(None, Slot(), source)
    with pytest.raises(Exception, match="already gave its draws"):
        bid_request(None, Slot(), source)


def test_a_contextual_request_carries_no_segment() -> None:
    request = bid_request(None, Slot(), SecureSource(), rule=AuctionType.FIRST_PRICE)
    assert request["at"] == 1
    assert request["site"] == {}
    assert "device" not in request
    assert released_of(request) is None


def test_a_request_survives_the_wire() -> None:
    request = sample()
    assert read_request(write_request(request)) == request
    assert read_request(write_request(request).encode()) == request


@given(st.integers(0, 10**12))
def test_a_floor_comes_back_to_the_micro(floor: int) -> None:
    request = bid_request(None, Slot(floor_micros=floor), SecureSource())
    sent = read_request(write_request(request))
    assert round(sent["imp"][0]["bidfloor"] * MICROS_PER_CPM) == floor


@pytest.mark.parametrize("path", KNOWN_TO_OPENRTB)
def test_what_openrtb_knows_of_a_person_is_refused_by_its_path(path: str) -> None:
    request = planted(path)
    with pytest.raises(OutOfDomain) as caught:
        check_request(request)
    text = str(caught.value)
    assert SECRET not in text
    assert path in text or path.split(".")[0] in text
    with pytest.raises(OutOfDomain):
        read_request(json.dumps(request))
    with pytest.raises(OutOfDomain):
        write_request(request)


@pytest.mark.parametrize("name", sorted(IDENTIFIERS))
def test_every_identifier_is_found_wherever_it_stands(name: str) -> None:
    places = ["", "ext", "site.content.ext", "imp.0.ext", "regs.ext.x.1.y"]
    for where, written in itertools.product(places, (name, name.upper())):
        inner: Any = {written: SECRET}
        for part in reversed([part for part in where.split(".") if part]):
            inner = [{}, inner] if part == "1" else [inner] if part == "0" else {part: inner}
        found = list(find_identifiers(inner))
        assert len(found) == 1
        assert found[0][0].endswith(written)
        with pytest.raises(OutOfDomain, match="it may not be sent") as caught:
            check_request(sample() | inner)
        assert SECRET not in str(caught.value)


def test_the_innermost_identifier_is_named() -> None:
    with pytest.raises(OutOfDomain, match=r"user\.eids\[0\]\.uids is about the person"):
        check_request(sample() | {"user": {"eids": [{"source": "x", "uids": [{"id": SECRET}]}]}})
    with pytest.raises(OutOfDomain, match=r"device\.ifa is an id of the device"):
        check_request(sample() | {"device": {"ifa": SECRET}})


def test_a_name_that_may_be_a_value_is_not_repeated() -> None:
    with pytest.raises(OutOfDomain, match=r"ext\.<name>\.ifa is") as caught:
        check_request(sample() | {"ext": {f"{SECRET}@example.org": {"ifa": 1}}})
    assert SECRET not in str(caught.value)


def test_the_fields_of_a_request_are_not_among_the_identifiers() -> None:
    assert list(find_identifiers(sample())) == []


def change(path: list[str | int], value: object) -> dict[str, Any]:
    request = deepcopy(sample())
    place: Any = request
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return request


DATA: list[str | int] = ["site", "content", "data", 0]


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        (["id"], "alice", "id"),
        (["id"], 7, "id"),
        (["unknown"], SECRET, "unknown"),
        ([f"{SECRET}@"], 1, "<name>"),
        (["imp"], [], "imp"),
        (["imp"], {}, "imp"),
        (["imp", 0, "id"], "2", r"imp\[0\]\.id"),
        (["imp", 0, "bidfloor"], 0.00012345, "bidfloor"),
        (["imp", 0, "bidfloor"], -1, "bidfloor"),
        (["imp", 0, "bidfloor"], True, "bidfloor"),
        (["imp", 0, "banner"], {"w": 300}, "banner.h is missing"),
        (["imp", 0, "ext"], {}, "ext"),
        (["site"], [], "site"),
        (["site", "cat"], ["a whole sentence"], "cat"),
        ([*DATA, "segment", 0, "id"], "20", "segment"),
        ([*DATA, "segment", 0, "id"], "03", "segment"),
        ([*DATA, "segment", 0, "id"], SECRET, "segment"),
        ([*DATA, "segment"], [{"id": "1"}, {"id": "2"}], "segment"),
        ([*DATA, "name"], "somebody", "name"),
        ([*DATA, "ext", "noisefloor", "epsilon"], 0.0, "epsilon"),
        ([*DATA, "ext", "noisefloor", "epsilon"], "1", "epsilon"),
        (["device", "devicetype"], 99, "devicetype"),
        (["device", "geo", "country"], "Amsterdam", "country"),
        (["at"], 3, "at"),
        (["at"], True, "at"),
        (["tmax"], 0, "tmax"),
        (["cur"], ["USD", "EUR"], "cur"),
        (["badv"], ["not a domain"], "badv"),
        (["regs"], {}, "regs.gdpr is missing"),
    ],
)
def test_what_is_not_listed_or_not_in_form_is_refused(
    path: list[str | int], value: object, named: str
) -> None:
    with pytest.raises(OutOfDomain, match=named) as caught:
        check_request(change(path, value))
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("value", [None, 7, "text", [], [sample()]])
def test_only_an_object_is_a_request(value: object) -> None:
    with pytest.raises(OutOfDomain):
        check_request(value)


def test_deep_nesting_is_refused() -> None:
    inner: dict[str, Any] = {}
    for _ in range(MOST_DEPTH + 2):
        inner = {"ext": inner}
    with pytest.raises(OutOfDomain, match="nested deeper"):
        check_request(sample() | {"ext": inner})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "NaN",
        '{"id": NaN}',
        '{"id": "1", "id": "2"}',
        "[" * 10_000,
        b"\xff\xfe\x00",
        " " * (MOST_BYTES + 1),
        '{"id": 1e999}',
    ],
    ids=lambda text: repr(text[:12]),
)
def test_hostile_text_raises_one_error(text: str | bytes) -> None:
    with pytest.raises(OutOfDomain):
        read_request(text)


def test_a_name_that_comes_twice_is_refused_even_with_the_same_value() -> None:
    text = write_request(sample())
    doubled = text.replace('"tmax":120', '"tmax":120,"tmax":120')
    assert doubled != text
    with pytest.raises(OutOfDomain, match="twice"):
        read_request(doubled)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["id", "imp", "site", "ext", "x"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(JSON)
def test_whatever_comes_is_a_request_or_refused(value: object) -> None:
    with pytest.raises(OutOfDomain):  # none of these has all that a request needs
        check_request(value)


@pytest.mark.parametrize(
    "make",
    [
        lambda: ReleasedSymbol(20, 20, 1.0),
        lambda: ReleasedSymbol(0, 20, 0.0),
        lambda: Slot(currency="usd"),
        lambda: Slot(category="my private page"),
        lambda: Slot(floor_micros=-1),
        lambda: Slot(width=0),
    ],
)
def test_bad_parameters_are_refused(make: Any) -> None:
    with pytest.raises(BadParameter):
        make()


def test_a_bad_option_does_not_leave_as_a_request() -> None:
    with pytest.raises(OutOfDomain, match="country"):
        sample(country="Amsterdam-Noord")
