"""Mutants of fine-tuning: what is clipped, by which norm, and the noise of several groups."""

from mutants.mutant import UNACCOUNTED, Mutant, scenario

FINETUNING = scenario(
    "finetuning",
    """
    days: 1
    population: {users: 200, cohort: 256, churn_per_day: 0.0}
    attacks: [finetuning.canary]
    pipelines:
      finetuning:
        {source: made-up, backbone: made-up, method: combined-lora, clipping: groups, clip: 0.2,
         steps: 4, release_every_days: 1, canaries: 500}
    """,
)
ENTRIES = ("pipelines.finetuning.method=sparse",)

CONTRIBUTIONS = "platform/noisefloor/publication/private_sgd/contributions.py"
MATRICES = "platform/noisefloor/publication/private_sgd/matrix_gradients.py"
CLIPPING = "platform/noisefloor/publication/private_sgd/clipping.py"
MASKS = "platform/noisefloor/publication/fine_tuning/methods/method_training.py"
SGD_NOISE = "platform/noisefloor/publication/private_sgd/subsampled_gaussian.py"
PUBLISHER = "platform/noisefloor/roles/model_publisher.py"

RELEASE = "fine-tuning"

_CLIP = "found.append(torch.reciprocal(norms.clamp_(min=least)).mul_(least))"

FINETUNING_MUTANTS = (
    Mutant(
        "finetuning-mask-not-in-norm",
        "The norm of a gradient is that of all units, also of those that masks leave out.",
        MATRICES,
        "found.append((_of_block(block, inputs, gradients, sums), block.part))",
        "own = _of_block(block, inputs, gradients, sums)\n"
        "                own.squares = _outer_products([(inputs, sums)], gradients, []).squares\n"
        "                found.append((own, block.part))",
        FINETUNING,
        RELEASE,
        in_suite=True,
    ),
    Mutant(
        "finetuning-entries-not-in-norm",
        "The norm of a gradient is that of all entries, also of those that masks leave out.",
        MATRICES,
        "written = torch.bmm(gradients.transpose(1, 2), inputs).mul_(flags)",
        "written = torch.bmm(gradients.transpose(1, 2), inputs)",
        FINETUNING,
        RELEASE,
        settings=ENTRIES,
    ),
    Mutant(
        "finetuning-not-masked",
        "Units that a plan leaves out are trained all the same.",
        MASKS,
        "masks=masks or mask_rule(plan, module),",
        "masks=None,",
        FINETUNING,
        RELEASE,
    ),
    Mutant(
        "finetuning-group-not-clipped",
        "The first of all groups is not clipped.",
        CONTRIBUTIONS,
        _CLIP,
        "found.append(\n"
        "                torch.reciprocal(norms.clamp_(min=least)).mul_(least)\n"
        "                if found\n"
        "                else torch.ones_like(norms)\n"
        "            )",
        FINETUNING,
        RELEASE,
        in_suite=True,
    ),
    Mutant(
        "finetuning-last-group-not-clipped",
        "The head is not clipped.",
        CONTRIBUTIONS,
        _CLIP,
        "found.append(\n"
        "                torch.reciprocal(norms.clamp_(min=least)).mul_(least)\n"
        "                if len(found) + 1 < len(squares)\n"
        "                else torch.ones_like(norms)\n"
        "            )",
        FINETUNING,
        RELEASE,
    ),
    Mutant(
        "finetuning-noise-for-one-group",
        "The noise of several groups is that of one.",
        CLIPPING,
        "return math.hypot(*self.bounds)",
        "return max(self.bounds)",
        FINETUNING,
        RELEASE,
        in_suite=True,
    ),
    Mutant(
        "finetuning-half-noise",
        "A step adds half of the noise.",
        SGD_NOISE,
        "add_noise(sums, plan.noise_scale, source)",
        "add_noise(sums, 0.5 * plan.noise_scale, source)",
        FINETUNING,
        RELEASE,
    ),
    Mutant(
        "finetuning-not-charged",
        "A release is made without a charge.",
        PUBLISHER,
        "            self._charge(request, claim)\n            made",
        "            made",
        FINETUNING,
        RELEASE,
        (UNACCOUNTED,),
    ),
)
