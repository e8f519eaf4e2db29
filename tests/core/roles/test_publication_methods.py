"""Models through the publisher: what is proved is charged, and the card says all of it."""

import inspect
import json
from pathlib import Path
from typing import Any

import pytest

import noisefloor_services
import text_layer_cases
from labelled_tables import ADD, SWAP, a_cost, visits
from noisefloor.accounting import Amount, Ledger
from noisefloor.adversary.models.canary_audit import audit_plan
from noisefloor.errors import BadParameter, BadSnapshot, BudgetExceeded
from noisefloor.privacy import Guarantee, TrustModel
from noisefloor.publication import load_model, load_table
from noisefloor.publication.methods.model_plan import Canary, CanaryBounds
from noisefloor.publication.methods.registry import MODEL_METHODS
from noisefloor.publication.private_sgd import subsampled_gaussian
from noisefloor.publication.synthesis import LaplaceEntries
from noisefloor.randomness import SecureSource, SeededSource
from noisefloor.roles.model_publisher import (
    MemoryArtefactStore,
    ModelPublisher,
    PublicationState,
    ReleaseRequest,
)
from noisefloor.roles.publication_methods import LOADING, methods_of, model_method

DATA_SETS = {"visits": visits(400)}
PARAMETERS = {
    "logistic": {"steps": 10},
    "private-sgd": {"hidden": 4, "epochs": 1, "batch": 100},
    "anonymising-first": {"epochs": 1},
    "learning-first": {"hidden": 4, "epochs": 1},
    "anonymised-learning": {"hidden": 4, "epochs": 1},
    "synthetic-table": {"rows": 50},
}
ROWS: dict[str, list[Any]] = {"age": [17, 70], "country": ["CH", "DE"], "pages": [3, 1]}


def quick_audit(canary: Canary, delta: float, seed: str) -> CanaryBounds:
    return audit_plan(canary, delta, seed, games=400)


def a_publisher(budget: float = 100.0, **more: Any) -> tuple[ModelPublisher, Ledger]:
    ledger = Ledger(budget, 1e-4, neighbours=SWAP, model=TrustModel.CENTRAL)
    methods = methods_of(DATA_SETS, quick_audit).values()
    made = ModelPublisher(ledger, MemoryArtefactStore(), methods, data_sets=DATA_SETS, **more)
    return made, ledger


def a_request(
    method: str, cost: Guarantee | None = None, name: str = "m-1", **more: Any
) -> ReleaseRequest:
    parameters = {"label": "buys", **PARAMETERS[method], **more}
    return ReleaseRequest(name, "visits", method, cost or a_cost(1.0, SWAP), parameters)


@pytest.mark.parametrize("method", MODEL_METHODS)
def test_a_card_says_what_was_published_and_what_is_guaranteed(method: str) -> None:
    publisher, ledger = a_publisher()
    request = a_request(method)
    assert publisher.is_long(request)
    made = publisher.publish(request, SecureSource())
    assert ledger.spent("visits") == Amount.cost(request.cost)
    card = json.loads(json.dumps(made.card))
    assert card == made.card
    whole = card["privacy"][0]
    assert (whole["about"], whole["verdict"]) == ("whole model", "holds")
    assert whole["proved"] == card["claims"]["proved"]
    assert whole["proved"]["epsilon"] <= 1
    assert whole["proved"]["neighbours"] == "record-substitute"
    assert "or another in its place" in card["guarantee"]
    assert card["public_size"] == 400
    audit = card["audit"]
    assert audit["is_audited"] and audit["games_on_each_input"] == 400
    assert audit["epsilon_at_least"] <= whole["proved"]["epsilon"] + 1e-9
    assert audit["confidence"] == 1 - 1e-6
    # An audit never says "holds", and 200 held-out games miss noise a quarter too small: blind.
    has_found = audit["epsilon_at_least"] > 0
    assert audit["null"]["epsilon_at_least"] == 0
    assert audit["planted"]["fault"] == "noise of 0.75 times the plan's"
    assert audit["planted"]["epsilon_at_least"] <= audit["planted"]["has_to_exceed"]
    assert audit["verdict"] == "blind"
    assert "nothing may be concluded" in audit["meaning"]
    assert audit["found"].startswith("epsilon is at least" if has_found else "nothing found; 200")
    assert audit["ceiling"] > whole["proved"]["epsilon"]
    assert audit["canary"] and audit["data"].startswith("none")
    assert len(card["loading"]) == 3
    if method == "synthetic-table":
        assert len(load_table(made.content, card, unsigned=True)["rows/age"]) == 50
        return
    model = load_model(made.content, card, unsigned=True)
    assert card["parameter_count"] == model.parameters
    assert set(model.predict(ROWS)) <= {"no", "yes"}
    with pytest.raises(BadSnapshot):
        load_model(made.content[:-1] + bytes([made.content[-1] ^ 1]), card, unsigned=True)
    is_by_parameter = method in ("learning-first", "anonymised-learning")
    assert ("one parameter" in [one["about"] for one in card["privacy"]]) == is_by_parameter
    if is_by_parameter:
        assert "not the model's" in card["privacy"][1]["note"]


