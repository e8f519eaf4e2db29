"""Canonical JSON: the same value gives the same bytes, so that it can be hashed and compared.

Keys are sorted, there are no blanks, and every character outside ASCII is escaped.
"""

import json


def canonical_json(value: object, *, allow_nan: bool = True) -> bytes:
    """Write a value as canonical JSON.

    Args:
        value: Anything that ``json.dumps`` takes.
        allow_nan: Whether NaN and the infinities are written, which is no JSON; ValueError
            otherwise. Checksums of untrusted bytes need it: a forged snapshot that holds NaN has
            to fail by its checksum, as every other one.
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=allow_nan)
    return text.encode("ascii")
