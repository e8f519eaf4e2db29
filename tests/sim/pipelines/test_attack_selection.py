"""The key ``attacks``: what is not selected is not mounted, measured, drawn or audited."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ads_worlds import BITS, ads_world
from collection_runs import record_world
from model_worlds import model_world
from noisefloor.adversary import records
from noisefloor.errors import BadScenario
from noisefloor.privacy import ClaimVerdict
from noisefloor.randomness import new_run
from noisefloor_sim.pipelines import BLOCKS, PIPELINES
from noisefloor_sim.pipelines.ads import attacks as ads_attacks
from noisefloor_sim.pipelines.api import Findings, Metric, PointFindings
from noisefloor_sim.pipelines.clicks import attacks as click_attacks
from noisefloor_sim.pipelines.clicks.click_flow import ClickFlow
from noisefloor_sim.pipelines.releases import CanaryAudit, ShadowModelAttack
from noisefloor_sim.report import ClaimRow, Table, headline
from noisefloor_sim.runs.engine import Engine
from noisefloor_sim.scenario import Scenario, game_of, loads, scenario_text
from simulated_worlds import simulated
from worlds import SMALL

World = Callable[..., Scenario]


def click_world(**sections: Any) -> Scenario:
    lines = "".join(f"{name}: [{', '.join(value)}]\n" for name, value in sections.items())
    return loads(SMALL + lines, BLOCKS)


def private_ads(**sections: Any) -> Scenario:
    return ads_world({"epsilon": 1.0, "training": BITS}, **sections)


def published_models(**sections: Any) -> Scenario:
    block = {"method": "synthetic-table", "release_every_days": 1, "delta": 0.0}
    return model_world(block, **sections)


WORLDS: dict[str, World] = {
    "ads": private_ads,
    "clicks": click_world,
    "collection": lambda **sections: record_world({"questions": "protected"}, **sections),
    "models": published_models,
}
# An attack that is mounted in each world, and the games that it alone plays.
CHOSEN = {
    "ads": ("rated", {"rated"}),
    "clicks": ("single-bit", {"single_bit"}),
    "collection": ("label-known", {"label_known"}),
    "models": ("missing-value", {"missing_value"}),
}
EACH = pytest.mark.parametrize("name", sorted(WORLDS))


def findings(name: str, *attacks: str) -> Findings:
    sections = {"attacks": [f"{name}.{attack}" for attack in attacks]} if attacks else {}
    _, _, outcome = simulated(WORLDS[name](**sections))
    return outcome.findings[name]


def games(found: Findings) -> set[str]:
    named = [metric.name.split(".") for metric in found.metrics]
    return {parts[1] for parts in named if parts[0] == "attack"}


def others(found: Findings) -> list[str]:
    return [repr(one) for one in found.metrics if not one.name.startswith(("attack.", "shadows."))]


def of_game(found: Findings, game: str) -> list[str]:
    return [repr(one) for one in found.metrics if one.name.startswith(f"attack.{game}.")]


@EACH
def test_an_attack_alone_measures_what_it_measures_among_all(name: str) -> None:
    attack, played = CHOSEN[name]
    everything, one = findings(name), findings(name, attack)
    assert games(one) == played < games(everything)
    for game in played:
        assert of_game(one, game) == of_game(everything, game) != []
    assert others(one) == others(everything)


@EACH
def test_every_game_that_is_played_belongs_to_a_declared_attack(name: str) -> None:
    declared = {
        game
        for attack, one in BLOCKS[name].attacks.items()
        for game in (one.games or (game_of(attack),))
    }
    assert games(findings(name)) <= declared


@EACH
def test_without_its_audit_a_claim_is_not_audited_and_rests_on_its_proof(name: str) -> None:
    attack, _ = CHOSEN[name]
    before, after = findings(name).claims, findings(name, attack).claims
    assert [named.mechanism for named in after] == [named.mechanism for named in before]
    assert any(named.claim.audited for named in before)
    for old, new in zip(before, after, strict=True):
        assert new.claim.audited is None
        assert new.claim.audit_verdict is None
        assert (new.claim.claimed, new.claim.proved) == (old.claim.claimed, old.claim.proved)
        is_proved = new.claim.proved.epsilon <= new.claim.claimed.epsilon
        assert (new.claim.verdict == ClaimVerdict.HOLDS) is is_proved
    rows = [ClaimRow.of(named.claim, named.mechanism, pipeline=name) for named in after]
    assert "attacked, and no attack contradicts" not in headline(rows)


@pytest.mark.parametrize(
    ("name", "attack"),
    [("ads", "audit"), ("clicks", "audit"), ("collection", "audit"), ("models", "canary")],
)
def test_the_audit_alone_gives_the_same_bounds_and_plays_no_other_game(
    name: str, attack: str
) -> None:
    everything, one = findings(name), findings(name, attack)
    assert games(one) <= set(BLOCKS[name].attacks[attack].games)
    audited = {named.mechanism: named.claim.audited for named in everything.claims}
    found = {named.mechanism: named.claim.audited for named in one.claims}
    if name == "models":  # this claim has its audit from another attack
        assert audited.pop("members") is not None
        assert found.pop("members") is None
    assert found == audited


def test_the_members_attack_audits_the_claim_about_members_alone() -> None:
    found = {one.mechanism: one.claim.audited for one in findings("models", "members").claims}
    assert [name for name, bound in found.items() if bound is not None] == ["members"]


@pytest.fixture
def mounted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Note which costly parts of attacks are run."""
    called: list[str] = []

    def noted(owner: object, name: str) -> None:
        before = getattr(owner, name)

        def run(*given: Any, **named: Any) -> Any:  # Any: whatever the function takes
            called.append(name)
            return before(*given, **named)

        monkeypatch.setattr(owner, name, run)

    noted(ads_attacks, "play_pair")
    noted(ClickFlow, "bounds")
    noted(click_attacks, "bayes_guess")
    noted(records.RecordGame, "play")
    noted(CanaryAudit, "play")
    noted(ShadowModelAttack, "run")
    yield called


