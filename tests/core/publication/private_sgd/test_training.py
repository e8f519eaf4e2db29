"""Trainings: Poisson samples, noise on the sum, exact resumption, bounded shares, dead runs."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from torch import Tensor, nn

from noisefloor.errors import BadSnapshot, DeadRun, OutOfDomain, UnsupportedModule
from noisefloor.publication.private_sgd import (
    Automatic,
    Flat,
    PerGroup,
    PrivateTraining,
    SgdPlan,
    check_learnt,
    contributions,
    cross_entropy,
    initialise,
    train,
)
from noisefloor.publication.private_sgd.gates import GradientWatch, check_moved, check_weights
from noisefloor.publication.private_sgd.optimisers import optimiser_for
from noisefloor.publication.private_sgd.sampling import parts, poisson_sample
from noisefloor.randomness import SeededSource, new_run
from private_sgd_cases import CASES, CLASSES, Case, engine_sum, made, mlp
from statistics_of_tests import FALSE_ALARM, binomial_p, chi_square_p

PLAN = SgdPlan(examples=7, expected_batch=3, steps=12, noise_multiplier=0.5, averaging=0.5)


def weights(module: nn.Module) -> Tensor:
    return torch.cat([one.detach().reshape(-1) for one in module.parameters()])


def blobs(count: int, *path: str | int) -> tuple[Tensor, Tensor]:
    """Return three clouds of points in eight dimensions, easy to tell apart."""
    coins = SeededSource(3, "blobs", *path).generator()
    labels = coins.integers(0, CLASSES, count)
    centres = 3.0 * np.eye(CLASSES, 8)
    values = centres[labels] + 0.5 * coins.standard_normal((count, 8))
    return torch.from_numpy(values).float(), torch.from_numpy(labels)


# Sampling.


@pytest.mark.statistical
def test_samples_are_poisson(seed: int) -> None:
    """3,000 samples of 40 examples: sizes binomial (chi-square), each and each pair by rate.

    False alarm: 1e-6 for the sizes, and over all examples together by Bonferroni.
    """
    plan = SgdPlan(examples=40, expected_batch=6, steps=1, noise_multiplier=1.0)
    rate, trials = plan.sampling_rate, 3_000
    taken = np.zeros((trials, 40), dtype=np.bool_)
    for trial in range(trials):
        places = poisson_sample(plan, 40, SeededSource(seed, "sample", trial))
        assert places is not None
        taken[trial, places.numpy()] = True
    counts = np.bincount(taken.sum(1), minlength=41)
    assert chi_square_p(counts, stats.binom.pmf(np.arange(41), 40, rate)) > FALSE_ALARM
    for place in range(40):
        assert binomial_p(int(taken[:, place].sum()), trials, rate) > FALSE_ALARM / 40
    both = int((taken[:, 0] & taken[:, 1]).sum())
    assert binomial_p(both, trials, rate**2) > FALSE_ALARM
    # The twin: batches of fixed size.
    fixed = np.bincount(np.full(trials, 6), minlength=41)
    assert chi_square_p(fixed, stats.binom.pmf(np.arange(41), 40, rate)) < FALSE_ALARM


def test_a_full_batch_takes_everybody_in_parts() -> None:
    plan = SgdPlan(examples=5, expected_batch=5, steps=1, noise_multiplier=1.0)
    assert poisson_sample(plan, 5, SeededSource(1, "full")) is None
    assert list(parts(None, 5, 2)) == [slice(0, 2), slice(2, 4), slice(4, 5)]
    assert [one.tolist() for one in map(torch.as_tensor, parts(torch.arange(3), 9, 2))] == [
        *([0, 1], [2])
    ]
    assert list(parts(torch.arange(0), 9, 2)) == []


# A step is the clipped sum, plus noise, over the expected batch.


@pytest.mark.parametrize("name", ["mlp", "lstm", "cnn"])
def test_a_step_is_the_clipped_sum_and_the_noise_over_the_expected_batch(name: str) -> None:
    case = CASES[name]
    module, inputs, targets = made(case, name)
    plan = SgdPlan(
        examples=7,
        expected_batch=7,
        steps=1,
        noise_multiplier=1e-3,
        clipping=Flat(0.1),
        optimiser="sgd",
        momentum=0.0,
        learning_rate=1.0,
    )
    before = weights(module)
    summed = engine_sum(module, inputs, targets, loss=case.loss, clipping=plan.clipping)
    report = train(module, inputs, targets, plan, SeededSource(1, name), loss=case.loss)
    assert report.road == "book-keeping"
    gap = 7 * (before - weights(module)).double() - torch.cat(list(summed.values()))
    # Normal noise of scale 1e-4 does not reach nine times that, by construction.
    assert 0 < float(gap.abs().max()) < 9e-4


@pytest.mark.statistical
def test_the_noise_of_a_step_is_over_the_sensitivity_of_all_groups(seed: int) -> None:
    """10,100 weights without a gradient: what moves them is noise. False alarm 1e-6.

    Twins: noise over the largest bound, and over the sum of the bounds.
    """
    module = nn.Sequential(nn.Linear(100, 90), nn.Linear(90, 11))
    initialise(module, SeededSource(seed, "weights"))
    plan = SgdPlan(
        examples=50,
        expected_batch=25,
        steps=1,
        noise_multiplier=2.0,
        clipping=PerGroup.of({"0": 3.0, "1": 4.0}),
        optimiser="sgd",
        momentum=0.0,
        learning_rate=1.0,
    )
    before = weights(module)
    inputs, targets = torch.zeros(50, 100), torch.zeros(50, dtype=torch.int64)
    with PrivateTraining(
        module,
        inputs,
        targets,
        plan,
        SeededSource(seed, "training"),
        loss=lambda outputs, _: 0.0 * outputs.sum(1),
    ) as training:
        training.run()
    noise = 25 * (weights(module) - before).double().numpy()
    p = {scale: _variance_p(noise, 2.0 * scale) for scale in (5.0, 4.0, 7.0)}
    assert p[5.0] > FALSE_ALARM
    assert p[4.0] < FALSE_ALARM and p[7.0] < FALSE_ALARM
    assert abs(noise.mean()) < 10.0 * stats.norm.isf(FALSE_ALARM / 2) / np.sqrt(noise.size)


def _variance_p(sample: np.ndarray[tuple[int, ...], np.dtype[np.float64]], scale: float) -> float:
    below = float(stats.chi2.cdf(float(np.sum((sample / scale) ** 2)), sample.size))
    return 2 * min(below, 1 - below)


def test_an_empty_sample_still_gets_noise() -> None:
    module, inputs, targets = made(CASES["mlp"], "empty")
    plan = SgdPlan(examples=7, expected_batch=1e-9, steps=2, noise_multiplier=1.0)
    assert train(module, inputs, targets, plan, SeededSource(1, "empty")).moved > 0


def test_parts_do_not_matter() -> None:
    found = []
    for most in (2, 100):
        with new_run():
            module, inputs, targets = made(CASES["lstm"], "parts")
            train(module, inputs, targets, PLAN, SeededSource(1, "parts"), micro_batch=most)
        found.append(weights(module))
    assert torch.allclose(found[0], found[1], atol=1e-4)


@pytest.mark.parametrize("kind", ["sgd", "adam"])
def test_optimisers_are_those_of_torch(kind: str) -> None:
    plan = SgdPlan(
        examples=1,
        expected_batch=1,
        steps=1,
        noise_multiplier=1.0,
        optimiser=kind,  # type: ignore[arg-type]
        learning_rate=0.1,
    )
    ours = torch.linspace(-1, 1, 9)
    theirs = nn.Parameter(ours.clone())
    reference: torch.optim.Optimizer = torch.optim.Adam([theirs], lr=0.1)
    if kind == "sgd":
        reference = torch.optim.SGD([theirs], lr=0.1, momentum=0.9)
    optimiser = optimiser_for(plan, ours)
    for step in range(1, 6):
        gradient = torch.sin(step * torch.arange(9.0))
        theirs.grad = gradient.clone()
        reference.step()
        optimiser.move(ours, gradient, step)
    assert torch.allclose(ours, theirs.detach(), atol=1e-6)


def test_averaging_is_the_mean_of_the_last_weights() -> None:
    plan = SgdPlan(examples=7, expected_batch=3, steps=4, noise_multiplier=1.0, averaging=0.5)
    module, inputs, targets = made(CASES["mlp"], "averaging")
    with PrivateTraining(module, inputs, targets, plan, SeededSource(1, "average")) as training:
        seen = []
        for step in range(1, 5):
            training.run(step)
            seen.append(weights(module))
        training.finish()
    assert torch.allclose(weights(module), (seen[2] + seen[3]) / 2, atol=1e-6)


def test_weight_decay_pulls_to_zero() -> None:
    norms = []
    for decay in (0.0, 5.0):
        plan = SgdPlan(
            examples=7,
            expected_batch=3,
            steps=20,
            noise_multiplier=1e-3,
            optimiser="sgd",
            learning_rate=0.05,
            weight_decay=decay,
        )
        with new_run():
            module, inputs, targets = made(CASES["mlp"], "decay")
            train(module, inputs, targets, plan, SeededSource(1, "decay"))
        norms.append(float(weights(module).norm()))
    assert norms[1] < 0.5 * norms[0]


# Checkpoints.


@pytest.mark.parametrize("optimiser", ["sgd", "adam"])
@pytest.mark.parametrize("name", ["mlp", "lstm"])
def test_a_training_taken_up_again_is_the_one_never_interrupted(name: str, optimiser: str) -> None:
    from dataclasses import replace

    plan = replace(PLAN, optimiser=optimiser)  # type: ignore[arg-type]
    module, inputs, targets = made(CASES[name], name)
    train(module, inputs, targets, plan, SeededSource(1, "whole"))
    with new_run():
        first, *_ = made(CASES[name], name)
        with PrivateTraining(first, inputs, targets, plan, SeededSource(1, "whole")) as training:
            training.run(7)
            content = training.snapshot()
        second, *_ = made(CASES[name], "another start")
        source = SeededSource(1, "whole")
        with PrivateTraining(second, inputs, targets, plan, source) as training:
            training.restore(content)
            assert training.step == 7
            training.run()
            report = training.finish()
    assert torch.equal(weights(second), weights(module))
    assert report.steps == plan.steps


def test_bad_checkpoints_are_refused() -> None:
    from dataclasses import replace

    module, inputs, targets = made(CASES["mlp"], "bad")
    with PrivateTraining(module, inputs, targets, PLAN, SeededSource(1, "bad")) as training:
        training.run(1)
        content = training.snapshot()
        with pytest.raises(BadSnapshot):
            training.restore(b"nonsense")
        with pytest.raises(BadSnapshot):
            training.restore(content[:-1])
    other = replace(PLAN, noise_multiplier=0.6)
    with (
        PrivateTraining(module, inputs, targets, other, SeededSource(1, "plan")) as training,
        pytest.raises(BadSnapshot, match="another plan"),
    ):
        training.restore(content)
    unlike, values, classes = made(CASES["cnn"], "unlike")
    with (
        PrivateTraining(unlike, values, classes, PLAN, SeededSource(1, "module")) as training,
        pytest.raises(BadSnapshot, match="another module"),
    ):
        training.restore(content)


# One example's share.


@settings(max_examples=60)
@given(
    name=st.sampled_from(["mlp", "cnn", "attention", "linear on few positions", "used twice"]),
    scale=st.sampled_from([0.0, 1e-20, 1e-3, 1.0, 1e3, 1e6, 1e12]),
    clipping=st.sampled_from(
        [Flat(1.0), Flat(1e-3), Automatic(1.0), PerGroup.of({"": 0.3, "head": 0.4, "0": 0.5})]
    ),
    path=st.integers(0, 5),
)
def test_no_example_says_more_than_the_bound(
    name: str, scale: float, clipping: Flat | Automatic | PerGroup, path: int
) -> None:
    with new_run():
        module, inputs, targets = made(CASES[name], name, path, scale=scale)
    try:
        found = engine_sum(
            module, inputs[:1], targets[:1], loss=CASES[name].loss, clipping=clipping
        )
    except DeadRun:
        assert scale > 1e3  # only what floats cannot hold may be refused
        return
    share = float(torch.cat(list(found.values())).norm())
    assert share <= clipping.sensitivity


def cancelling_share(path: int, size: float, rest: float) -> float:
    """Return what one example says whose positions cancel but for a small rest."""
    case = Case(lambda: nn.Sequential(nn.Linear(30, 40), nn.Flatten(), nn.Linear(160, 3)), (4, 30))
    with new_run():
        module, inputs, targets = made(case, "cancel", path)
    inputs[:, 1], inputs[:, 3] = inputs[:, 0], inputs[:, 2]
    with torch.no_grad():
        head = module[2].weight  # type: ignore[index]
        head[:, 40:80] = -head[:, :40] * (1 + rest)
        head[:, 120:] = -head[:, 80:120] * (1 + rest)
        head *= size
    for parameter in module[2].parameters():  # type: ignore[index]
        parameter.requires_grad_(False)
    found = engine_sum(
        module, inputs[:1], targets[:1], loss=lambda out, _: out[:, 0], clipping=Flat(1.0)
    )
    return float(torch.cat(list(found.values())).norm())


@settings(max_examples=60)
@given(
    st.integers(0, 1000),
    st.sampled_from([1.0, 1e2, 1e4, 1e6]),
    st.sampled_from([0.1, 1e-2, 1e-3, 1e-4, 1e-5]),
)
def test_cancelling_positions_do_not_hide_a_gradient(path: int, size: float, rest: float) -> None:
    """Gram matrices lose the digits that are left over; the share stays bounded all the same."""
    assert cancelling_share(path, size, rest) <= 1.0


def test_without_a_margin_for_cancellation_a_gradient_passes_unclipped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The twin: norms from bare float32 Gram matrices let one example say 100 times the bound."""
    monkeypatch.setattr(contributions, "_CANCELLED", 0)
    assert max(cancelling_share(path, 1e6, 1e-4) for path in range(20)) > 100


