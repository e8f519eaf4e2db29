"""The ledger on the server gives the answers of the ledger in memory, to many at once."""

import json
import math
from collections.abc import Callable, Iterator
from itertools import count as counting
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis import Redis

from noisefloor.accounting import Amount, Ledger, LedgerTerms
from noisefloor.errors import (
    BadParameter,
    BadSnapshot,
    BrokenChain,
    BudgetExceeded,
    ClockWentBack,
    IncompatibleGuarantees,
    LedgerAbsent,
    NoisefloorError,
    SpendConflict,
    UnlikeTerms,
)
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.publication import tensors
from noisefloor_services.ledger.redis_ledger import MOST_RELEASE_BYTES, RedisLedger
from noisefloor_services.ledger.terms import (
    LedgerKeys,
    ReleaseSealed,
    ReleaseUnspent,
)
from properties import examples

USER = Neighbours.USER
HALF = Guarantee(0.5, USER)
NOTHING = Guarantee.none("noise was never added", USER)
TERMS = LedgerTerms.of(2.0, 2e-6, neighbours=USER)
SUBJECTS = ("ann", "bob", "réclame")
_names = (f"l{number}" for number in counting())

costs = st.builds(
    Guarantee,
    st.sampled_from([0.0, 0.1, 0.3, 0.5, 1e-7, 1.5, 1e300]),
    st.just(USER),
    delta=st.sampled_from([0, 0, 1e-7, 1e-6, 1.0]),
)
spends = st.tuples(
    st.sampled_from(SUBJECTS),
    st.sampled_from(["id0", "id1", "id2", "id3", "id4"]),
    st.one_of(*[st.just(Guarantee(0.1, USER))] * 3, costs, st.just(NOTHING)),
    st.sampled_from(["clicks", "views"]),
    st.sampled_from([None, None, NOTHING, HALF, Guarantee(1e300, USER)]),
    st.sampled_from([1, 1, 2, 3, 1 << 32]),
)
histories = st.lists(spends, max_size=10)


@pytest.fixture(scope="module")
def client(url: str) -> Iterator["Redis"]:
    with Redis.from_url(url) as made:
        yield made


def a_ledger(client: "Redis", terms: LedgerTerms = TERMS) -> RedisLedger:
    return RedisLedger.create(client, next(_names), terms)


def answer(spend: Callable[..., object], arguments: Any) -> tuple[object, object]:
    """Return what a spend returned, or the error's type and, but for conflicts, its text."""
    try:
        return "entry", spend(*arguments)
    except SpendConflict:
        return "conflict", None
    except NoisefloorError as error:
        return type(error), str(error)


@examples(60)
@given(history=histories)
def test_any_history_has_the_answers_of_the_ledger_in_memory(
    client: "Redis", history: list[Any]
) -> None:
    ours, theirs = a_ledger(client), Ledger(2.0, 2e-6, neighbours=USER)
    for arguments in history:
        subject, _, cost, _, _, count = arguments
        assert ours.can_spend(subject, cost, count) == theirs.can_spend(subject, cost, count)
        assert answer(ours.spend, arguments) == answer(theirs.spend, arguments)
    assert ours.snapshot() == theirs.snapshot()
    assert ours.subjects() == theirs.subjects()
    for subject in SUBJECTS:
        for question in ("spent", "left", "entries", "proved", "what_spent", "why"):
            assert getattr(ours, question)(subject) == getattr(theirs, question)(subject)


@examples(30)
@given(first=histories, second=histories)
def test_a_restore_is_the_merge_of_the_ledger_in_memory_and_only_raises(
    client: "Redis", first: list[Any], second: list[Any]
) -> None:
    ours, theirs = a_ledger(client), Ledger(2.0, 2e-6, neighbours=USER)
    backup = Ledger(2.0, 2e-6, neighbours=USER)
    for arguments in first:
        answer(ours.spend, arguments)
        answer(theirs.spend, arguments)
    for arguments in second:
        answer(backup.spend, arguments)
    before = {subject: ours.spent(subject) for subject in SUBJECTS}
    unmerged = ours.snapshot()
    merged = answer(ours.restore, (backup.snapshot(),))
    if answer(theirs.merge, (backup.snapshot(),))[0] == "conflict":
        assert merged[0] == "conflict"
        assert ours.snapshot() == unmerged
    for subject in SUBJECTS:
        assert before[subject].fits(ours.spent(subject))
        assert ours.spent(subject) == theirs.spent(subject)
        assert ours.can_spend(subject, HALF) == theirs.can_spend(subject, HALF)
        assert ours.what_spent(subject) == theirs.what_spent(subject)
    assert ours.snapshot() == theirs.snapshot()