def test_the_noise_of_the_paper_has_to_be_paid_as_proved() -> None:
    publisher, ledger = a_publisher(1_000.0)
    for method in ("learning-first", "anonymised-learning"):
        with pytest.raises(BadParameter, match="no cost covers it"):
            publisher.publish(a_request(method, variant="paper"), SecureSource())
        clamped: dict[str, Any] = {"variant": "clamped", "parameter_epsilon": 1.0}
        with pytest.raises(BadParameter, match="charges what is proved of all that is released"):
            publisher.publish(a_request(method, **clamped), SecureSource())
    assert ledger.spent("visits") == Amount(0)
    # 50 parameters of epsilon 1 each: whoever pays for that may have it.
    paid = a_request("learning-first", a_cost(50.0, SWAP, 0.0), **clamped)
    card = publisher.publish(paid, SecureSource()).card
    assert card["parameter_count"] == 50
    assert card["claims"]["proved"]["epsilon"] == pytest.approx(50, rel=1e-5)
    assert ledger.spent("visits") == Amount(50_000_000)
    one = card["privacy"][1]
    assert (one["about"], one["claimed"]["epsilon"]) == ("one parameter", 1.0)


def test_an_experiment_shows_the_fault_on_its_card() -> None:
    publisher, _ = a_publisher(is_experiment=True)
    card = publisher.publish(a_request("learning-first", variant="paper"), SecureSource()).card
    assert card["claims"]["verdict"] == "overclaimed"
    assert card["claims"]["proved"]["epsilon"] == "inf"
    assert "Nothing is guaranteed" in card["guarantee"]


def test_an_over_budget_request_draws_nothing() -> None:
    publisher, ledger = a_publisher(0.5)
    request = a_request("logistic")
    with pytest.raises(BudgetExceeded):
        publisher.publish(request, SecureSource())
    assert publisher.state(request) is PublicationState.UNKNOWN
    assert publisher.artefact("m-1") is None
    assert ledger.spent("visits") == Amount(0)


def test_the_number_of_rows_is_taken_from_the_table_only_where_it_is_public() -> None:
    ledger = Ledger(1.0, 1e-4, neighbours=ADD, model=TrustModel.CENTRAL)
    publisher = ModelPublisher(
        ledger, MemoryArtefactStore(), methods_of(DATA_SETS).values(), data_sets=DATA_SETS
    )
    with pytest.raises(BadParameter, match="size='<none>' declared"):
        publisher.publish(a_request("logistic", a_cost(1.0, ADD)), SecureSource())
    made = publisher.publish(a_request("logistic", a_cost(1.0, ADD), size=300), SecureSource())
    assert made.card["public_size"] == 300
    assert made.card["audit"] == {"is_audited": False, "why": "this publisher has no auditor"}


def test_equal_parameters_of_other_kinds_are_other_requests() -> None:
    publisher, _ = a_publisher()
    publisher.charge(a_request("learning-first", bound=1))
    with pytest.raises(BadParameter, match="bound=True a number"):
        publisher.charge(a_request("learning-first", name="m-2", bound=True))


def test_the_three_lines_are_three() -> None:
    assert len(LOADING) == 3


@pytest.mark.parametrize("batch", [399, 401, 10**9])
def test_another_relation_than_that_of_the_budget_does_not_tell_how_many_rows_there_are(
    batch: int,
) -> None:
    """By substitution the number is public; a budget for added records must not hear of it."""
    ledger = Ledger(1.0, 1e-4, neighbours=ADD, model=TrustModel.CENTRAL)
    publisher = ModelPublisher(
        ledger, MemoryArtefactStore(), methods_of(DATA_SETS).values(), data_sets=DATA_SETS
    )
    request = a_request("private-sgd", a_cost(1.0, SWAP), batch=batch)
    for ask in (publisher.would_publish, publisher.charge, publisher.is_long):
        with pytest.raises(BadParameter, match="the relation of the budget") as refused:
            ask(request)
        assert "400" not in str(refused.value)


def audit_of(method: str, games: int, cost: Guarantee, **more: Any) -> dict[str, Any]:
    """Return the audit on the card of a release."""
    found: dict[str, Any] = card_of(method, games, cost, **more)["audit"]
    return found


def card_of(method: str, games: int, cost: Guarantee, **more: Any) -> dict[str, Any]:
    """Return the card of a release whose audit plays a number of games."""

    def play(canary: Canary, delta: float, seed: str) -> CanaryBounds:
        return audit_plan(canary, delta, seed, games=games)

    ledger = Ledger(100.0, 1e-4, neighbours=SWAP, model=TrustModel.CENTRAL)
    methods = methods_of(DATA_SETS, play).values()
    publisher = ModelPublisher(ledger, MemoryArtefactStore(), methods, data_sets=DATA_SETS)
    source = SeededSource(5, "card", games)
    card: dict[str, Any] = publisher.publish(a_request(method, cost, **more), source).card
    return card


FULL, SAMPLED = {"batch": 400, "epochs": 5}, {"batch": 100, "epochs": 2}


