"""The publisher charges before it draws, stores before it answers, and never draws twice."""

import hashlib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisefloor.accounting import Amount, FileLedger, Ledger, LedgerTerms, SpendReceipt
from noisefloor.cards import SigningKey, check_card
from noisefloor.errors import (
    BadParameter,
    BadSnapshot,
    BudgetExceeded,
    LedgerAbsent,
    PublicationFailed,
    SpendConflict,
)
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.randomness import SecureSource, Source
from noisefloor.roles.artefact import Artefact, guarantee_in_words, unpack_artefact
from noisefloor.roles.model_publisher import (
    MemoryArtefactStore,
    ModelPublisher,
    PublicationMethod,
    PublicationState,
    ReleaseRequest,
    has_failed,
)
from properties import examples

RECORD = Neighbours.RECORD_ADD_REMOVE
HALF = Guarantee(0.5, RECORD, delta=1e-8, model=TrustModel.CENTRAL)
NONE = Guarantee.none("it publishes the truth", RECORD, TrustModel.CENTRAL)


class Killed(BaseException):
    """The process died here."""


class Press:
    """A method that counts its draws, and looks whether they are paid for."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.draws = 0
        self.is_killed = False
        self.fails = False

    def release(self, request: ReleaseRequest, source: Source) -> bytes:
        assert any(
            entry.spend_id == request.publication_id
            for entry in self.ledger.entries(request.data_set)
        )
        if self.is_killed:
            raise Killed
        self.draws += 1
        if self.fails:
            raise ArithmeticError("of the data")
        return source.words(4).tobytes()


def a_publisher(
    proved: Guarantee = HALF, *, is_experiment: bool = False, budget: float = 1.0
) -> tuple[ModelPublisher, Ledger, Press, MemoryArtefactStore]:
    ledger = Ledger(budget, 1e-5, neighbours=RECORD, model=TrustModel.CENTRAL)
    press, shelf = Press(ledger), MemoryArtefactStore()
    method = PublicationMethod("mean", "application/octet-stream", lambda _: proved, press.release)
    publisher = ModelPublisher(
        ledger, shelf, [method], data_sets={"films"}, is_experiment=is_experiment
    )
    return publisher, ledger, press, shelf


def a_request(name: str = "p-1", **changes: Any) -> ReleaseRequest:
    return ReleaseRequest(
        **{"publication_id": name, "data_set": "films", "method": "mean", "cost": HALF, **changes}
    )


def test_a_publication_goes_from_unknown_to_charged_to_stored() -> None:
    publisher, ledger, press, _ = a_publisher()
    request = a_request()
    assert publisher.state(request) is PublicationState.UNKNOWN
    assert publisher.artefact("p-1") is None
    publisher.charge(request)
    assert publisher.state(request) is PublicationState.CHARGED
    assert press.draws == 0
    made = publisher.publish(request, SecureSource())
    assert publisher.state(request) is PublicationState.STORED
    assert publisher.artefact("p-1") == made
    assert ledger.spent("films") == Amount.cost(HALF)


def test_a_retry_costs_nothing_draws_nothing_and_returns_the_same_bytes() -> None:
    publisher, ledger, press, _ = a_publisher()
    first = publisher.publish(a_request(), SecureSource())
    again = publisher.publish(a_request(), SecureSource())
    assert again.packed() == first.packed()
    assert again.etag == first.etag
    assert press.draws == 1
    assert len(ledger.entries("films")) == 1


def test_the_card_says_what_is_guaranteed_and_what_was_hashed() -> None:
    publisher, *_ = a_publisher()
    made = publisher.publish(a_request(parameters={"rows": 10}), SecureSource())
    assert made.card["software"] == {"name": "noisefloor", "version": version("noisefloor")}
    assert made.card["neighbours"] == "record-add-remove"
    assert (made.card["card_format"], made.card["signature"]) == (2, None)
    assert made.card["guarantee"] == guarantee_in_words(HALF)
    assert "whether any one record was in the data" in made.card["guarantee"]
    assert made.card["claims"]["verdict"] == "holds"
    assert made.card["claims"]["proved"]["epsilon"] == 0.5
    assert made.card["content_bytes"] == len(made.content) == 32
    assert made.card["parameters"] == {"rows": 10}
    assert made.card["request_sha256"] == a_request(parameters={"rows": 10}).digest


class Clock:
    """Unix time that is set by hand."""

    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def test_a_card_is_signed_and_has_time_place_and_totals_of_the_ledger(tmp_path: Path) -> None:
    clock, key = Clock(), SigningKey(bytes(32), "ours")
    terms = LedgerTerms.of(1.0, 1e-5, neighbours=RECORD, model=TrustModel.CENTRAL)
    ledger = FileLedger.create(tmp_path / "ledger", terms, clock=clock)
    method = PublicationMethod(
        "mean", "text/plain", lambda _: HALF, lambda request, source: request.digest.encode()
    )

    def publisher() -> ModelPublisher:
        store = MemoryArtefactStore()
        return ModelPublisher(ledger, store, [method], data_sets={"films"}, signer=key)

    first = publisher().publish(a_request(), SecureSource())
    card = check_card(first.card_bytes, [key.public])
    assert card == first.card == unpack_artefact(first.packed()).card
    assert card["publisher"] == {"name": "ours", "key": key.public.id}
    record = ledger.record("p-1")
    assert record is not None
    half = {"epsilon": 0.5, "delta": 1e-8}
    assert card["ledger"] == {
        "at": "2027-01-15T08:00:00Z",
        "position": 1,
        "head": record.digest,
        "cost": half,
        "total_so_far": half,
    }
    clock.now += 3600
    # Drawn again after a crash: the time is that of the charge, and so are all bytes of the card.
    assert publisher().publish(a_request(), SecureSource()).packed() == first.packed()
    second = publisher().publish(a_request("p-2"), SecureSource()).card
    assert (second["ledger"]["position"], second["ledger"]["at"]) == (2, "2027-01-15T09:00:00Z")
    assert second["ledger"]["total_so_far"]["epsilon"] == 1.0
    assert second["ledger"]["head"] == ledger.tail("films").head


class Forgetful(Ledger):
    """A ledger that says nothing of what was spent."""

    def receipt(self, subject: str, spend_id: str) -> SpendReceipt:
        raise KeyError(spend_id)


def test_a_key_signs_for_nothing_that_the_ledger_does_not_know() -> None:
    ledger = Forgetful(1.0, 1e-5, neighbours=RECORD, model=TrustModel.CENTRAL)
    press, shelf = Press(ledger), MemoryArtefactStore()
    method = PublicationMethod("mean", "text/plain", lambda _: HALF, press.release)
    signing = ModelPublisher(
        ledger, shelf, [method], data_sets={"films"}, signer=SigningKey(bytes(32), "ours")
    )
    with pytest.raises(LedgerAbsent, match="nothing was drawn"):
        signing.publish(a_request(), SecureSource())
    assert (press.draws, shelf.published("p-1")) == (0, None)
    simulated = ModelPublisher(ledger, shelf, [method], data_sets={"films"})
    assert simulated.publish(a_request(), SecureSource()).card["ledger"] is None


def test_no_budget_no_draw() -> None:
    publisher, ledger, press, _ = a_publisher()
    for name in ("p-1", "p-2"):
        publisher.publish(a_request(name), SecureSource())
    before = ledger.snapshot()
    assert not publisher.would_publish(a_request("p-3"))
    with pytest.raises(BudgetExceeded):
        publisher.publish(a_request("p-3"), SecureSource())
    assert press.draws == 2
    assert ledger.snapshot() == before
    assert publisher.state(a_request("p-3")) is PublicationState.UNKNOWN


def test_a_dry_run_costs_nothing() -> None:
    publisher, ledger, press, _ = a_publisher()
    assert publisher.would_publish(a_request())
    assert ledger.subjects() == []
    assert press.draws == 0


def test_one_id_is_one_request() -> None:
    publisher, ledger, _, _ = a_publisher()
    publisher.publish(a_request(), SecureSource())
    for other in (
        {"parameters": {"rows": 11}},
        {"cost": Guarantee(0.6, RECORD, delta=1e-6, model=TrustModel.CENTRAL)},
    ):
        with pytest.raises(SpendConflict):
            publisher.publish(a_request(**other), SecureSource())
    assert ledger.spent("films") == Amount.cost(HALF)


def test_a_crash_while_drawing_leaves_a_charge_and_the_retry_is_free() -> None:
    publisher, ledger, press, _ = a_publisher()
    press.is_killed = True
    with pytest.raises(Killed):
        publisher.publish(a_request(), SecureSource())
    assert publisher.state(a_request()) is PublicationState.CHARGED
    press.is_killed = False
    made = publisher.publish(a_request(), SecureSource())
    assert publisher.publish(a_request(), SecureSource()) == made
    assert ledger.spent("films") == Amount.cost(HALF)


def test_a_method_that_fails_is_not_drawn_again_for_the_same_charge() -> None:
    publisher, ledger, press, shelf = a_publisher()
    press.fails = True
    with pytest.raises(PublicationFailed) as found:
        publisher.publish(a_request(), SecureSource())
    assert "of the data" not in str(found.value)
    press.fails = False
    for _ in range(2):
        with pytest.raises(PublicationFailed):
            publisher.publish(a_request(), SecureSource())
    assert (press.draws, ledger.spent("films")) == (1, Amount.cost(HALF))
    stored = shelf.published("p-1")
    assert stored is not None
    assert has_failed(unpack_artefact(stored))
    assert unpack_artefact(stored).content == b""
    assert publisher.publish(a_request("p-2"), SecureSource()).content


def test_of_two_that_draw_at_once_both_hand_out_what_was_stored_first() -> None:
    publisher, ledger, press, shelf = a_publisher()
    other = ModelPublisher(
        ledger,
        shelf,
        [PublicationMethod("mean", "application/octet-stream", lambda _: HALF, press.release)],
        data_sets={"films"},
    )
    won: list[Artefact] = []

    def overtaken(request: ReleaseRequest, source: Source) -> bytes:
        won.append(other.publish(request, source))
        return press.release(request, source)

    slow = ModelPublisher(
        ledger,
        shelf,
        [PublicationMethod("mean", "application/octet-stream", lambda _: HALF, overtaken)],
        data_sets={"films"},
    )
    assert slow.publish(a_request(), SecureSource()) == won[0]
    assert press.draws == 2
    assert len(ledger.entries("films")) == 1
    assert publisher.artefact("p-1") == won[0]


def test_what_is_not_proved_is_published_in_an_experiment_only_and_says_so() -> None:
    publisher, ledger, press, _ = a_publisher(NONE)
    with pytest.raises(BadParameter, match="proved"):
        publisher.publish(a_request(), SecureSource())
    assert (press.draws, ledger.subjects()) == (0, [])
    publisher, ledger, _, _ = a_publisher(NONE, is_experiment=True)
    card = publisher.publish(a_request(), SecureSource()).card
    assert card["claims"]["verdict"] == "overclaimed"
    assert card["claims"]["proved"]["epsilon"] == "inf"
    assert card["guarantee"].startswith("Nothing is guaranteed (it publishes the truth).")
    assert ledger.spent("films") == Amount.cost(HALF)


@pytest.mark.parametrize(
    "wrong",
    [
        {"publication_id": "../p"},
        {"publication_id": ""},
        {"data_set": "Films!"},
        {"method": "a" * 65},
        {"cost": NONE},
        {"parameters": {"rows": [1]}},
        {"parameters": {"rows": "a" * 70_000}},
        {"parameters": {"rows": float("nan")}},
    ],
)
def test_a_request_that_breaks_a_rule_cannot_be_made(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        a_request(**wrong)


def test_unknown_names_are_refused_before_anything_is_spent() -> None:
    publisher, ledger, _, _ = a_publisher()
    for wrong in ({"data_set": "songs"}, {"method": "median"}):
        with pytest.raises(BadParameter):
            publisher.publish(a_request(**wrong), SecureSource())
    assert ledger.subjects() == []
    with pytest.raises(BadParameter):
        ModelPublisher(ledger, MemoryArtefactStore(), [], data_sets={"films"})


@examples(25)
@given(st.binary(max_size=50), st.dictionaries(st.text(max_size=5), st.integers()))
def test_an_artefact_survives_a_round_trip_and_no_damage(
    content: bytes, card: dict[str, Any]
) -> None:
    made = Artefact(content, "text/plain", card)
    packed = made.packed()
    assert unpack_artefact(packed) == made
    for place in range(len(packed)):
        damaged = bytearray(packed)
        damaged[place] ^= 1
        with pytest.raises(BadSnapshot):
            unpack_artefact(bytes(damaged))
    with pytest.raises(BadSnapshot):
        unpack_artefact(packed[: len(packed) // 2])


def test_an_artefact_of_a_newer_layout_is_refused_in_words() -> None:
    packed = Artefact(b"x", "text/plain", {}).packed()
    with pytest.raises(BadSnapshot, match=r"layout 2; this version reads 1\. Update noisefloor"):
        unpack_artefact(packed.replace(b"NFA1", b"NFA2", 1))


@pytest.mark.parametrize("body", [b"", b"\0\0\0\2{}", b"\0\0\0\1[", b"\0\0\0\4null"])
def test_a_card_that_cannot_be_read_is_refused(body: bytes) -> None:
    with pytest.raises(BadSnapshot):
        unpack_artefact(b"NFA1" + hashlib.sha256(body).digest() + body)


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("model", list(TrustModel))
def test_every_guarantee_has_words(neighbours: Neighbours, model: TrustModel) -> None:
    assert "e^1 times" in guarantee_in_words(Guarantee(1.0, neighbours, model=model))
    assert "1e-06" in guarantee_in_words(Guarantee(1.0, neighbours, delta=1e-6, model=model))
