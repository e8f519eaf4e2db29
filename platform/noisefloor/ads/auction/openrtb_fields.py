"""Which fields a bid request may have, and what each has to be; everything else is refused.

The fields are a small part of OpenRTB 2.6. A form is as narrow as its use allows: what fits no
more than its purpose cannot carry anything else.

What a bid request may never hold: the fields of OpenRTB that tell one person from another.

Some are identifiers by design (``buyeruid``, ``ifa``), some become one together (``ua``, ``os``,
``ppi``), some are addresses that carry one (``page``, ``ref``), and some link the requests of one
page view (``tid``). They are refused by name wherever they stand, inside ``ext`` as well.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from noisefloor.checks import LARGEST_EPSILON, SMALLEST_EPSILON
from noisefloor.errors import OutOfDomain

MOST_DEPTH = 12
"""Deeper than any request goes; what is nested deeper is refused before it is walked."""

_PLAIN = re.compile(r"[A-Za-z0-9_]{1,32}", re.ASCII)

_PERSON = "about the person"
_DEVICE_ID = "an id of the device"
_FINGERPRINT = "part of a fingerprint"
_PLACE = "a place finer than a country"
_ADDRESS = "an address that may carry an id"
_LINK = "a link between requests"
_STRING = "a consent string, of which many are rare"

_NAMES = {
    _PERSON: (
        "user buyeruid buyerid eids eid uids uid customdata yob gender age keywords kwarray "
        "email phone userid user_id inserter matcher atype"
    ),
    _DEVICE_ID: (
        "ifa ifv idfa idfv gaid aaid lgudid ip ipv6 "
        "didsha1 didmd5 dpidsha1 dpidmd5 macsha1 macmd5 mac imei"
    ),
    _FINGERPRINT: (
        "ua sua browsers platform architecture bitness make model os osv hwv ppi pxratio js "
        "geofetch flashver language langb carrier mccmnc connectiontype ifa_type atts"
    ),
    _PLACE: (
        "lat lon accuracy lastfix ipservice region regionfips104 metro city zip utcoffset type"
    ),
    _ADDRESS: "page ref search url domain bundle storeurl",
    _LINK: "tid pchain sessionid session_id sessiondepth impdepth dt tagid fpid cookie",
    _STRING: "consent gpp gpp_sid us_privacy addtl_consent",
}

IDENTIFIERS: Mapping[str, str] = MappingProxyType(
    {name: reason for reason, names in _NAMES.items() for name in names.split()}
)
"""Why each name is refused, read after the name: ``is an id of the device``."""


def printable_name(name: object) -> str:
    """Return a field's name for an error; one that is odd may itself be a value, and is not."""
    return name if isinstance(name, str) and _PLAIN.fullmatch(name) else "<name>"