def test_what_is_wrong_is_refused_as_in_memory(client: "Redis") -> None:
    ledger = a_ledger(client)
    with pytest.raises(IncompatibleGuarantees):
        ledger.spend("ann", "x", Guarantee(0.1, Neighbours.BIT), "clicks")
    with pytest.raises(IncompatibleGuarantees):
        ledger.spend("ann", "x", Guarantee(0.1, USER, model=TrustModel.CENTRAL), "clicks")
    for wrong in (0, -1, math.nan, math.inf, 0.5, True):
        with pytest.raises(BadParameter):
            ledger.spend("ann", "x", HALF, "clicks", count=wrong)  # type: ignore[arg-type]  # on purpose
    for text in ("", "\ud800", "a" * 1025, 7):
        with pytest.raises(BadParameter):
            ledger.spend(text, "x", HALF, "clicks")  # type: ignore[arg-type]  # on purpose
    assert ledger.snapshot() == Ledger(2.0, 2e-6, neighbours=USER).snapshot()


@pytest.mark.parametrize(
    "other",
    [
        ("bob", "s", HALF, "clicks", None, 1),
        ("ann", "s", Guarantee(0.4, USER), "clicks", None, 1),
        ("ann", "s", Guarantee(1e300, USER), "clicks", None, 1),
        ("ann", "s", HALF, "views", None, 1),
        ("ann", "s", HALF, "clicks", NOTHING, 1),
        ("ann", "s", HALF, "clicks", None, 2),
    ],
)
def test_one_id_is_one_spend(client: "Redis", other: Any) -> None:
    ledger = a_ledger(client)
    first = ledger.spend("ann", "s", HALF, "clicks")
    before = ledger.snapshot()
    with pytest.raises(SpendConflict):
        ledger.spend(*other)
    assert ledger.snapshot() == before
    assert ledger.spend("ann", "s", HALF, "clicks") == first
    assert ledger.spent("ann") == Amount(500_000)
    assert ledger.spent("bob") == Amount(0)
    backup = Ledger(2.0, 2e-6, neighbours=USER)
    backup.spend("ann", "fresh", HALF, "clicks")
    if answer(backup.spend, other)[0] == "entry":
        with pytest.raises(SpendConflict):
            ledger.restore(backup.snapshot())
        assert ledger.snapshot() == before
        assert ledger.spent("ann") == Amount(500_000)


def test_units_are_exact_up_to_the_largest_budget(client: "Redis") -> None:
    terms = LedgerTerms(Amount(10**15), USER)
    ledger = a_ledger(client, terms)
    ledger.spend("ann", "most", Guarantee(1e9 - 1e-6, USER), "clicks")
    assert ledger.left("ann") == Amount(1)
    with pytest.raises(BudgetExceeded):
        ledger.spend("ann", "two", Guarantee(2e-6, USER), "clicks")
    ledger.spend("ann", "one", Guarantee(1e-6, USER), "clicks")
    assert ledger.left("ann") == Amount(0)
    for wrong in (Amount(10**15 + 1), Amount(0, 10**18 + 1), Amount(-1)):
        with pytest.raises(BadParameter, match="in \\[0"):
            LedgerTerms(wrong, USER)
    text = "x" * 1024
    small = a_ledger(client)
    assert small.spend("ann", text, Guarantee(0.1, USER), "clicks").spend_id == text
    with pytest.raises(BadParameter, match="spend_id"):
        small.spend("ann", text + "x", Guarantee(0.1, USER), "clicks")


def forge(client: "Redis", name: str, place: int, change: Callable[[bytes], bytes]) -> None:
    """Change one record of ann's, as somebody could who has every right on the server."""
    log = LedgerKeys(name).log("ann")
    stored = client.lindex(log, place)
    assert isinstance(stored, bytes)
    client.lset(log, place, change(stored))  # type: ignore[arg-type]  # bytes are taken


