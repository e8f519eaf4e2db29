"""What a bid request may never hold: the fields of OpenRTB that tell one person from another.

Some are identifiers by design (``buyeruid``, ``ifa``), some become one together (``ua``, ``os``,
``ppi``), some are addresses that carry one (``page``, ``ref``), and some link the requests of one
page view (``tid``). They are refused by name wherever they stand, inside ``ext`` as well.
"""

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

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


def shown(name: object) -> str:
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
            here = f"{path}.{shown(name)}" if path else shown(name)
            yield from find_identifiers(inner, here, depth + 1)
            if str(name).lower() in IDENTIFIERS:
                yield here, IDENTIFIERS[str(name).lower()]
    elif isinstance(value, list | tuple):
        for place, inner in enumerate(value):
            yield from find_identifiers(inner, f"{path}[{place}]", depth + 1)
