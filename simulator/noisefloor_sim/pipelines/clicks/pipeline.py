"""The click pipeline: devices report once a day within their budget, the server adds up."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting.entry import Amount
from noisefloor.ads.clicks import ClickReport, clicks_kind
from noisefloor.ads.memoised_clicks import MemoisedClicks
from noisefloor.privacy import Claim, Neighbours
from noisefloor.randomness import SeededSource
from noisefloor.roles.aggregator import Aggregator
from noisefloor.wire.frames import split_frames
from noisefloor.wire.kinds import Kind
from noisefloor_sim.behaviour import Day
from noisefloor_sim.devices import Exhausted, Wallets, in_contact
from noisefloor_sim.pipelines.base import Findings, Metric, NamedClaim
from noisefloor_sim.pipelines.clicks.block import (
    block_of,
    fresh_days,
    memoised_of,
    policy_of,
    report_of,
)
from noisefloor_sim.pipelines.clicks.games import (
    audited,
    delivered_metrics,
    games_of,
    play,
    play_memoised,
    play_row_order,
    play_vector,
)
from noisefloor_sim.population import DEVICES, Cohort, make_cohort
from noisefloor_sim.scenario.model import Scenario

_MOST_ESTIMATES = 2_000
"""Estimates are listed one by one up to so many ads times days."""

_Z = 1.959963984540054
"""Half the width of a 95 % interval, in standard errors."""


@dataclass(slots=True)
class DayBook:
    """What happened on one day, in whole numbers over all cohorts; only scoring reads it."""

    clicked: NDArray[np.int64]
    reported: NDArray[np.int64]
    delivered: NDArray[np.int64]
    fresh: int = 0
    repeated: int = 0
    refused: int = 0
    out_of_contact: int = 0
    spent: int = 0

    @classmethod
    def empty(cls, ads: int) -> "DayBook":
        """Return the book of a day on which nothing has happened yet."""
        clicked, reported = np.zeros((2, ads), dtype=np.int64)
        return cls(clicked, reported, np.zeros((2, 2), dtype=np.int64))


@dataclass(slots=True)
class Devices:
    """What the devices of a cohort keep between days.

    Attributes:
        wallets: What is left of the users' budgets.
        owned: How many devices each user has.
        joined: Who has paid for permanent answers.
        flips: The permanent answers themselves.
        memory: Each user's last report.
        has_memory: Who has sent one.
    """

    wallets: Wallets
    owned: NDArray[np.int64]
    joined: NDArray[np.bool_]
    flips: NDArray[np.bool_] | None = None
    memory: NDArray[np.bool_] | None = None
    has_memory: NDArray[np.bool_] | None = None


@dataclass(slots=True)
class ClickPipeline:
    """Click statistics at one point of a sweep."""

    scenario: Scenario
    mechanism: ClickReport | MemoisedClicks = field(init=False)
    kind: Kind = field(init=False)
    source: SeededSource = field(init=False)
    cost: int = field(init=False)
    days: list[DayBook] = field(init=False)
    devices: dict[int, Devices] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.mechanism = memoised_of(self.scenario) or report_of(self.scenario)
        self.kind = clicks_kind(self.mechanism.width)
        self.source = SeededSource(self.scenario.seed, "pipeline", "clicks")
        # The paper's variant debits what the paper claims; what is proved is told beside it.
        self.cost = Amount.cost(self.mechanism.claimed).micro_epsilon
        ads = self.scenario.behaviour.ads
        self.days = [DayBook.empty(ads) for _ in range(self.scenario.days)]

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """One kind: rows of protected bits."""
        return (self.kind,)

    def wake(self, cohort: Cohort, day: int, lived: Day) -> Iterator[bytes]:
        """Send the day's reports of a cohort."""
        ads, book = self.scenario.behaviour.ads, self.days[day]
        contact = in_contact(cohort.owns, cohort.silent[:, :, day], cohort.leaves > day)
        book.clicked += lived.matrix(lived.clicked, ads).sum(axis=0)
        known = lived.clicked & contact[lived.user, lived.device]
        bits = lived.matrix(known, ads)
        if cohort.number not in self.devices:
            self.devices[cohort.number] = self._new_devices(cohort)
        kept = self.devices[cohort.number]
        paid, debited = self._pay(kept, contact)
        fresh = self._answer(kept, bits[paid], paid, cohort.number, day)
        online: NDArray[np.bool_] = np.asarray(contact.any(axis=1))
        reports = self._with_memory(kept, online, paid, fresh, book)
        book.reported += bits[paid].sum(axis=0)
        shown = lived.matrix(np.ones(len(lived.ad), dtype=np.bool_), ads)[paid]
        book.delivered += _contingency(bits[paid][shown], fresh[:, :ads][shown])
        book.fresh += len(fresh)
        book.spent += debited
        book.out_of_contact += int(np.count_nonzero((cohort.leaves > day) & ~online))
        if len(reports):
            coins = self.source.child("frame", cohort.number, day)
            yield from split_frames(self.kind, day, reports, coins)

    def _new_devices(self, cohort: Cohort) -> Devices:
        budget = Amount.budget(block_of(self.scenario).budget, 0.0).micro_epsilon
        joined = np.zeros(len(cohort), dtype=np.bool_)
        return Devices(Wallets.open(cohort.owns, budget), cohort.owns.sum(axis=1), joined)

    def _pay(self, kept: Devices, contact: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], int]:
        """Return who may report afresh, and what that was debited.

        A daily report costs each time; permanent answers are paid for once.
        """
        if isinstance(self.mechanism, ClickReport):
            paid = kept.wallets.spend(contact, self.cost)
            return paid, int(np.count_nonzero(paid)) * self.cost
        new = kept.wallets.spend(contact & ~kept.joined[:, None], self.cost)
        kept.joined |= new
        return kept.joined & contact.any(axis=1), int(np.count_nonzero(new)) * self.cost

    def _answer(
        self,
        kept: Devices,
        bits: NDArray[np.bool_],
        paid: NDArray[np.bool_],
        number: int,
        day: int,
    ) -> NDArray[np.bool_]:
        """Return the protected reports of those who paid."""
        coins = self.source.child(number, day)
        if isinstance(self.mechanism, ClickReport):
            return self.mechanism.randomise(bits, coins)
        if kept.flips is None:
            memory = self.source.child("memory", number)
            kept.flips = self.mechanism.memorise(len(paid), memory)
        return self.mechanism.report(bits, kept.flips[paid], coins)

    def _with_memory(
        self,
        kept: Devices,
        online: NDArray[np.bool_],
        paid: NDArray[np.bool_],
        fresh: NDArray[np.bool_],
        book: DayBook,
    ) -> NDArray[np.bool_]:
        """Return fresh reports, and behind them those that exhausted devices send again."""
        without = online & ~paid
        if policy_of(self.scenario) is Exhausted.REFUSE:
            book.refused += int(np.count_nonzero(without))
            return fresh
        if kept.memory is None or kept.has_memory is None:
            kept.memory = np.zeros((len(paid), self.mechanism.width), dtype=np.bool_)
            kept.has_memory = np.zeros(len(paid), dtype=np.bool_)
        kept.memory[paid] = fresh
        kept.has_memory |= paid
        again = without & kept.has_memory
        book.repeated += int(np.count_nonzero(again))
        book.refused += int(np.count_nonzero(without & ~kept.has_memory))
        return np.concatenate([fresh, kept.memory[again]])

    def finish(self, aggregator: Aggregator) -> Findings:
        """Score the estimates against the truth, and the adversary against its canaries."""
        block, source = block_of(self.scenario), self.source.child("canary")
        metrics = [*self._estimates(aggregator), *self._budgets(), *self._attacks(source)]
        bound = audited(self.mechanism, block.canaries, source)
        proved = self.mechanism.guarantee(Neighbours.USER)
        claim = Claim(self.mechanism.claimed, proved, bound)
        if isinstance(self.mechanism, ClickReport):
            named = [NamedClaim(f"clicks-{self.mechanism.form.value}", claim)]
        else:
            changing = Claim(self.mechanism.claimed, self.mechanism.guarantee_changing())
            named = [
                NamedClaim("clicks-memoised-steady", claim),
                NamedClaim("clicks-memoised-changing", changing),
            ]
        return Findings(tuple(metrics), tuple(named))

    def _attacks(self, source: SeededSource) -> list[Metric]:
        """Play every game that the threat model allows."""
        block, days = block_of(self.scenario), fresh_days(self.scenario)
        is_linked = self.scenario.threat.linked
        if not isinstance(self.mechanism, ClickReport):
            return play_memoised(self.mechanism, block.canaries, source) if is_linked else []
        games = games_of(self.mechanism, days, is_linked=is_linked)
        metrics = [m for game in games for m in play(self.mechanism, game, block.canaries, source)]
        metrics += play_vector(self.mechanism, block.canaries, source)
        if not is_linked and days > 1:
            metrics += play_row_order(
                self.mechanism, days, block.canaries, source, is_kept=block.canaries_keep_order
            )
        if is_linked:
            counts = np.sum([book.delivered for book in self.days], axis=0)
            metrics += delivered_metrics(counts, self.mechanism)
        return metrics

    def _estimates(self, aggregator: Aggregator) -> list[Metric]:
        """Compare the estimated clicks per ad and day with the true ones, in users."""
        listed, misses, covered, truths = [], [], [], []
        for day, book in enumerate(self.days):
            tally, n = aggregator.release(self.kind.name, day)
            if not n:
                continue
            estimate = self.mechanism.estimate(tally, n)
            value, error = n * estimate.value, n * estimate.standard_error
            misses.append((value - book.reported) ** 2)
            covered.append(np.abs(value - book.reported) <= _Z * error)
            truths.append(book.reported)
            listed += [
                Metric(
                    f"estimate.day_{day}.ad_{ad}",
                    float(at),
                    float(at - _Z * e),
                    float(at + _Z * e),
                    n,
                )
                for ad, (at, e) in enumerate(zip(value, error, strict=True))
            ]
        if not misses:
            return [Metric("estimates", 0.0)]
        rms = math.sqrt(float(np.mean(misses)))
        mean = float(np.mean(truths))
        summary = [
            Metric("error_rms", rms, n=np.size(misses)),
            Metric("error_relative", rms / mean if mean else math.inf, n=np.size(misses)),
            Metric("coverage", float(np.mean(covered)), n=np.size(covered)),
            Metric("clicks_mean", mean, n=np.size(truths)),
            self._reported_share(),
        ]
        return summary + (listed if len(listed) <= _MOST_ESTIMATES else [])

    def _reported_share(self) -> Metric:
        """Tell how much of what users clicked was known to a device that reported."""
        clicked = sum(int(book.clicked.sum()) for book in self.days)
        reported = sum(int(book.reported.sum()) for book in self.days)
        return Metric("reported_share", reported / max(1, clicked), n=clicked)

    def _budgets(self) -> list[Metric]:
        """Tell how much was spent by each day, and how many were refused."""
        users = self.scenario.population.users
        spent = np.cumsum([book.spent for book in self.days]) / 1e6 / users
        proved = self.mechanism.guarantee(Neighbours.USER).epsilon / self.mechanism.epsilon
        per_day = [
            metric
            for day, book in enumerate(self.days)
            for metric in (
                Metric(f"spent.day_{day}", float(spent[day]), n=users),
                Metric(f"spent_proved.day_{day}", float(spent[day] * proved), n=users),
                Metric(f"fresh.day_{day}", float(book.fresh), n=users),
                Metric(f"repeated.day_{day}", float(book.repeated), n=users),
                Metric(f"refused.day_{day}", float(book.refused), n=users),
            )
        ]
        totals = {
            "reports_fresh": sum(book.fresh for book in self.days),
            "reports_repeated": sum(book.repeated for book in self.days),
            "reports_refused": sum(book.refused for book in self.days),
            "users_out_of_contact": sum(book.out_of_contact for book in self.days),
        }
        summed = [Metric(name, float(count), n=users) for name, count in totals.items()]
        return per_day + summed + self._exhausted()

    def _exhausted(self) -> list[Metric]:
        """Tell, by the number of devices, how many users can pay no further report."""
        owners, broke = np.zeros((2, len(DEVICES) + 1), dtype=np.int64)
        for kept in self.devices.values():
            short = (kept.wallets.left.sum(axis=1) < self.cost) & ~kept.joined
            owners += np.bincount(kept.owned, minlength=len(owners))
            broke += np.bincount(kept.owned[short], minlength=len(owners))
        return [
            Metric(f"exhausted.devices_{count}", float(broke[count]), n=int(owners[count]))
            for count in range(1, len(owners))
        ]

    def explain(self, user: int) -> list[str]:
        """Say what spent a user's budget, day by day."""
        scenario = self.scenario
        number, row = divmod(user, scenario.population.cohort)
        world = SeededSource(scenario.seed, "world")
        cohort = make_cohort(scenario.population, scenario.devices, scenario.days, number, world)
        kept = self._new_devices(cohort)
        lines = []
        for day in range(scenario.days):
            contact = in_contact(cohort.owns, cohort.silent[:, :, day], cohort.leaves > day)
            before = int(kept.wallets.left[row].sum())
            paid, _ = self._pay(kept, contact)
            left = int(kept.wallets.left[row].sum())
            what = _told(cohort, row, day, contact, paid)
            lines.append(
                f"day {day}: {what}; {(before - left) / 1e6:g} spent, {left / 1e6:.6f} left"
            )
        return lines


def _told(
    cohort: Cohort,
    row: int,
    day: int,
    contact: NDArray[np.bool_],
    paid: NDArray[np.bool_],
) -> str:
    if cohort.leaves[row] <= day:
        return "the user has left"
    if not contact[row].any():
        return "no device in contact, nothing reported"
    return "one fresh report of clicks" if paid[row] else "budget exhausted, nothing fresh"


def _contingency(bits: NDArray[np.bool_], reports: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Count delivered bits by their value and by what was reported of them."""
    codes = 2 * bits.astype(np.int64) + reports
    return np.bincount(codes, minlength=4).reshape(2, 2)
