"""Checkpoints: a training taken up again is the one never interrupted."""

import pytest
import torch

from noisefloor.errors import BadSnapshot
from noisefloor.publication.private_sgd import PrivateTraining, train
from noisefloor.randomness import SeededSource, new_run
from private_sgd_cases import CASES, PLAN, made, weights


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
