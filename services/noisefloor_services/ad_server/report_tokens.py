"""One-use tokens for reports: each admits one report.

What this gives: a bound on how many reports get in, whatever a flood of false devices sends. The
server keeps hashes only; a token is spent in one atomic step, bound to its batch, so that a retry
of the same batch is admitted and a second batch is not.

What it does not give: anonymity towards the issuer of the tokens. They are plain random texts,
not blind signatures: an issuer who writes down who got which token can tell whose report came.
Here nothing of the kind is written down, but a device has to take that on trust; it should ask for
tokens over another connection, and earlier, than it reports. Privacy Pass (Davidson et al. 2018)
is the form that needs no such trust.
"""

import hashlib
import re
import secrets
from typing import Any

from redis import Redis

from noisefloor.checks import check_count
from noisefloor.wire.messages import MOST_TOKENS

_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)

_SPEND = """
local batch = redis.call('HGET', KEYS[1], ARGV[1])
if not batch then return 0 end
if batch == '' then
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
  return 1
end
return batch == ARGV[2] and 1 or 0
"""
_ISSUE = """
local count = redis.call('HLEN', KEYS[1])
if count + #ARGV - 1 > tonumber(ARGV[1]) then return 0 end
for at = 2, #ARGV do redis.call('HSETNX', KEYS[1], ARGV[at], '') end
return 1
"""


class ReportTokens:
    """The tokens of one epoch; another epoch has others.

    Args:
        client: One that returns bytes.
        epoch: Whose reports they admit.
        most: How many there may be, spent ones included: the bound on an epoch's reports.
        namespace: Of the collection.
    """

    __slots__ = ("_client", "_issue", "_key", "_most", "_spend")

    def __init__(
        self,
        client: "Redis",
        epoch: int,
        *,
        most: int = 10_000_000,
        namespace: str = "noisefloor",
    ) -> None:
        self._client = client
        self._key = f"{namespace}:{{tokens}}:{check_count(epoch, 'epoch', least=0)}"
        self._most = check_count(most, "most")
        self._issue = client.register_script(_ISSUE)
        self._spend = client.register_script(_SPEND)

    def issue(self, count: int) -> list[str]:
        """Make new tokens; none at all if there would be more than there may be."""
        check_count(count, "count", most=MOST_TOKENS)
        made = [secrets.token_urlsafe(32) for _ in range(count)]
        hashes: list[bytes | str | int] = [self._most, *map(_hash, made)]
        return made if self._issue(keys=[self._key], args=hashes) == 1 else []

    def spend(self, token: str, batch_id: bytes) -> bool:
        """Admit a batch by a token, once; the same batch may come again with the same token."""
        if not _TOKEN.fullmatch(token):
            return False
        # The batch's id is kept as a hash under the token: enough to know a retry by.
        bound = hashlib.blake2b(batch_id, key=token.encode(), digest_size=16).digest()
        answer: Any = self._spend(keys=[self._key], args=[_hash(token), bound])  # Any: untyped
        return bool(answer == 1)

    def retire(self) -> None:
        """Forget the epoch's tokens; none of them admits anything afterwards."""
        self._client.unlink(self._key)


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