def test_a_record_that_is_missing_changed_or_swapped_is_named(client: "Redis") -> None:
    def three() -> tuple[RedisLedger, str]:
        ledger = RedisLedger.create(client, name := next(_names), TERMS)
        for spend_id in "abc":
            ledger.spend("ann", spend_id, Guarantee(0.1, USER), "clicks")
        return ledger, name

    ledger, name = three()
    assert ledger.account("ann").spent("ann") == ledger.spent("ann") == Amount(300_000)
    forge(client, name, 1, lambda stored: stored.replace(b"[100000,0]", b"[000001,0]"))
    with pytest.raises(BrokenChain, match="record 2 cannot be used"):
        ledger.verify("ann")
    ledger, name = three()
    forge(client, name, 1, lambda stored: stored.replace(b'"clicks"', b'"views"'))
    with pytest.raises(BrokenChain, match="record 3 does not follow: the record before it was"):
        ledger.why("ann")
    ledger, name = three()
    log = LedgerKeys(name).log("ann")
    first, second = client.lrange(log, 0, 1)
    for place, stored in ((0, second), (1, first)):
        client.lset(log, place, stored)  # type: ignore[arg-type]  # bytes are taken
    with pytest.raises(BrokenChain, match="record 1 says that it is record 2: one is missing"):
        ledger.entries("ann")
    ledger, name = three()
    client.lrem(LedgerKeys(name).log("ann"), 1, client.lindex(LedgerKeys(name).log("ann"), 1))  # type: ignore[arg-type]
    with pytest.raises(BrokenChain, match="record 2 says that it is record 3: one is missing"):
        ledger.snapshot()
    with pytest.raises(BrokenChain, match="record 2 says that it is record 3: one is missing"):
        RedisLedger.open(client, name, TERMS).spend("ann", "d", HALF, "clicks")
    assert client.llen(LedgerKeys(name).log("ann")) == 2
    ledger, name = three()
    client.rpop(LedgerKeys(name).log("ann"))
    with pytest.raises(LedgerAbsent):  # the client has seen it
        ledger.spend("ann", "d", HALF, "clicks")


def test_a_clock_that_went_back_spends_nothing(client: "Redis") -> None:
    times = iter([1_000.0, 2_000.0, 1_999.0, 1_999.0, 2_000.0])
    ledger = RedisLedger.create(client, next(_names), TERMS, lambda: next(times))
    ledger.spend("ann", "a", HALF, "clicks")
    ledger.spend("ann", "b", HALF, "clicks")
    with pytest.raises(ClockWentBack, match=r"1970-01-01T00:33:19Z.*nothing was spent"):
        ledger.spend("ann", "c", HALF, "clicks")
    assert ledger.spent("ann") == Amount(1_000_000)
    assert ledger.spend("ann", "b", HALF, "clicks").spend_id == "b"  # a retry needs no time
    ledger.spend("ann", "c", HALF, "clicks")


def test_a_dry_run_costs_nothing_and_says_so(client: "Redis") -> None:
    ledger = a_ledger(client)
    before = ledger.snapshot()
    found = ledger.would_spend("ann", HALF, 4)
    assert found.is_allowed
    assert str(found) == (
        "Dry run, nothing was spent: epsilon 2.000000 would be accepted; "
        "epsilon 0.000000, delta 2e-06 would be left."
    )
    refused = ledger.would_spend("ann", HALF, 5)
    assert not refused.is_allowed
    assert "nothing was spent" in str(ledger.would_spend("ann", NOTHING))
    assert ledger.snapshot() == before


def test_a_release_needs_a_spend_is_kept_once_and_returned_for_ever(client: "Redis") -> None:
    ledger = a_ledger(client)
    with pytest.raises(ReleaseUnspent):
        ledger.publish("s", b"noise")
    assert ledger.published("s") is None
    ledger.spend("ann", "s", HALF, "clicks")
    assert ledger.published("s") is None
    assert ledger.publish("s", b"") == b""
    assert ledger.publish("s", b"drawn again") == b""
    assert ledger.published("s") == b""
    with pytest.raises(BadParameter):
        ledger.publish("s", b"a" * (MOST_RELEASE_BYTES + 1))
    assert MOST_RELEASE_BYTES == tensors.MOST_RELEASE_BYTES  # what methods refuse before a charge


