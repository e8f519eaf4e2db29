"""What a world makes again of its releases: files, scales and costs; and what it finds."""

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from noisefloor.accounting import Ledger
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.publication import NoisedVector
from noisefloor.publication.methods import TextNgramsPlan
from noisefloor.publication.text.ngrams import NgramPlan
from noisefloor_sim.pipelines.releases import Release, charged_loss
from noisefloor_sim.pipelines.texts import cost_check
from noisefloor_sim.pipelines.texts.attack_setting import audit_alpha
from noisefloor_sim.pipelines.texts.derivation_check import DerivationCheck, check_derivation
from noisefloor_sim.pipelines.texts.release_audit import (
    audit_releases,
    collected_texts,
    seen_tables,
)
from text_worlds import run_texts

TWO_WEEKS: dict[str, Any] = {"release_every_days": 7, "post_over_days": 14}
SWAP = Neighbours.RECORD_SUBSTITUTE


@dataclass(frozen=True)
class Audited:
    """A release of a small world, whose tables a test may change before it is made again."""

    release: Release[TextNgramsPlan]
    seen: dict[str, NoisedVector]

    @classmethod
    def of_world(cls) -> "Audited":
        (release,) = run_texts().pipeline.holder.releases
        return cls(release, dict(seen_tables(release)))

    def found(self, content: bytes | None = None) -> DerivationCheck:
        release = self.release
        assert release.source is not None
        return check_derivation(
            release.plan,
            self.seen,
            release.content if content is None else content,
            collected_texts(release),
            release.source,
        )

    def changed(self, part: str, **fields: Any) -> "Audited":
        return replace(self, seen={**self.seen, part: replace(self.seen[part], **fields)})


def test_every_release_of_a_world_is_made_again_byte_by_byte() -> None:
    seen = run_texts(TWO_WEEKS, days=14)
    rederived = seen.metric("counting.rederived")
    assert (rederived.value, rederived.n) == (1.0, 2)
    assert seen.found.flows[0].verdict == "consistent"


def test_a_file_with_one_other_text_is_found_and_no_text_is_shown() -> None:
    honest = Audited.of_world()
    assert honest.found() == DerivationCheck()
    first, rest = honest.release.content.split(b"\n", 1)
    (fault,) = honest.found(first.replace(b": ", b":", 1) + b"\n" + rest).faults
    assert fault.endswith("300 texts, of which 1 differ from the 300 that follow")
    (fault,) = honest.found(rest).faults
    assert "299 texts" in fault


@pytest.mark.parametrize("part", ["lengths", "pieces", "pairs"])
def test_a_table_that_was_not_used_as_it_was_shown_gives_another_file(part: str) -> None:
    """As if it were used without its noise, and shown with it."""
    shown = Audited.of_world()
    clean = shown.seen[part].clean
    assert clean is not None
    found = shown.changed(part, noised=clean).found()
    assert found.faults


def test_scales_and_counts_that_do_not_follow_are_found() -> None:
    shown = Audited.of_world()
    pairs = shown.seen["pairs"]
    assert pairs.unit is not None and pairs.clean is not None
    less = pairs.unit.copy()
    less[0] /= np.sqrt(2)
    (cause,) = shown.changed("pairs", unit=less).found().misfits
    assert cause.startswith("pairs: the scales of 1 of")
    more = pairs.clean.copy()
    more[3] += 1
    (cause,) = shown.changed("pairs", clean=more).found().misfits
    assert "1 of" in cause and "do not count the texts that were collected" in cause
    short = shown.changed("pieces", noised=shown.seen["pieces"].noised[:-1])
    assert "cells was released" in short.found().misfits[0]
    assert short.found().faults[0].endswith("from these tables nothing can be written")


def test_a_release_that_hides_its_tables_from_the_observer_is_found() -> None:
    pipeline = run_texts().pipeline
    (release,) = pipeline.holder.releases
    reference = replace(release.residuals.reference, seen={})  # type: ignore[type-var]  # ours
    hidden = replace(release, residuals=replace(release.residuals, reference=reference))
    holder = replace(pipeline.holder, releases=[hidden])
    holder.publisher = pipeline.holder.publisher
    audit = audit_releases(holder)
    assert audit.faults == ["release 0: not every table of the plan was seen"]
    assert audit.metrics() == []


def weaker(plan: TextNgramsPlan, share: float) -> TextNgramsPlan:
    """Return a plan that says what another one proves, with less noise."""
    less = {name: one * share for name, one in plan.counting.multipliers.items()}
    counting = replace(plan.counting, multipliers=MappingProxyType(less))
    return replace(plan, counting=counting)


def test_noise_that_costs_more_than_is_proved_is_found() -> None:
    plan = Audited.of_world().release.plan
    assert list(cost_check.plan_faults(plan)) == []
    proved, claimed = cost_check.plan_faults(weaker(plan, 0.98))
    assert proved.startswith("epsilon 2 is proved for record-add-remove at delta 1e-05")
    assert "is claimed" in claimed


def test_a_planner_that_takes_one_relation_for_the_other_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan, honest = Audited.of_world().release.plan, NgramPlan.of

    def by_removal(cost: Guarantee, *shape: int) -> NgramPlan:
        other = replace(cost, neighbours=Neighbours.RECORD_ADD_REMOVE)
        return replace(honest(other, *shape), cost=cost)

    monkeypatch.setattr(NgramPlan, "of", by_removal)
    (fault,) = cost_check.plan_faults(plan)
    assert fault.startswith(f"epsilon 2 is planned for {SWAP.value}")


def test_a_charge_without_one_of_the_tables_is_found() -> None:
    plan = Audited.of_world().release.plan
    for left_out, faults in (("", 0), ("lengths", 1), ("pieces", 1), ("pairs", 1)):
        loss = charged_loss(plan)
        named = zip(plan.counting.multipliers, loss.events, strict=True)
        loss = replace(loss, events=tuple(event for name, event in named if name != left_out))
        cost = plan.spec.cost
        ledger = Ledger(8.0, 1e-4, neighbours=cost.neighbours, model=cost.model)
        entry = ledger.spend("users", "release-0", cost, plan.NAME, loss=loss)
        assert len(list(cost_check.charge_faults(plan, entry))) == faults, left_out


@pytest.mark.parametrize(
    ("delta", "alpha"), [(0.0, 1e-7), (1e-9, 1e-7), (1e-7, 1e-5), (1e-5, 1e-3), (1e-3, 1e-3)]
)
def test_an_audit_is_as_seldom_wrong_as_delta_lets_it_be(delta: float, alpha: float) -> None:
    assert audit_alpha(delta) == pytest.approx(alpha)
