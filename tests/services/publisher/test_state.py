"""The publisher role on the server's ledger: charged, drawn, stored; the same bytes for ever."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from redis import Redis

from noisefloor.accounting import Amount, LedgerTerms
from noisefloor.errors import BudgetExceeded
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.randomness import SecureSource, Source
from noisefloor.roles.model_publisher import (
    ModelPublisher,
    PublicationMethod,
    PublicationState,
    ReleaseRequest,
)
from noisefloor_services.ledger.redis_ledger import RedisLedger
from valkeys import running_valkey

RECORD = Neighbours.RECORD_ADD_REMOVE
COST = Guarantee(0.25, RECORD, model=TrustModel.CENTRAL)


@pytest.fixture(scope="module")
def client() -> Iterator["Redis"]:
    with running_valkey() as address, Redis.from_url(address) as made:
        yield made


def release(_: ReleaseRequest, source: Source) -> bytes:
    return source.words(8).tobytes()


def a_publisher(client: "Redis", name: str) -> tuple[ModelPublisher, RedisLedger]:
    terms = LedgerTerms.of(1.0, neighbours=RECORD, model=TrustModel.CENTRAL)
    ledger = RedisLedger.create(client, name, terms)
    method = PublicationMethod("mean", "application/octet-stream", lambda _: COST, release)
    return ModelPublisher(ledger, ledger, [method], data_sets={"films"}), ledger


def test_a_publication_survives_its_publisher(client: "Redis") -> None:
    publisher, ledger = a_publisher(client, "one")
    request = ReleaseRequest("p-1", "films", "mean", COST)
    assert publisher.state(request) is PublicationState.UNKNOWN
    publisher.charge(request)
    assert publisher.state(request) is PublicationState.CHARGED
    made = publisher.publish(request, SecureSource())
    again, _ = a_publisher(client, "one")
    assert again.publish(request, SecureSource()).packed() == made.packed()
    assert again.artefact("p-1") == made
    assert ledger.spent("films") == Amount(250_000)


def test_many_who_ask_at_once_get_one_artefact_for_one_charge(client: "Redis") -> None:
    publisher, ledger = a_publisher(client, "two")
    request = ReleaseRequest("p-1", "films", "mean", COST)
    with ThreadPoolExecutor(12) as pool:
        packed = pool.map(lambda _: publisher.publish(request, SecureSource()).packed(), range(36))
        assert len(set(packed)) == 1
    assert ledger.spent("films") == Amount(250_000)
    for number in range(2, 5):
        publisher.publish(ReleaseRequest(f"p-{number}", "films", "mean", COST), SecureSource())
    with pytest.raises(BudgetExceeded):
        publisher.publish(ReleaseRequest("p-5", "films", "mean", COST), SecureSource())
    assert [line.release for line in ledger.what_spent("films")] == ["mean"]