@pytest.mark.parametrize("clipping", [Flat(1.0), Automatic(1.0)])
def test_gradients_that_vanish_stay_zero(clipping: Flat | Automatic) -> None:
    module, inputs, targets = made(CASES["attention"], "vanish")
    found = engine_sum(
        module, inputs, targets, loss=lambda out, _: 0.0 * out.sum(1), clipping=clipping
    )
    assert all(not one.any() for one in found.values())


def test_automatic_clipping_scales_small_gradients_up() -> None:
    module, inputs, targets = made(CASES["mlp"], "small", scale=1.0)

    def faint(outputs: Tensor, wanted: Tensor) -> Tensor:
        return 1e-3 * cross_entropy(outputs, wanted)

    found = engine_sum(module, inputs[:1], targets[:1], loss=faint, clipping=Automatic(1.0, 1e-6))
    assert float(torch.cat(list(found.values())).norm()) == pytest.approx(1.0, abs=0.01)


# What is refused, and what dies.


def test_batch_normalisation_is_refused() -> None:
    module = nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4), nn.Linear(4, 3))
    with pytest.raises(UnsupportedModule, match=r"1 \(BatchNorm1d\) mixes the examples"):
        train(module, *blobs(7, "norm"), PLAN, SeededSource(1, "norm"))


