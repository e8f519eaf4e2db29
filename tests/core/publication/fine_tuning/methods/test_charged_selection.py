"""Settings chosen by private records: what it costs, and that only the best trial comes out."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from fine_tuning_cases import STEPS, TinyCase, tiny_case
from noisefloor.accounting import TrialCount
from noisefloor.errors import BadParameter
from noisefloor.privacy import Neighbours
from noisefloor.publication.fine_tuning import LayeredModule
from noisefloor.publication.fine_tuning.methods import ChargedSelection, charged_selection
from noisefloor.randomness import SeededSource, new_run

TRIALS = TrialCount(0, 0.2)
ONE = TrialCount(1, 0.999)
"""Nearly always a single trial."""


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> TinyCase:
    return tiny_case(tmp_path_factory.mktemp("models"))


def repeated(case: TinyCase) -> tuple[tuple[torch.Tensor, ...], torch.Tensor]:
    """Return the records of a case six times over."""
    return tuple(torch.cat([one] * 6) for one in case.inputs), torch.cat([case.labels] * 6)


def selection(case: TinyCase, noise: float = 1e-3) -> ChargedSelection:
    plans = tuple(
        replace(case.plan("head", replace(STEPS, learning_rate=rate), noise=4.0), examples=24)
        for rate in (1e-6, 0.5)
    )
    return ChargedSelection(plans, TRIALS, score_noise=noise, held_out=0.5)


def test_a_choice_costs_more_than_a_plan_and_counts_the_score(case: TinyCase) -> None:
    alone = case.plan("head", noise=4.0).proved.epsilon
    costs = [selection(case, noise).guarantee(1e-5).epsilon for noise in (100.0, 2.0, 1.0)]
    assert alone < costs[0] < costs[1] < costs[2]
    few, many = (
        replace(selection(case, 100.0), trials=TrialCount(0, gamma)).guarantee(1e-5).epsilon
        for gamma in (0.2, 0.02)
    )
    assert few == costs[0] < many < 2 * few


def test_the_best_count_is_released_with_its_plan(
    case: TinyCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[charged_selection.SelectedModel] = []
    trial: Callable[..., charged_selection.SelectedModel] = ChargedSelection._trial

    def observed(*arguments: object) -> charged_selection.SelectedModel:
        seen.append(trial(*arguments))
        return seen[-1]

    monkeypatch.setattr(ChargedSelection, "_trial", observed)
    numbers = set()
    for seed in range(12):
        seen.clear()
        best = selection(case).run(case.module, *repeated(case), SeededSource(seed, "s"))
        assert best is max(seen, key=lambda one: one.noisy_right)
        assert best.plan in selection(case).candidates
        numbers.add(len(seen))
    assert len(numbers) > 2  # a number that is always the same would not be covered by the proof


def test_a_trial_trains_on_what_it_does_not_count(case: TinyCase) -> None:
    """A record that is counted changes no weight; one that is trained on may change any count."""
    inputs, all_labels = repeated(case)

    def released(labels: torch.Tensor) -> tuple[LayeredModule, float]:
        with new_run():
            one = replace(selection(case), candidates=selection(case).candidates[:1], trials=ONE)
            found = one.run(case.module, inputs, labels, SeededSource(1, "one"))
            return found.module, found.noisy_right

    first, right = released(all_labels)
    kinds = set()
    for place in range(0, len(all_labels), 5):
        labels = all_labels.clone()
        labels[place] = 1 - labels[place]
        module, other = released(labels)
        is_trained_on = not torch.equal(module.head.weight, first.head.weight)
        assert is_trained_on or abs(abs(other - right) - 1) < 0.1
        kinds.add(is_trained_on)
    assert kinds == {False, True}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"candidates": ()}, "candidates"),
        ({"score_noise": 0.0}, "score_noise"),
        ({"held_out": 1.0}, "held_out"),
        ({"held_out": 0.01}, "no part of records is empty"),
    ],
)
def test_bad_selections_are_refused(case: TinyCase, change: dict[str, Any], named: str) -> None:
    with pytest.raises(BadParameter, match=named):
        replace(selection(case), **change)


def test_plans_as_printed_or_of_several_relations_are_refused(case: TinyCase) -> None:
    printed = case.plan("lora", replace(STEPS, rank=2, clipping="printed"))
    with pytest.raises(BadParameter, match="printed"):
        replace(selection(case), candidates=(printed,))
    first = selection(case).candidates[0]
    other = replace(first, cost=replace(first.cost, neighbours=Neighbours.RECORD_SUBSTITUTE))
    with pytest.raises(BadParameter, match="one relation"):
        replace(selection(case), candidates=(first, other))
