"""A token admits one batch, once, under any race; the server keeps no token."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from redis import Redis

from noisefloor.errors import BadParameter
from noisefloor.wire.messages.ad_serving import MOST_TOKENS
from noisefloor_services.ad_server.report_tokens import ReportTokens


def test_a_token_admits_one_batch_and_its_retry(client: "Redis") -> None:
    tokens = ReportTokens(client, 0)
    first, second = tokens.issue(2)
    assert tokens.spend(first, b"batch-a")
    assert tokens.spend(first, b"batch-a")
    assert not tokens.spend(first, b"batch-b")
    assert tokens.spend(second, b"batch-a")
    assert not ReportTokens(client, 1).spend(second, b"batch-a")
    for wrong in ("", "x" * 43, first + "x", first[:-1], "\ud800"):
        assert not tokens.spend(wrong, b"batch-a")


def test_of_many_who_race_one_is_admitted(client: "Redis") -> None:
    tokens = ReportTokens(client, 2)
    (token,) = tokens.issue(1)
    with ThreadPoolExecutor(16) as pool:
        admitted = list(pool.map(lambda number: tokens.spend(token, b"%d" % number), range(64)))
    assert sum(admitted) == 1


def test_the_server_holds_hashes_and_none_that_links_two_tokens(client: "Redis") -> None:
    tokens = ReportTokens(client, 3)
    issued = tokens.issue(2)
    for token in issued:
        tokens.spend(token, b"the same batch")
    stored = client.hgetall("noisefloor:{tokens}:3")
    assert len(set(stored.values())) == 2
    flat = repr(stored)
    assert not any(token in flat for token in issued)
    assert "the same batch" not in flat


def test_there_are_no_more_than_there_may_be(client: "Redis") -> None:
    tokens = ReportTokens(client, 4, most=3)
    issued = tokens.issue(3)
    tokens.spend(issued[0], b"a")
    assert tokens.issue(1) == []
    with pytest.raises(BadParameter):
        tokens.issue(MOST_TOKENS + 1)
    tokens.retire()
    assert not tokens.spend(issued[1], b"b")
    assert not tokens.spend(issued[0], b"a")
