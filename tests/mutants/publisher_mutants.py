"""Mutants of the publisher: noise, clipping and charges of released models."""

from mutants.mutant import BROKEN, MISFIT, UNACCOUNTED, Mutant, scenario

MODELS = scenario(
    "models",
    """
    days: 7
    population: {users: 1000, cohort: 512, churn_per_day: 0.0}
    attacks: [models.canary]
    pipelines:
      models: {source: synthetic, method: logistic, epsilon: 1.0, budget: 10.0}
    """,
)
SGD = ("pipelines.models.method=private-sgd", "pipelines.models.epochs=20")
TABLES = ("pipelines.models.method=anonymising-first",)

LOGISTIC = "platform/noisefloor/publication/logistic_regression.py"
SGD_NOISE = "platform/noisefloor/publication/private_sgd/subsampled_gaussian.py"
CONTRIBUTIONS = "platform/noisefloor/publication/private_sgd/contributions.py"
ENTRIES = "platform/noisefloor/publication/synthesis/noise_budget.py"
PUBLISHER = "platform/noisefloor/roles/model_publisher.py"
LEDGER = "platform/noisefloor/accounting/ledger.py"

RELEASE = "release"

_NOISE = "return drawn * np.float32(sigma * (2 - _SAFETY))"
_STEP = "add_noise(sums, plan.noise_scale, source)"

PUBLISHER_MUTANTS = (
    Mutant(
        "release-no-renyi",
        "The filter is charged next to nothing for the noise of a release.",
        PUBLISHER,
        "return ReleaseLoss.of(claim.proved) if method.loss is None else method.loss(request)",
        "return ReleaseLoss(epsilon=1e-9)",
        MODELS,
        RELEASE,
        (UNACCOUNTED,),
        in_suite=True,
    ),
    Mutant(
        "release-no-noise",
        "Logistic regression adds no noise to its gradients.",
        LOGISTIC,
        _NOISE,
        "return drawn * np.float32(0)",
        MODELS,
        RELEASE,
        in_suite=True,
    ),
    Mutant(
        "release-half-noise",
        "Logistic regression adds half of the noise.",
        LOGISTIC,
        _NOISE,
        "return drawn * np.float32(sigma / 2)",
        MODELS,
        RELEASE,
    ),
    Mutant(
        "release-same-noise-each-step",
        "Logistic regression adds the same noise in each step.",
        LOGISTIC,
        "drawn = np.stack([stream.normals(rows) for stream in self.streams], axis=1)",
        "drawn = np.stack([stream.normals(rows) for stream in self.streams], axis=1)\n"
        '        drawn = self.__dict__.setdefault(f"kept {rows}", drawn)',
        MODELS,
        RELEASE,
    ),
    Mutant(
        "release-not-clipped",
        "Gradients of records are not clipped.",
        LOGISTIC,
        "factor = np.minimum(1, self.limits / np.maximum(lengths, np.float32(1e-12)))",
        "factor = np.ones_like(lengths)",
        MODELS,
        RELEASE,
        in_suite=True,
    ),
    Mutant(
        "release-sgd-no-noise",
        "Private SGD adds no noise.",
        SGD_NOISE,
        _STEP,
        "add_noise(sums, 1e-6 * plan.noise_scale, source)",
        MODELS,
        RELEASE,
        settings=SGD,
    ),
    Mutant(
        "release-sgd-half-noise",
        "Private SGD adds half of the noise.",
        SGD_NOISE,
        _STEP,
        "add_noise(sums, 0.5 * plan.noise_scale, source)",
        MODELS,
        RELEASE,
        settings=SGD,
    ),
    Mutant(
        "release-sgd-quarter-less-noise",
        "Private SGD adds three quarters of the noise.",
        SGD_NOISE,
        _STEP,
        "add_noise(sums, 0.75 * plan.noise_scale, source)",
        MODELS,
        RELEASE,
        (BROKEN, MISFIT),
        settings=SGD,
    ),
    Mutant(
        "release-sgd-not-clipped",
        "Private SGD does not clip the gradients of examples.",
        CONTRIBUTIONS,
        "found.append(torch.reciprocal(norms.clamp_(min=least)).mul_(least))",
        "found.append(torch.ones_like(norms))",
        MODELS,
        RELEASE,
        settings=SGD,
    ),
    Mutant(
        "release-tables-half-noise",
        "Counts of released tables get half of the noise.",
        ENTRIES,
        "return values + (drawn - self.table.reach).reshape(values.shape)",
        "return values + ((drawn - self.table.reach) // 2).reshape(values.shape)",
        MODELS,
        RELEASE,
        settings=TABLES,
    ),
    Mutant(
        "release-not-charged",
        "A release is made without a charge.",
        PUBLISHER,
        "            self._charge(request, claim)\n            made",
        "            made",
        MODELS,
        RELEASE,
        (UNACCOUNTED,),
        in_suite=True,
    ),
    Mutant(
        "release-charged-twice",
        "A release is charged twice.",
        PUBLISHER,
        "            claim.proved,\n            loss=self.loss(request),",
        "            claim.proved,\n            2,\n            loss=self.loss(request),",
        MODELS,
        RELEASE,
        (UNACCOUNTED,),
    ),
    Mutant(
        "release-debit-not-kept",
        "The ledger writes an entry and leaves the balance as it was.",
        LEDGER,
        "account.total = added(account.total, entry)",
        "account.total = account.total",
        MODELS,
        RELEASE,
        (UNACCOUNTED,),
    ),
)