@pytest.mark.parametrize(
    ("name", "attack", "parts"),
    [
        ("ads", "activity", set()),
        ("ads", "rating", {"play_pair"}),
        ("clicks", "delivered", set()),
        ("clicks", "audit", {"bounds"}),
        ("clicks", "profiles", {"bayes_guess"}),
        ("collection", "label-known", set()),
        ("collection", "record", {"play"}),
        ("models", "newcomer", set()),
        ("models", "canary", {"play"}),
        ("models", "members", {"run"}),
    ],
)
def test_what_is_not_selected_is_not_run(
    mounted: list[str], name: str, attack: str, parts: set[str]
) -> None:
    scenario = WORLDS[name](attacks=[f"{name}.{attack}"])
    with new_run():  # not from the cache of worlds: it has to be run here
        Engine(scenario, PIPELINES).run()
    assert set(mounted) == parts


@EACH
def test_a_report_without_attacks_draws_none(name: str) -> None:
    scenario = WORLDS[name](attacks=[f"{name}.audit"] if name != "models" else ["models.nearest"])
    _, _, outcome = simulated(scenario)
    metrics = [one for one in outcome.findings[name].metrics if not _is_attack(one)]
    found = Findings(tuple(metrics), outcome.findings[name].claims)
    section = PIPELINES[name].section([PointFindings((), scenario, found)])
    titles = [item.title for item in section.items]
    assert not any("adversary" in title or "attack" in title for title in titles)
    assert all(item.rows for item in section.items if isinstance(item, Table))


def _is_attack(metric: Metric) -> bool:
    return metric.name.startswith("attack.")


def test_an_unknown_attack_is_refused_with_the_names_that_exist() -> None:
    with pytest.raises(BadScenario) as caught:
        click_world(attacks=["clicks.singlebit"])
    assert "attacks.0: Unknown attack 'clicks.singlebit'. Did you mean 'clicks.single-bit'?" in (
        str(caught.value)
    )
    for name in BLOCKS["clicks"].attacks:
        assert f"clicks.{name}" in str(caught.value)


def test_an_attack_of_a_pipeline_that_does_not_run_is_refused() -> None:
    with pytest.raises(BadScenario, match=r"attacks\.0: Unknown attack 'models\.members'\."):
        click_world(attacks=["models.members"])


def test_the_selection_is_kept_in_the_text_of_a_scenario() -> None:
    chosen = click_world(attacks=["clicks.vector", "clicks.audit"])
    assert loads(scenario_text(chosen), BLOCKS).attacks == ("clicks.vector", "clicks.audit")
    assert "attacks: []\n" in scenario_text(click_world())
