"""How deep JSON nests, found without parsing it: a parser may fall over what is too deep."""

import re

_BRACKETS = b"[]{}"
_OTHERS = bytes(code for code in range(256) if code not in _BRACKETS)
# A text that never ends is taken to the end, or each of its quotes would be tried in turn.
_TEXTS = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)', re.DOTALL)


def is_deeper(data: bytes, most: int) -> bool:
    """Tell whether brackets ever nest deeper than ``most``; brackets within texts do not count."""
    if data.count(b"[") + data.count(b"{") <= most:
        return False  # the usual case, at the speed of counting
    depth = 0
    for code in _TEXTS.sub(b"", data).translate(None, _OTHERS):
        depth += 1 if code in b"[{" else -1
        if depth > most:
            return True
    return False