@pytest.mark.parametrize(
    ("method", "more"),
    [("private-sgd", FULL), ("private-sgd", SAMPLED), ("logistic", {"steps": 10})],
)
def test_the_card_of_gaussian_noise_finds_its_planted_fault(
    method: str, more: dict[str, Any]
) -> None:
    """A bound above the proof is false with probability 1e-6, as is one of the null above 0."""
    card = card_of(method, 20_000, a_cost(1.0, SWAP), **more)
    found = card["audit"]
    assert (found["verdict"], card["claims"]["verdict"]) == ("consistent", "holds")
    assert 0.8 < found["epsilon_at_least"] <= found["planted"]["has_to_exceed"]
    assert found["planted"]["epsilon_at_least"] > found["planted"]["has_to_exceed"]
    assert found["null"]["epsilon_at_least"] == 0
    assert found["trade_off"]["noise_over_declared_at_most"] > 1
    if more is SAMPLED:
        return
    few = card_of(method, 200, a_cost(1.0, SWAP), **more)
    assert few["audit"]["verdict"] == "blind"
    assert "nothing may be concluded" in few["audit"]["meaning"]


@pytest.mark.parametrize("more", [FULL, SAMPLED])
def test_the_card_of_noise_a_quarter_too_small_is_broken_and_never_holds(
    more: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin of the test above: the routine of the training adds three quarters."""
    real = subsampled_gaussian.add_noise
    monkeypatch.setattr(
        subsampled_gaussian,
        "add_noise",
        lambda sums, scale, source: real(sums, 0.75 * scale, source),
    )
    card = card_of("private-sgd", 20_001, a_cost(1.0, SWAP), **more)
    verdicts = {card["audit"]["verdict"], card["claims"]["verdict"]}
    assert verdicts == {card["privacy"][0]["verdict"]} == {"broken"}
    assert card["guarantee"].startswith("Contradicted by the audit")
    assert card["audit"]["trade_off"]["noise_over_declared_at_most"] < 0.9


def test_a_card_with_power_finds_its_planted_fault_and_a_broken_publisher(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Laplace noise of one column; a bound above the proof is false with probability 1e-6."""
    cells: dict[str, Any] = {"tables": "cells", "columns": "age"}
    found = audit_of("synthetic-table", 40_000, a_cost(1.0, SWAP, 0.0), **cells)
    assert found["planted"]["epsilon_at_least"] > 1 >= found["planted"]["has_to_exceed"]
    assert (found["verdict"], found["null"]["epsilon_at_least"]) == ("consistent", 0)
    assert "found the planted fault" in found["meaning"]
    real = LaplaceEntries.add

    def half(self: LaplaceEntries, values: Any, source: Any) -> Any:
        return values + (real(self, values, source) - values) // 2

    monkeypatch.setattr(LaplaceEntries, "add", half)
    broken = audit_of("synthetic-table", 40_001, a_cost(1.0, SWAP, 0.0), **cells)
    assert broken["verdict"] == "broken"
    assert "contradicts" in broken["meaning"]


def test_methods_of_a_service_have_no_observer_of_residuals() -> None:
    """What noise was added to leaves a release only in simulations."""
    assert "residuals" not in inspect.signature(methods_of).parameters
    assert "residuals" in inspect.signature(model_method).parameters
    for method in methods_of(DATA_SETS, is_experiment=True).values():
        kept = inspect.getclosurevars(method.release).nonlocals
        assert kept.get("residuals") is None
    services = Path(noisefloor_services.__file__).parent
    for file in services.rglob("*.py"):
        for name in ("residuals", "model_method", "NoisedVector", "ResidualObserver"):
            assert name not in file.read_text(), f"{file.name} mentions {name}"


@pytest.mark.parametrize("trains", ["plain", "lora"])
def test_layers_that_prove_less_than_they_claim_are_experiments(
    trains: str, tmp_path: Path
) -> None:
    """Refused by a publisher of real records; elsewhere the ledger debits what is claimed."""
    more: dict[str, Any] = {} if trains == "plain" else {"clipping": "printed", "rank": 2}
    parameters = {**text_layer_cases.SIZE, "trains": trains, **more}
    cost = text_layer_cases.a_cost()
    request = ReleaseRequest("m-1", "reviews", "text-layers", cost, parameters)
    texts = {"reviews": text_layer_cases.RECORDS}
    with text_layer_cases.tiny_machine(tmp_path):
        for is_experiment in (False, True):
            ledger = Ledger(100.0, 1e-4, neighbours=ADD, model=TrustModel.CENTRAL)
            methods = methods_of(texts, is_experiment=is_experiment).values()
            made = ModelPublisher(
                ledger,
                MemoryArtefactStore(),
                methods,
                data_sets=texts,
                is_experiment=is_experiment,
            )
            if not is_experiment:
                with pytest.raises(BadParameter, match="is proved of text-layers with these"):
                    made.publish(request, SeededSource(1, "refused"))
                assert ledger.spent("reviews") == Amount(0)
                continue
            card = made.publish(request, SeededSource(1, "taken")).card
            assert card["claims"]["verdict"] == "overclaimed"
            assert ledger.spent("reviews") == Amount(2_000_000, 10**13)