def test_nothing_expires(client: "Redis") -> None:
    ledger = a_ledger(client)
    ledger.spend("ann", "s", HALF, "clicks")
    ledger.publish("s", b"noise")
    keys = list(client.scan_iter("noisefloor:{ledger-*"))
    assert keys
    assert {client.ttl(key) for key in keys} == {-1}


def test_a_restored_spend_is_never_drawn_again(client: "Redis") -> None:
    old, new = a_ledger(client), a_ledger(client)
    for name in ("with", "without"):
        old.spend("ann", name, HALF, "clicks")
    old.publish("with", b"noise")
    assert new.restore(old.snapshot(), {"with": b"noise"}) == 2
    assert new.spent("ann") == old.spent("ann")
    assert new.publish("with", b"other") == b"noise"
    with pytest.raises(ReleaseSealed):
        new.publish("without", b"other")
    assert new.restore(old.snapshot()) == 0
    with pytest.raises(SpendConflict):
        new.restore(old.snapshot(), {"with": b"another"})
    assert new.published("with") == b"noise"


def test_a_backup_of_another_ledger_or_a_forged_one_is_refused(client: "Redis") -> None:
    ledger = a_ledger(client)
    with pytest.raises(BadSnapshot, match="budget"):
        ledger.restore(Ledger(3.0, neighbours=USER).snapshot())
    rich = Ledger(2.0, 2e-6, neighbours=USER)
    rich.spend("ann", "s", HALF, "clicks")
    outer = json.loads(rich.snapshot())
    outer["body"]["entries"][0]["debited"] = [1, 0]
    forged = json.dumps(outer, sort_keys=True, separators=(",", ":")).encode()
    with pytest.raises(BadSnapshot, match="checksum"):
        ledger.restore(forged)
    assert ledger.subjects() == []


def test_an_emptied_server_refuses_where_it_would_seem_unspent(client: "Redis") -> None:
    name = next(_names)
    ledger = RedisLedger.create(client, name, TERMS)
    ledger.spend("ann", "s", HALF, "clicks")
    client.delete(*client.scan_iter(f"noisefloor:{{ledger-{name}}}:*"))
    for refused in (lambda: ledger.spend("ann", "t", HALF, "clicks"), lambda: ledger.left("ann")):
        with pytest.raises(LedgerAbsent):
            refused()
    with pytest.raises(LedgerAbsent):
        RedisLedger.open(client, name, TERMS)
    another = RedisLedger.create(client, name, TERMS)
    for seen in range(2):
        with pytest.raises(LedgerAbsent):
            ledger.spend("ann", "t", HALF, "clicks")
        another.spend("ann", f"more-{seen}", HALF, "clicks")


def test_a_server_that_was_set_back_refuses_until_the_backup_is_restored(client: "Redis") -> None:
    name = next(_names)
    ledger = RedisLedger.create(client, name, TERMS)
    ledger.spend("ann", "s", HALF, "clicks")
    ledger.spend("ann", "t", HALF, "clicks")
    backup, keys = ledger.snapshot(), LedgerKeys(name)
    client.hdel(keys.places, "t")
    client.rpop(keys.log("ann"))
    again = RedisLedger.open(client, name, TERMS, seen=ledger.entries_seen)
    for one in (ledger, again):
        with pytest.raises(LedgerAbsent):
            one.spend("ann", "u", HALF, "clicks")
    assert again.restore(backup) == 1
    again.spend("ann", "u", HALF, "clicks")
    assert again.spent("ann") == Amount(1_500_000)


def test_terms_names_and_servers_are_checked(client: "Redis", url: str) -> None:
    name = next(_names)
    RedisLedger.create(client, name, TERMS)
    assert RedisLedger.open(client, name, TERMS).budget == TERMS.budget
    with pytest.raises(UnlikeTerms):
        RedisLedger.create(client, name, LedgerTerms.of(3.0, 2e-6, neighbours=USER))
    with pytest.raises(BadParameter):
        RedisLedger.create(client, "no such {name}", TERMS)
    with Redis.from_url(url, decode_responses=True) as texts, pytest.raises(BadParameter):
        RedisLedger.open(texts, name, TERMS)
    client.config_set("maxmemory-policy", "allkeys-lru")
    try:
        with pytest.raises(UnlikeTerms, match="evicts"):
            RedisLedger.open(client, name, TERMS)
    finally:
        client.config_set("maxmemory-policy", "noeviction")
