"""The click pipeline for delivered ads: the ad is told as it is, only its click is protected.

A user reports on one ad a day, that of the first slot on a device in contact, and not at all on a
day without such a slot. That a user reports says that there was one: no epsilon speaks of it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from noisefloor.ads.delivered_click import DeliveredClick
from noisefloor.errors import BadParameter
from noisefloor.privacy import Claim, Neighbours
from noisefloor.wire.kinds import Kind
from noisefloor_sim.behaviour import Day
from noisefloor_sim.devices import Account
from noisefloor_sim.hosting import Servers
from noisefloor_sim.pipelines.base import Findings, NamedClaim, Pipeline
from noisefloor_sim.pipelines.clicks.block import block_of, delivered_of, fresh_days
from noisefloor_sim.pipelines.clicks.books import DayBook
from noisefloor_sim.pipelines.clicks.flow import REPORT, Flow
from noisefloor_sim.pipelines.clicks.games import audited, delivered_games_of, play
from noisefloor_sim.pipelines.clicks.sending import Sent
from noisefloor_sim.population import Cohort
from noisefloor_sim.scenario.model import Scenario

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class DayAds:
    """The ad that each user reports on.

    Attributes:
        has: Who has one.
        ad: Which; 0 for users without.
        clicked: Whether it was clicked, on any device in contact.
    """

    has: Flags
    ad: NDArray[np.uint16]
    clicked: Flags


def day_ads(lived: Day, contact: Flags) -> DayAds:
    """Return the ad of each user's first slot on a device in contact, and whether it was clicked.

    Args:
        lived: One day of a cohort.
        contact: Which devices are in contact, one row per user.
    """
    open_ = contact[lived.user, lived.device]
    rows = np.flatnonzero(open_)
    users, first = np.unique(lived.user[rows], return_index=True)
    has, clicked = np.zeros((2, lived.users), dtype=np.bool_)
    ad = np.zeros(lived.users, dtype=np.uint16)
    has[users], ad[users] = True, lived.ad[rows[first]]
    clicks = lived.clicked & open_ & (lived.ad == ad[lived.user])
    clicked[lived.user[clicks]] = True
    return DayAds(has, ad, clicked)


@dataclass(slots=True)
class DeliveredPipeline(Pipeline):
    """Clicks on delivered ads at one point of a sweep.

    Attributes:
        scenario: The point.
        mechanism: What guards the click.
        flow: The way of the reports.
    """

    scenario: Scenario
    mechanism: DeliveredClick = field(init=False)
    flow: Flow = field(init=False)

    def __post_init__(self) -> None:
        mechanism = delivered_of(self.scenario)
        if mechanism is None:
            form = block_of(self.scenario).form
            raise BadParameter(
                "pipelines.clicks.form", form, "'delivered', and no paper's variant"
            )
        self.mechanism = mechanism
        self.flow = Flow(self.scenario, mechanism, mechanism.kind)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """One kind: an ad and a protected bit."""
        return (self.flow.kind,)

    @property
    def days(self) -> list[DayBook]:
        """What happened on each day."""
        return self.flow.days

    def wake(self, cohort: Cohort, day: int, lived: Day, account: Account) -> Iterator[bytes]:
        """Send the day's reports of a cohort."""
        book, number, cost = self.days[day], cohort.number, self.flow.cost
        contact = self.flow.open_day(cohort, day, lived, account)
        shown = day_ads(lived, contact)
        paid = account.spend(day, REPORT, contact & shown.has[:, None], cost) > 0
        inputs = self.mechanism.symbols(shown.ad[paid], shown.clicked[paid])
        coins = self.flow.source.child(number, day)
        fresh = Sent(self.mechanism.randomise(inputs, coins), inputs)
        book.reported += self.mechanism.tally(inputs)[1::2]
        book.spent += int(np.count_nonzero(paid)) * cost
        yield from self.flow.frames(number, day, asked=shown.has, paid=paid, fresh=fresh)

    def finish(self, servers: Servers) -> Findings:
        """Score the estimates against the truth, and the adversary against its canaries."""
        source, canaries = self.flow.source.child("canary"), block_of(self.scenario).canaries
        games = delivered_games_of(
            fresh_days(self.scenario), is_linked=self.scenario.threat.linked
        )
        attacks = [m for game in games for m in play(self.mechanism, game, canaries, source)]
        bound = audited(self.mechanism, canaries, source)
        claim = Claim(self.mechanism.claimed, self.mechanism.guarantee(Neighbours.USER), bound)
        metrics = (*self.flow.metrics(servers, {}), *attacks)
        return Findings(metrics, (NamedClaim("clicks-delivered", claim),))
