"""What is claimed, proved and audited of published models, as printed and corrected."""

import pytest

from model_worlds import ModelsRun, model_world, run_model_world

SIZES = ("none", "4", "16")


def printed(
    method: str, hidden: str, *, variant: str = "paper", form: str = "clamped"
) -> ModelsRun:
    """Let a world live with a network of noisy parameters at a nominal epsilon of 0.1."""
    block = {"method": method, "hidden": hidden, "epsilon": 0.1, "form": form, "canaries": 2000}
    return run_model_world(model_world(block, variant=variant))


@pytest.mark.parametrize("method", ["learning-first", "anonymised-learning"])
@pytest.mark.parametrize("hidden", SIZES)
def test_as_printed_a_model_costs_its_parameters_times_the_claim(method: str, hidden: str) -> None:
    simulated = printed(method, hidden)
    claim = simulated.claim("release")
    parameters = simulated.value("model.parameters")
    assert claim.claimed.epsilon == 0.1
    assert claim.proved.epsilon == pytest.approx(0.1 * parameters, rel=1e-4)
    assert claim.verdict == "overclaimed"
    assert simulated.value("spent.claimed") == pytest.approx(0.1), "the ledger debits the claim"
    assert simulated.value("spent.proved") == pytest.approx(0.1 * parameters, rel=1e-4)


def test_the_audit_of_the_printed_noise_rises_with_the_number_of_parameters() -> None:
    found = [printed("learning-first", hidden).value("attack.canary.audited") for hidden in SIZES]
    assert found == sorted(found)
    assert found[0] > 0.1, "above the claim already"
    assert found[-1] > found[0] + 0.5


@pytest.mark.parametrize("method", ["learning-first", "anonymised-learning"])
@pytest.mark.parametrize("hidden", SIZES)
def test_corrected_the_claim_is_what_is_proved_and_audits_stay_below(
    method: str, hidden: str
) -> None:
    simulated = printed(method, hidden, variant="corrected")
    for name in ("release", "members"):
        claim = simulated.claim(name)
        assert claim.verdict == "holds"
        assert claim.proved.epsilon <= 0.1
        assert claim.audited is not None
        assert claim.audited.epsilon <= claim.proved.epsilon


def test_one_parameter_alone_keeps_the_printed_claim() -> None:
    assert printed("learning-first", "4").claim("parameter").verdict == "holds"
    assert printed("anonymised-learning", "4").claim("parameter").verdict == "overclaimed"


def test_the_form_as_printed_proves_nothing() -> None:
    simulated = printed("learning-first", "4", form="printed")
    assert not simulated.claim("release").proved.is_finite
    assert not simulated.has("model.proved")
    assert not simulated.has("spent.proved")


def test_the_variant_makes_no_difference_where_nothing_is_wrong() -> None:
    here, there = (
        run_model_world(model_world({"method": "logistic"}, variant=variant))
        for variant in ("paper", "corrected")
    )
    assert repr(here.found) == repr(there.found)


def test_nothing_is_proved_without_noise() -> None:
    simulated = run_model_world(model_world({"method": "plain"}))
    claim = simulated.claim("release")
    assert not claim.proved.is_finite
    assert "no noise" in claim.proved.reason
    assert claim.verdict == "overclaimed"
