"""The click pipeline: devices report their day's clicks as one protected vector."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from noisefloor.ads.clicks import ClickReport, clicks_kind
from noisefloor.ads.memoised_clicks import MemoisedClicks
from noisefloor.privacy import Claim, Neighbours
from noisefloor.randomness import SeededSource
from noisefloor.wire.kinds import Kind
from noisefloor_sim.behaviour import Day
from noisefloor_sim.devices import Account
from noisefloor_sim.hosting import Servers
from noisefloor_sim.pipelines.base import Findings, Metric, NamedClaim, Pipeline
from noisefloor_sim.pipelines.clicks.block import (
    block_of,
    fresh_days,
    memoised_of,
    vector_report_of,
)
from noisefloor_sim.pipelines.clicks.books import DayBook
from noisefloor_sim.pipelines.clicks.flow import REPORT, Flow
from noisefloor_sim.pipelines.clicks.games import (
    audited,
    delivered_metrics,
    games_of,
    play,
    play_memoised,
    play_row_order,
    play_vector,
)
from noisefloor_sim.pipelines.clicks.sending import Sent
from noisefloor_sim.population import Cohort
from noisefloor_sim.scenario.model import Scenario

Flags = NDArray[np.bool_]


@dataclass(slots=True)
class ClickPipeline(Pipeline):
    """Click statistics at one point of a sweep.

    Attributes:
        scenario: The point.
        mechanism: What guards the vectors.
        flow: The way of the reports.
        joined: Who of each cohort has paid for permanent answers.
        flips: The permanent answers of each cohort.
    """

    scenario: Scenario
    mechanism: ClickReport | MemoisedClicks = field(init=False)
    flow: Flow = field(init=False)
    joined: dict[int, Flags] = field(default_factory=dict)
    flips: dict[int, Flags] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.mechanism = memoised_of(self.scenario) or vector_report_of(self.scenario)
        self.flow = Flow(self.scenario, self.mechanism, clicks_kind(self.mechanism.width))

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """One kind: rows of protected bits."""
        return (self.flow.kind,)

    @property
    def days(self) -> list[DayBook]:
        """What happened on each day."""
        return self.flow.days

    def wake(self, cohort: Cohort, day: int, lived: Day, account: Account) -> Iterator[bytes]:
        """Send the day's reports of a cohort."""
        ads, book = self.scenario.behaviour.ads, self.days[day]
        contact = self.flow.open_day(cohort, day, lived, account)
        known = lived.clicked & contact[lived.user, lived.device]
        paid, debited = self._pay(cohort.number, account, day, contact)
        bits = lived.matrix(known, ads)[paid]
        fresh = self._answer(bits, paid, cohort.number, day)
        shown = lived.matrix(np.ones(len(lived.ad), dtype=np.bool_), ads)[paid]
        book.reported += bits.sum(axis=0)
        book.delivered += _contingency(bits[shown], fresh.reports[:, :ads][shown])
        book.spent += debited
        asked: Flags = np.asarray(contact.any(axis=1))
        yield from self.flow.frames(cohort.number, day, asked=asked, paid=paid, fresh=fresh)

    def _pay(self, number: int, account: Account, day: int, contact: Flags) -> tuple[Flags, int]:
        """Return who may report afresh, and what that was debited.

        A daily report costs each time; permanent answers are paid for once.
        """
        cost = self.flow.cost
        if isinstance(self.mechanism, ClickReport):
            paid = account.spend(day, REPORT, contact, cost) > 0
            return paid, int(np.count_nonzero(paid)) * cost
        joined = self.joined.setdefault(number, np.zeros(len(contact), dtype=np.bool_))
        open_ = contact & ~joined[:, None]
        new = account.spend(day, "permanent click answers", open_, cost) > 0
        joined |= new
        return joined & contact.any(axis=1), int(np.count_nonzero(new)) * cost

    def _answer(self, bits: Flags, paid: Flags, number: int, day: int) -> Sent:
        """Return the protected reports of those who paid, and what they were made of."""
        coins = self.flow.source.child(number, day)
        if isinstance(self.mechanism, ClickReport):
            # What ``randomise`` does, in its two steps: scoring asks for what was kept.
            kept = self.mechanism.keep(bits, coins)
            return Sent(self.mechanism.encoding.randomise(kept, coins), kept)
        if number not in self.flips:
            memory = self.flow.source.child("memory", number)
            self.flips[number] = self.mechanism.memorise(len(paid), memory)
        return Sent(self.mechanism.report(bits, self.flips[number][paid], coins), bits)

    def finish(self, servers: Servers) -> Findings:
        """Score the estimates against the truth, and the adversary against its canaries."""
        source = self.flow.source.child("canary")
        metrics = [*self.flow.metrics(servers, self.joined), *self._attacks(source)]
        bound = audited(self.mechanism, block_of(self.scenario).canaries, source)
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


def _contingency(bits: Flags, reports: Flags) -> NDArray[np.int64]:
    """Count delivered bits by their value and by what was reported of them."""
    codes = 2 * bits.astype(np.int64) + reports
    return np.bincount(codes, minlength=4).reshape(2, 2)
