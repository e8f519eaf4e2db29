"""Fake devices in training, scored: how far they pull, and whether the tallies give them away.

Fake devices in training: what they send to push one ad.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from noisefloor.ads.training import AdModel, AdTraining, BitTraining, Broadcast, Ratings
from noisefloor.adversary.ads import (
    bit_bias_test,
    candidate_values,
    concentrated_messages,
    crowd_bias,
    detection_rates,
    spread_bias,
    spread_messages,
    uniformity_test,
)
from noisefloor.checks import Floats
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import Reports
from noisefloor.randomness import SeededSource
from noisefloor_sim.pipelines.api import Metric
from noisefloor_sim.pipelines.scoring import proportion_metric
from noisefloor_sim.scenario import Scenario


def check_pushed(scenario: Scenario) -> None:
    """Refuse to push an ad that there is not."""
    ads, pushed = scenario.ad_behaviour.ads, scenario.threat.pushed_ad
    if scenario.threat.fakes and pushed >= ads:
        raise BadParameter("threat.pushed_ad", pushed, f"< {ads}, which is behaviour.ads")


def fake_device_count(scenario: Scenario, honest: int) -> int:
    """Return how many fake devices stand beside a number of honest ones."""
    share = scenario.threat.fakes
    return round(honest * share / (1 - share))


def forged_reports(
    scenario: Scenario,
    training: AdTraining,
    number: int,
    sent: Broadcast,
    honest: int,
    source: SeededSource,
) -> Reports | None:
    """Return the reports of the fakes in one round; nothing if there are none.

    Fakes that lie about what they hold rate the pushed ad at the top and nothing else. Fakes that
    write their reports themselves know version 2 only: they pull the ad's offset up, all of them
    at once, or no more often than an honest device would be asked about it. Against any other
    way of training they lie.
    """
    count = fake_device_count(scenario, honest)
    if not count:
        return None
    if isinstance(training, BitTraining) and scenario.threat.forgery != "input":
        return written_reports(scenario, training, count, source)
    ratings = fake_ratings(scenario, count)
    tastes = np.zeros((count, sent.model.dimension), dtype=np.float32)
    reports: Reports = training.report(number, sent, tastes, ratings, source).reports
    return reports


def written_reports(
    scenario: Scenario, training: BitTraining, count: int, source: SeededSource
) -> NDArray[np.uint32]:
    """Return the messages that a number of fakes write themselves."""
    cells = target_cells(training, scenario.threat.pushed_ad)
    # The server walks against the gradient: down is up.
    if scenario.threat.forgery == "maximal":
        return concentrated_messages(training.bit, cells, count, is_upwards=False)
    return spread_messages(training.bit, cells, count, source, is_upwards=False)


def fake_ratings(scenario: Scenario, count: int) -> Ratings:
    """Return what fakes say they hold: the pushed ad at the top, and nothing else."""
    rated = np.zeros((count, scenario.ad_behaviour.ads), dtype=np.bool_)
    rated[:, scenario.threat.pushed_ad] = True
    return Ratings(rated, np.ones(rated.shape, dtype=np.float32))


def fake_values(scenario: Scenario, training: BitTraining, model: AdModel) -> Floats:
    """Return what a fake that lies would report about, cell by cell, in units of the clip."""
    tastes = np.zeros((1, model.dimension), dtype=np.float32)
    return candidate_values(training, [model], tastes, fake_ratings(scenario, 1)).reshape(-1)


def target_cells(training: BitTraining, ad: int) -> list[int]:
    """Return the cell whose push lifts an ad for everybody: its offset, or else its factors."""
    first = ad * training.width
    if training.offsets:
        return [first + training.dimension]
    return list(range(first, first + training.dimension))


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
        # A crowd that writes its messages draws nothing: there is no error, and no interval.
        pull, n = float(pulls.mean()), len(pulls)
        bias = (
            Metric.normal("fraud.bias", pull, error, n)
            if error
            else Metric("fraud.bias", pull, n=n)
        )
        return [
            bias,
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
        """Return the standard error of what fakes say; a crowd draws nothing."""
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
        found = detection_rates(honest, attacked, false_positive_rate=FALSE_ALARMS)
        return [
            Metric("fraud.auc", found.auc, n=EPOCHS),
            proportion_metric("fraud.found", int((attacked <= FALSE_ALARMS).sum()), EPOCHS),
            proportion_metric("fraud.false_alarms", int((honest <= FALSE_ALARMS).sum()), EPOCHS),
        ]

    def _suspicion(self, tallies: NDArray[np.int64]) -> Floats:
        """Return a p-value for each round: the smaller of two tests, times two."""
        bit = self.training.bit
        both = np.minimum(uniformity_test(bit, tallies), bit_bias_test(bit, tallies))
        return np.asarray(np.minimum(1.0, 2 * both))

    def _tallies(self, source: SeededSource, *, is_attacked: bool) -> NDArray[np.int64]:
        bit, reports = self.training.bit, max(REPORTS, EACH * self.training.cells)
        cells = bit.choose(EPOCHS * reports, source)
        rows = bit.answer(cells, np.zeros(len(cells)), source).reshape(EPOCHS, reports)
        if is_attacked:
            count = EPOCHS * fake_device_count(self.scenario, reports)
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