def find_identifiers(value: object, path: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield the path of each field that is refused by name, and why; the innermost first.

    Names are compared without case.
    """
    if depth > MOST_DEPTH:
        yield path, f"nested deeper than {MOST_DEPTH}"
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            here = f"{path}.{printable_name(name)}" if path else printable_name(name)
            yield from find_identifiers(inner, here, depth + 1)
            if str(name).lower() in IDENTIFIERS:
                yield here, IDENTIFIERS[str(name).lower()]
    elif isinstance(value, list | tuple):
        for place, inner in enumerate(value):
            yield from find_identifiers(inner, f"{path}[{place}]", depth + 1)


PROVIDER = "noisefloor"
"""Who made the segment; also the name of the extension."""

IMPRESSION = "1"
"""The id of the one impression that a request offers."""

MICROS_PER_CPM = 1000
"""Floors of OpenRTB are in units for a thousand impressions, ours in millionths for one."""

MOST_SYMBOLS = 1 << 20
MOST_FLOOR = 10**12
MOST_TMAX = 10_000
MOST_SIDE = 10_000
MOST_LISTED = 64

_REQUEST_ID = re.compile(r"[0-9a-f]{32}", re.ASCII)
_NUMBER = re.compile(r"0|[1-9][0-9]{0,6}", re.ASCII)
CURRENCY = re.compile(r"[A-Z]{3}", re.ASCII)
_COUNTRY = re.compile(r"[A-Z]{3}", re.ASCII)
CATEGORY = re.compile(r"[A-Z]{0,3}[0-9]{1,4}(-[0-9]{1,3})?", re.ASCII)
_DOMAIN = re.compile(r"([a-z0-9-]{1,63}\.){1,4}[a-z]{2,24}", re.ASCII)


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A text or a number, and what is said of one that fails."""

    is_right: Callable[[object], bool]
    otherwise: str


@dataclass(frozen=True, slots=True)
class _Items:
    """A list of n."""

    rule: "_Shape | _Leaf"
    most: int = 1


@dataclass(frozen=True, slots=True)
class _Field:
    """One field: what it has to be, and whether it has to be there."""

    rule: "_Shape | _Items | _Leaf"
    is_required: bool = False


_Shape = Mapping[str, _Field]


def check_shape(request: object) -> None:
    """Refuse what is not listed, is missing, or is not what it has to be.

    Raises:
        OutOfDomain: Names the path and the rule, and never shows the value.
    """
    _check(request, _REQUEST, "")
    assert isinstance(request, dict)  # noqa: S101  it has that shape
    carried = request["site"].get("content", {}).get("data")
    if carried and int(carried[0]["segment"][0]["id"]) >= carried[0]["ext"][PROVIDER]["symbols"]:
        raise _refused("site.content.data[0].segment[0].id", "is not one of the symbols")


def _refused(path: str, rule: str) -> OutOfDomain:
    return OutOfDomain(f"Bid request: {path or 'the whole'} {rule}.")


def _check(value: object, rule: "_Shape | _Items | _Leaf", path: str) -> None:
    if isinstance(rule, _Items):
        if not isinstance(value, list) or not 1 <= len(value) <= rule.most:
            raise _refused(path, f"is not a list of 1 to {rule.most}")
        for place, item in enumerate(value):
            _check(item, rule.rule, f"{path}[{place}]")
    elif isinstance(rule, _Leaf):
        if not rule.is_right(value):
            raise _refused(path, rule.otherwise)
    else:
        _check_fields(value, rule, path)


def _check_fields(value: object, shape: _Shape, path: str) -> None:
    if not isinstance(value, dict):
        raise _refused(path, "is not an object")
    start = f"{path}." if path else ""
    for name in value:
        if name not in shape:
            raise _refused(f"{start}{printable_name(name)}", "is not a field that may be sent")
    for name, field in shape.items():
        if name in value:
            _check(value[name], field.rule, f"{start}{name}")
        elif field.is_required:
            raise _refused(f"{start}{name}", "is missing")


def _text(form: re.Pattern[str]) -> _Leaf:
    return _Leaf(
        lambda value: isinstance(value, str) and form.fullmatch(value) is not None,
        f"does not match {form.pattern}",
    )


def _exactly(text: str) -> _Leaf:
    return _Leaf(lambda value: value == text, f"is not {text!r}")


def _whole(least: int, most: int) -> _Leaf:
    return _Leaf(
        lambda value: type(value) is int and least <= value <= most,
        f"is not a whole number in [{least}, {most}]",
    )


def _is_real(value: object, least: float, most: float) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return least <= value <= most


def _is_floor(value: object) -> bool:
    """Say whether a floor is a whole number of micros: what is finer could carry something."""
    if not isinstance(value, int | float) or not _is_real(value, 0, MOST_FLOOR / MICROS_PER_CPM):
        return False
    return round(value * MICROS_PER_CPM) / MICROS_PER_CPM == value


_EPSILON = _Leaf(
    lambda value: _is_real(value, SMALLEST_EPSILON, LARGEST_EPSILON),
    f"is not a number in [{SMALLEST_EPSILON:g}, {LARGEST_EPSILON:g}]",
)
_SEGMENT: _Shape = {"id": _Field(_text(_NUMBER), True)}
_TERMS: _Shape = {
    "epsilon": _Field(_EPSILON, True),
    "symbols": _Field(_whole(1, MOST_SYMBOLS), True),
}
_DATA: _Shape = {
    "name": _Field(_exactly(PROVIDER), True),
    "segment": _Field(_Items(_SEGMENT), True),
    "ext": _Field({PROVIDER: _Field(_TERMS, True)}, True),
}
_SITE: _Shape = {
    "cattax": _Field(_whole(1, MOST_LISTED)),
    "cat": _Field(_Items(_text(CATEGORY))),
    "content": _Field({"data": _Field(_Items(_DATA), True)}),
}
_IMP: _Shape = {
    "id": _Field(_exactly(IMPRESSION), True),
    "banner": _Field(
        {
            "w": _Field(_whole(1, MOST_SIDE), True),
            "h": _Field(_whole(1, MOST_SIDE), True),
        },
        True,
    ),
    "bidfloor": _Field(_Leaf(_is_floor, "is not a floor in whole micros"), True),
    "bidfloorcur": _Field(_text(CURRENCY), True),
    "secure": _Field(_whole(0, 1)),
}
_REQUEST: _Shape = {
    "id": _Field(_text(_REQUEST_ID), True),
    "imp": _Field(_Items(_IMP), True),
    "site": _Field(_SITE, True),
    "device": _Field(
        {
            "devicetype": _Field(_whole(1, 8)),
            "geo": _Field({"country": _Field(_text(_COUNTRY), True)}),
        }
    ),
    "at": _Field(_whole(1, 2), True),
    "tmax": _Field(_whole(1, MOST_TMAX), True),
    "cur": _Field(_Items(_text(CURRENCY)), True),
    "cattax": _Field(_whole(1, MOST_LISTED)),
    "bcat": _Field(_Items(_text(CATEGORY), MOST_LISTED)),
    "badv": _Field(_Items(_text(_DOMAIN), MOST_LISTED)),
    "regs": _Field({"gdpr": _Field(_whole(0, 1), True), "coppa": _Field(_whole(0, 1))}, True),
}