def test_coupling_that_no_type_tells_is_refused() -> None:
    class Centred(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = nn.Linear(8, 3)

        def forward(self, values: Tensor) -> Tensor:
            logits: Tensor = self.head(values - values.mean(0))
            return logits

    with pytest.raises(UnsupportedModule, match="depends on the others"):
        train(Centred(), *blobs(7, "couple"), PLAN, SeededSource(1, "couple"))


def test_weights_used_behind_a_layers_back_are_refused() -> None:
    class Behind(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = nn.Linear(8, 8), nn.Linear(8, 3)

        def forward(self, values: Tensor) -> Tensor:
            logits: Tensor = self.two(torch.relu(values @ self.one.weight + self.one(values)))
            return logits

    with pytest.raises(UnsupportedModule, match="without calling the layer"):
        train(Behind(), *blobs(7, "behind"), PLAN, SeededSource(1, "behind"))
    slow = train(Behind(), *blobs(7, "slowly"), PLAN, SeededSource(1, "slowly"), per_example=True)
    assert slow.road == "per-example"


@pytest.mark.parametrize("positions", [5, 7])
def test_a_moved_axis_of_examples_is_refused(positions: int) -> None:
    """With as many positions as examples no shape tells: the norms do."""

    class Turned(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.head = nn.Linear(8, 8), nn.Linear(8, 3)

        def forward(self, values: Tensor) -> Tensor:
            hidden = torch.relu(self.body(values.transpose(0, 1))).transpose(0, 1)
            logits: Tensor = self.head(hidden.mean(1))
            return logits

    module, inputs, targets = made(Case(Turned, (positions, 8)), "turned", positions)
    full = SgdPlan(examples=7, expected_batch=7, steps=3, noise_multiplier=1.0)
    with pytest.raises(UnsupportedModule, match="axis"):
        train(module, inputs, targets, full, SeededSource(1, "turned", positions))


def test_a_loss_that_is_no_number_stops_the_run_though_its_gradient_is_one() -> None:
    def marred(outputs: Tensor, wanted: Tensor) -> Tensor:
        nothing = torch.where(wanted == 1, torch.nan, 0.0)
        return cross_entropy(outputs, wanted) + nothing

    for slowly in (False, True):
        source = SeededSource(1, "marred", int(slowly))
        full = SgdPlan(examples=30, expected_batch=30, steps=3, noise_multiplier=1.0)
        with pytest.raises(DeadRun, match="loss of an example"):
            train(mlp(), *blobs(30, "marred"), full, source, loss=marred, per_example=slowly)


def test_dropout_is_refused_unless_it_is_off() -> None:
    module = nn.Sequential(nn.Dropout(0.5), nn.Linear(8, 3))
    with pytest.raises(UnsupportedModule, match="random"):
        train(module, *blobs(7, "drop"), PLAN, SeededSource(1, "drop"))
    module.eval()
    assert train(module, *blobs(7, "off"), PLAN, SeededSource(1, "off")).moved > 0


def test_other_layers_take_the_slow_road_and_the_report_says_so() -> None:
    module = nn.Sequential(nn.Linear(8, 4), nn.GroupNorm(2, 4), nn.Linear(4, 3))
    report = train(module, *blobs(7, "slow"), PLAN, SeededSource(1, "slow"))
    assert report.road == "per-example"
    assert report.without_a_tap == ("1 (GroupNorm)",)


def test_a_run_without_gradients_is_dead() -> None:
    def flat(outputs: Tensor, targets: Tensor) -> Tensor:
        return 0.0 * cross_entropy(outputs, targets)

    with pytest.raises(DeadRun, match="All gradients are zero"):
        train(mlp(), *blobs(7, "zero"), PLAN, SeededSource(1, "zero"), loss=flat)


def test_a_run_whose_weights_are_no_numbers_is_dead() -> None:
    from dataclasses import replace

    plan = replace(PLAN, learning_rate=1e38, optimiser="sgd")
    with pytest.raises(DeadRun):
        train(mlp(), *blobs(7, "far"), plan, SeededSource(1, "far"))


def test_an_example_without_a_number_stops_the_run() -> None:
    inputs, targets = blobs(7, "nan")
    inputs[2, 2] = float("nan")
    full = SgdPlan(examples=7, expected_batch=7, steps=3, noise_multiplier=1.0)
    with pytest.raises(DeadRun, match="NaN"):
        train(mlp(), inputs, targets, full, SeededSource(1, "nan"))


def test_the_gates_by_themselves() -> None:
    check_weights(torch.ones(3))
    for bad in (float("nan"), float("inf")):
        with pytest.raises(DeadRun):
            check_weights(torch.tensor([1.0, bad]))
    assert check_moved(torch.zeros(4), torch.ones(4)) == 2.0
    with pytest.raises(DeadRun):
        check_moved(torch.ones(2), torch.ones(2))
    watch = GradientWatch()
    watch.check()
    watch.see(torch.tensor([0.0, 0.0]))
    with pytest.raises(DeadRun):
        watch.check()
    watch.see(torch.tensor([0.0, 1e-20]))
    watch.check()
    assert check_learnt([0, 1, 0], [0, 1, 0]) == 1.0
    with pytest.raises(DeadRun, match="majority"):
        check_learnt([0, 0, 0], [0, 1, 0])
    with pytest.raises(OutOfDomain):
        check_learnt([0], [0, 1])


def test_examples_and_targets_have_to_be_as_many() -> None:
    inputs, targets = blobs(7, "many")
    with pytest.raises(OutOfDomain):
        train(mlp(), inputs[:5], targets, PLAN, SeededSource(1, "many"))


def test_first_weights_follow_the_source() -> None:
    found = []
    for path in ("one", "one", "two"):
        with new_run():
            found.append(weights(made(CASES["lstm"], path)[0]))
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])
    layer = nn.Linear(100, 200)
    initialise(layer, SeededSource(1, "reach"))
    assert (
        0.099 < float(layer.weight.detach().abs().max()) < 0.1
    )  # 20,000 uniform draws: 1e-87 to fail
    with pytest.raises(UnsupportedModule, match="No law"):
        initialise(nn.PReLU(), SeededSource(1, "unknown"))


# Something is learnt, and the same from the same coins.


def test_easy_examples_are_learnt_through_the_noise() -> None:
    inputs, targets = blobs(2_000, "train")
    plan = SgdPlan(
        examples=2_000, expected_batch=200, steps=60, noise_multiplier=1.7, learning_rate=0.02
    )
    found = []
    for _ in range(2):
        module = mlp()
        with new_run():
            initialise(module, SeededSource(2, "weights"))
            train(module, inputs, targets, plan, SeededSource(2, "training"))
        found.append(weights(module))
    assert torch.equal(found[0], found[1])
    with torch.no_grad():
        tested, labels = blobs(500, "test")
        assert check_learnt(module(tested).argmax(1), labels, margin=0.3) > 0.9


@pytest.mark.parametrize("per_example", [False, True])
@pytest.mark.parametrize("batch", [40.0, 13.0])
def test_examples_without_a_number_can_be_left_out_and_change_nothing(
    per_example: bool, batch: float
) -> None:
    """A run that stops tells of an example; one that leaves it out is as if it were not there."""
    plan = SgdPlan(examples=40, expected_batch=batch, steps=4, noise_multiplier=0.5)
    inputs, labels = blobs(40, "broken")
    broken = inputs.clone()
    broken[3], broken[17, 2], broken[39] = float("nan"), float("inf"), -float("inf")
    found = []
    for values in (broken, inputs):
        module = mlp()
        with new_run():
            initialise(module, SeededSource(1, "weights"))
            training = PrivateTraining(
                module,
                values,
                labels,
                plan,
                SeededSource(1, "training"),
                per_example=per_example,
                skips=values is broken,
            )
            if values is inputs:  # the same examples, taken out by hand
                _without(training, {3, 17, 39})
            with training:
                training.run()
                training.finish()
        found.append(weights(module))
    assert found[0].numpy() == pytest.approx(found[1].numpy(), abs=1e-6)


def _without(training: PrivateTraining, gone: set[int]) -> None:
    """Let a training pass over some examples whenever they are drawn."""
    add = training._add

    def kept(part: Tensor | slice) -> None:
        places = torch.arange(len(training._targets))[part]
        kept_places = places[[int(one) not in gone for one in places]]
        if len(kept_places):
            add(kept_places)

    training._add = kept  # type: ignore[method-assign] # the point of it


def test_the_noise_covers_what_sums_of_single_floats_are_off_by() -> None:
    """One example less moves the others up: in single floats they then add up to another sum."""
    count = 20_000
    inputs, labels = blobs(count, "many")
    plan = SgdPlan(examples=count, expected_batch=count, steps=1, noise_multiplier=1.0)
    module = mlp()
    with new_run():
        initialise(module, SeededSource(2, "weights"))
    whole, rest, own = (
        torch.cat(
            list(
                engine_sum(
                    module, inputs[some], labels[some], loss=cross_entropy, clipping=plan.clipping
                ).values()
            )
        )
        for some in (slice(None), slice(1, None), slice(0, 1))
    )
    beyond = float((whole - rest - own).norm())
    assert beyond > 1e-5  # more than the margin of clipping
    assert float(own.norm()) + beyond <= plan.noise_scale
