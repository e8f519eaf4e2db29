"""What is claimed, proved and audited of published models, as printed and corrected."""

import pytest

from model_worlds import Lived, live, model_world

SIZES = ("none", "4", "16")


def printed(method: str, hidden: str, *, variant: str = "paper", form: str = "clamped") -> Lived:
    """Let a world live with a network of noisy parameters at a nominal epsilon of 0.1."""
    block = {"method": method, "hidden": hidden, "epsilon": 0.1, "form": form, "canaries": 2000}
    return live(model_world(block, variant=variant))


@pytest.mark.parametrize("method", ["learning-first", "anonymised-learning"])
@pytest.mark.parametrize("hidden", SIZES)
def test_as_printed_a_model_costs_its_parameters_times_the_claim(method: str, hidden: str) -> None:
    lived = printed(method, hidden)
    claim = lived.claim("release")
    parameters = lived.value("model.parameters")
    assert claim.claimed.epsilon == 0.1
    assert claim.proved.epsilon == pytest.approx(0.1 * parameters, rel=1e-4)
    assert claim.verdict == "overclaimed"
    assert lived.value("spent.claimed") == pytest.approx(0.1), "the ledger debits the claim"
    assert lived.value("spent.proved") == pytest.approx(0.1 * parameters, rel=1e-4)


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
    lived = printed(method, hidden, variant="corrected")
    for name in ("release", "members"):
        claim = lived.claim(name)
        assert claim.verdict == "holds"
        assert claim.proved.epsilon <= 0.1
        assert claim.audited is not None
        assert claim.audited.epsilon <= claim.proved.epsilon


def test_one_parameter_alone_keeps_the_printed_claim() -> None:
    assert printed("learning-first", "4").claim("parameter").verdict == "holds"
    assert printed("anonymised-learning", "4").claim("parameter").verdict == "overclaimed"


def test_the_form_as_printed_proves_nothing() -> None:
    lived = printed("learning-first", "4", form="printed")
    assert not lived.claim("release").proved.is_finite
    assert not lived.has("model.proved")
    assert not lived.has("spent.proved")


def test_the_variant_makes_no_difference_where_nothing_is_wrong() -> None:
    here, there = (
        live(model_world({"method": "logistic"}, variant=variant))
        for variant in ("paper", "corrected")
    )
    assert repr(here.found) == repr(there.found)


def test_nothing_is_proved_without_noise() -> None:
    lived = live(model_world({"method": "plain"}))
    claim = lived.claim("release")
    assert not claim.proved.is_finite
    assert "no noise" in claim.proved.reason
    assert claim.verdict == "overclaimed"
