"""Claims of the ad pipeline: flow by flow, and for a whole day, claimed, proved and audited."""

import math

import numpy as np
import pytest

from ads_worlds import BITS, AdsRun, ads_world, run_ads_world
from noisefloor.privacy import Neighbours

CLICKS = {"form": "one-click", "epsilon": 1.0}


def day(variant: str, fresh: str) -> AdsRun:
    """Let a world live in which training, requests and clicks have epsilon 1 each."""
    return run_ads_world(
        ads_world(
            {"epsilon": 1.0, "training": BITS, "delivery": {"fresh": fresh}},
            CLICKS,
            variant=variant,
        )
    )


@pytest.mark.parametrize("fresh", ["day", "impression"])
def test_the_paper_claims_a_sum_that_a_day_does_not_keep(fresh: str) -> None:
    simulated = day("paper", fresh)
    assert simulated.claim("training").verdict == "holds"
    request, whole = simulated.claim("request"), simulated.claim("whole-day")
    assert request.verdict == whole.verdict == "overclaimed"
    assert request.claimed.epsilon == 1.0
    assert 1.5 < request.proved.epsilon <= 2.0
    assert whole.claimed.epsilon == pytest.approx(3.0)
    releases = simulated.value("day.request.releases")
    proved = 1.0 + releases * request.proved.epsilon + 6.0  # clicks: a bit for each of six ads
    assert whole.proved.epsilon == pytest.approx(proved, rel=1e-6)
    # Witnesses audit one flow each; of a whole day there is the evidence of all flows.
    assert whole.audited is None
    assert {"training", "ad-requests", "clicks"} <= {flow.flow for flow in whole.evidence}


@pytest.mark.parametrize("fresh", ["day", "impression"])
def test_the_corrected_day_keeps_what_it_claims(fresh: str) -> None:
    simulated = day("corrected", fresh)
    assert {named.claim.verdict for named in simulated.found.claims} == {"holds"}
    releases = simulated.value("day.request.releases")
    assert (releases > 1) is (fresh == "impression")
    whole = simulated.claim("whole-day")
    # Training, a request and a report of clicks are configured at 1 each; of as many requests as
    # people want, the configuration says no more than the budget.
    assert whole.claimed.epsilon == (3.0 if fresh == "day" else 1_000.0)
    assert whole.proved.epsilon == pytest.approx(2.0 + releases)
    for named in simulated.found.claims:
        if named.claim.audited is not None:
            assert named.claim.audited.epsilon <= named.claim.proved.epsilon


def test_the_busiest_user_costs_more_than_the_day_says_and_metrics_show_it() -> None:
    simulated = day("corrected", "impression")
    most, mean = (
        simulated.value("day.busiest_user.releases"),
        simulated.value("day.request.releases"),
    )
    assert most > 2 * mean
    each = simulated.value("day.request.proved_each")
    assert simulated.value("day.busiest_user.proved") == pytest.approx(most * each)
    asked = simulated.ads.delivery.statistics
    assert most == max(stats.most for stats in asked)


@pytest.mark.parametrize("variant", ["paper", "corrected"])
@pytest.mark.parametrize("fresh", ["day", "impression"])
def test_the_flows_of_a_day_add_up_to_its_claim(variant: str, fresh: str) -> None:
    simulated = day(variant, fresh)
    for kind in ("claimed", "proved"):
        flows = [simulated.value(f"day.{it}.{kind}") for it in ("training", "request", "clicks")]
        whole_day = getattr(simulated.claim("whole-day"), kind).epsilon
        if (variant, fresh, kind) == ("corrected", "impression", "claimed"):
            assert whole_day == simulated.value("day.request.claimed") == 1_000.0
        else:
            assert sum(flows) == pytest.approx(whole_day)


@pytest.mark.parametrize("budget", [1.5, 3.1, 7.3, 12.0])
def test_a_day_claims_the_budget_and_never_what_it_turned_out_to_cost(budget: float) -> None:
    simulated = run_ads_world(
        ads_world(
            {"epsilon": 1.0, "training": BITS, "delivery": {"fresh": "impression"}},
            CLICKS,
            budget=budget,
        )
    )
    claims = {named.mechanism: named.claim for named in simulated.found.claims}
    # Who takes part in everything needs 3, and a little as costs are rounded up: with less, nobody
    # has such a day.
    assert ("whole-day" in claims) is (budget > 3.0)
    for name in {"whole-day", "requests-a-day"} & set(claims):
        assert claims[name].claimed.epsilon == budget
        assert claims[name].verdict == "holds"
    if budget > 3.0:
        releases = simulated.value("day.request.releases")
        assert releases <= budget - 2.0
        assert claims["whole-day"].proved.epsilon == pytest.approx(2.0 + releases)


def test_a_slate_costs_its_report_as_well() -> None:
    simulated = run_ads_world(ads_world({"training": BITS, "delivery": {"choice": "slate"}}))
    assert simulated.claim("shown-ad").verdict == "holds"
    assert simulated.claim("whole-day").claimed.epsilon == pytest.approx(6.0)
    free = run_ads_world(ads_world({"training": BITS, "delivery": {"choice": "random-slate"}}))
    assert free.claim("request").proved.epsilon == 0
    assert free.claim("whole-day").claimed.epsilon == pytest.approx(4.0)


@pytest.mark.parametrize("form", ["memoised", "delivered", "split"])
def test_whatever_form_clicks_have_the_day_counts_them(form: str) -> None:
    simulated = run_ads_world(
        ads_world({"epsilon": 1.0, "training": BITS}, {"form": form, "epsilon": 1.0})
    )
    whole = simulated.claim("whole-day")
    assert whole.claimed.epsilon == pytest.approx(3.0)
    assert whole.verdict == "holds"


@pytest.mark.parametrize("method", ["spectral", "spectral-lite", "bits", "laplace"])
def test_every_way_of_training_proves_what_it_claims(method: str) -> None:
    simulated = run_ads_world(ads_world({"training": {"method": method, "rounds": 3}}))
    claim = simulated.claim("training")
    assert claim.verdict == "holds"
    assert claim.claimed.epsilon - 1e-3 < claim.proved.epsilon <= claim.claimed.epsilon
    assert claim.claimed.neighbours is Neighbours.USER
    times = simulated.value("day.training.releases")
    assert times == (3 if method in ("bits", "laplace") else 1)


def test_an_audit_of_one_request_comes_near_what_is_proved() -> None:
    """By 1,500 users in pairs on two days; false alarm 1e-7."""
    simulated = run_ads_world(
        ads_world(
            {"epsilon": 2.0, "training": {"method": "open"}, "delivery": {"choice": "argmax"}},
            witnesses={"share": 0.5},
        )
    )
    claim = simulated.claim("request")
    assert claim.audited is not None
    assert claim.null is not None
    assert claim.planted is not None
    assert 0.5 * claim.proved.epsilon < claim.audited.epsilon <= claim.proved.epsilon
    assert claim.null.epsilon == 0


def test_ledgers_debit_the_claim_in_the_papers_variant() -> None:
    simulated = day("paper", "day")
    assert simulated.value("spent.ad_request") * 1500 == pytest.approx(simulated.value("requests"))
    assert math.isclose(simulated.value("day.clicks.proved"), 6.0)
    assert not any(np.isnan(metric.value) for metric in simulated.found.metrics)
