"""Fake devices in training, scored: how far they pull, and whether the tallies give them away."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from noisefloor.ads.bit_training import BitTraining
from noisefloor.ads.factors import AdModel
from noisefloor.adversary.ads.detectors import biased_bits, roc, uneven_coordinates
from noisefloor.adversary.ads.poisoned_training import crowd_bias, spread_bias
from noisefloor.checks import Floats
from noisefloor.mechanisms.base import Reports
from noisefloor.randomness import SeededSource
from noisefloor_sim.pipelines.ads.forgery import (
    fake_values,
    fakes_beside,
    target_cells,
    written_reports,
)
from noisefloor_sim.pipelines.base import Metric
from noisefloor_sim.pipelines.clicks.games import share_metric
from noisefloor_sim.scenario.model import Scenario

EPOCHS = 1_000
"""Honest and attacked rounds that the detectors are tried on."""

REPORTS = 1_000
"""Reports in each of them: small rounds, so that there is something to miss."""

EACH = 5
"""Reports that each cell gets at least, on average: the chi-square test wants as many."""

MOST_CELLS = 1 << 10
"""Cells of the model beyond which the detectors are not tried."""

FALSE_ALARMS = 0.01


@dataclass(frozen=True, slots=True)
class RoundTallies:
    """Honest and forged reports of one round, and what fakes would say that only lie."""

    honest: NDArray[np.int64]
    forged: NDArray[np.int64]
    lies: Floats


@dataclass(slots=True)
class TrainingFraud:
    """Tallies of honest and forged reports, by round."""

    scenario: Scenario
    training: BitTraining
    rounds: list[RoundTallies] = field(default_factory=list)

    def open(self, model: AdModel) -> None:
        """Begin a round that answers a model."""
        honest, forged = np.zeros((2, 2 * self.training.cells), dtype=np.int64)
        lies = fake_values(self.scenario, self.training, model)
        self.rounds.append(RoundTallies(honest, forged, lies))

    def count(self, honest: Reports, forged: Reports | None) -> None:
        """Add a cohort's reports to the round that is open."""
        tallies = self.rounds[-1]
        tallies.honest[...] += self.training.bit.tally(honest)
        if forged is not None:
            tallies.forged[...] += self.training.bit.tally(forged)

    def metrics(self, source: SeededSource) -> list[Metric]:
        """Return bias, its formula, and how well the detectors do."""
        found = [self._pull(one) for one in self.rounds if one.honest.any() and one.forged.any()]
        if not found:
            return []
        pulls, formulas, errors = np.array(found).T
        error = float(np.sqrt(np.mean(errors**2) / len(errors)))
        return [
            Metric.normal("fraud.bias", float(pulls.mean()), error, len(pulls)),
            Metric("fraud.bias_formula", float(formulas.mean()), n=len(pulls)),
            *self._detection(source),
        ]

    def _pull(self, tallies: RoundTallies) -> tuple[float, float, float]:
        """Return by how much the fakes of a round pulled, by formula, and the standard error."""
        bit, cells = self.training.bit, target_cells(self.training, self.scenario.threat.pushed_ad)
        n, fakes = int(tallies.honest.sum()), int(tallies.forged.sum())
        clean = bit.estimate(tallies.honest, n).value[cells]
        pulled = bit.estimate(tallies.honest + tallies.forged, n + fakes)
        lie, share = -float(tallies.lies[cells].mean()), fakes / (n + fakes)
        formula = self._formula(share, -float(clean.mean()), lie)
        pull = -float((pulled.value[cells] - clean).mean())
        return pull, formula, share * self._forged_error(tallies.forged)

    def _forged_error(self, forged: NDArray[np.int64]) -> float:
        """Return the standard error of what fakes say; a crowd tosses no coin."""
        if self.scenario.threat.forgery == "maximal":
            return 0.0
        return float(self.training.bit.estimate(forged, int(forged.sum())).standard_error.mean())

    def _formula(self, share: float, honest: float, lie: float) -> float:
        """Return the expected pull, in units of the clip."""
        forgery, bit = self.scenario.threat.forgery, self.training.bit
        if forgery == "maximal":
            cells = len(target_cells(self.training, self.scenario.threat.pushed_ad))
            return crowd_bias(bit, fakes=share, honest=honest, coordinates=cells)
        if forgery == "evasive":
            return spread_bias(bit, fakes=share, honest=honest)
        return share * (lie - honest)

    def _detection(self, source: SeededSource) -> list[Metric]:
        """Try the detectors on many small rounds, honest and attacked.

        The honest hold nothing in them, which is no worse than what they may hold: the detectors
        allow for any data.
        """
        if self.training.cells > MOST_CELLS:
            return []
        honest = self._suspicion(self._tallies(source.child("honest"), is_attacked=False))
        attacked = self._suspicion(self._tallies(source.child("attacked"), is_attacked=True))
        found = roc(honest, attacked, false_positive_rate=FALSE_ALARMS)
        return [
            Metric("fraud.auc", found.auc, n=EPOCHS),
            share_metric("fraud.found", int((attacked <= FALSE_ALARMS).sum()), EPOCHS),
            share_metric("fraud.false_alarms", int((honest <= FALSE_ALARMS).sum()), EPOCHS),
        ]

    def _suspicion(self, tallies: NDArray[np.int64]) -> Floats:
        """Return a p-value for each round: the smaller of two tests, times two."""
        bit = self.training.bit
        both = np.minimum(uneven_coordinates(bit, tallies), biased_bits(bit, tallies))
        return np.asarray(np.minimum(1.0, 2 * both))

    def _tallies(self, source: SeededSource, *, is_attacked: bool) -> NDArray[np.int64]:
        bit, reports = self.training.bit, max(REPORTS, EACH * self.training.cells)
        cells = bit.choose(EPOCHS * reports, source)
        rows = bit.answer(cells, np.zeros(len(cells)), source).reshape(EPOCHS, reports)
        if is_attacked:
            count = EPOCHS * fakes_beside(self.scenario, reports)
            forged = self._forged(count, source.child("forged"))
            rows = np.concatenate([rows, forged.reshape(EPOCHS, -1)], axis=1)
        codes = rows.astype(np.int64) + np.arange(EPOCHS)[:, None] * 2 * bit.dimension
        counts = np.bincount(codes.reshape(-1), minlength=EPOCHS * 2 * bit.dimension)
        return counts.reshape(EPOCHS, -1)

    def _forged(self, count: int, source: SeededSource) -> NDArray[np.uint32]:
        if self.scenario.threat.forgery != "input":
            return written_reports(self.scenario, self.training, count, source)
        drawn = self.training.bit.choose(count, source)
        return self.training.bit.answer(drawn, self.rounds[0].lies[drawn], source)
