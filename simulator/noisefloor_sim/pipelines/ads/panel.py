"""The panel: users whose protected reports of clicks bidders learn their tables from.

In one slot of a panel user's day, drawn without a look at the user, the exchange shows the ad of a
campaign drawn at random. The user's device reports whether it was clicked: symbol, topic and
campaign as they are, since the exchange knows them from the bid request and its own draw, and the
click protected and paid for. Users with an odd number are the panel; impressions of the others are
sold, so no table is made from the people whose impressions are sold.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import Amount
from noisefloor.ads import auction
from noisefloor.ads.auction import ReportCells
from noisefloor.ads.clicks import DeliveredClick, panel_clicks_kind
from noisefloor.errors import BadParameter
from noisefloor.randomness import SeededSource
from noisefloor.roles import Aggregation
from noisefloor.wire import Kind
from noisefloor_sim.inspection import DeviceFrame, device_frames, most_pairs, pairs_alike
from noisefloor_sim.pipelines.ads.block import block_of, scenario_key_errors
from noisefloor_sim.pipelines.ads.flows import PANEL_REPORT, PanelFlow, PanelTruth
from noisefloor_sim.scenario import Scenario
from noisefloor_sim.world import BudgetAccount, Cohort, DayActivity, Visits

Flags = NDArray[np.bool_]
Rows = NDArray[np.int64]


def campaign_ads(scenario: Scenario) -> NDArray[np.intp]:
    """Return the ads that campaigns are for: spread evenly over the catalogue."""
    bidders = block_of(scenario).auction.bidders
    return np.arange(bidders) * scenario.ad_behaviour.ads // bidders


def cells_of(scenario: Scenario) -> ReportCells:
    """Return the cells that reports of the panel are counted by."""
    bidders, topics = block_of(scenario).auction.bidders, scenario.population.topics
    try:
        return ReportCells(scenario.ad_behaviour.ads + 1, topics, bidders)
    except BadParameter as error:
        rule = f"few enough that ads + 1 times topics times bidders is {error.rule}"
        raise BadParameter("pipelines.ads.auction.bidders", bidders, rule) from None


@dataclass(frozen=True, slots=True, eq=False)
class ExploredSlots:
    """The slots of a cohort's day in which campaigns drawn at random are shown.

    Attributes:
        users: The panel users who have one, increasing.
        slots: The slot of each.
        cells: Symbol, topic and campaign of each, as one number.
    """

    users: Rows
    slots: Rows
    cells: Rows


@dataclass(slots=True)
class Panel:
    """The panel of one world.

    Attributes:
        scenario: The point.
        source: Of all random numbers of the panel.
        cells: By which reports are counted.
        mechanism: What protects a click.
        kind: Of the frames.
        flow: What is declared of them.
        explored: Of the cohorts whose day is not over.
    """

    scenario: Scenario
    source: SeededSource
    cells: ReportCells = field(init=False)
    mechanism: DeliveredClick = field(init=False)
    kind: Kind = field(init=False)
    flow: PanelFlow = field(init=False)
    explored: dict[int, ExploredSlots] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.cells = cells_of(self.scenario)
        with scenario_key_errors("pipelines.ads.auction", {"epsilon": "report_epsilon"}):
            self.mechanism = DeliveredClick(
                len(self.cells), block_of(self.scenario).report_epsilon
            )
        self.kind = panel_clicks_kind(len(self.cells))
        days = range(self.scenario.days)
        self.flow = PanelFlow(self.mechanism, self.kind, days, self.source)

    def explore(
        self,
        cohort: Cohort,
        day: int,
        visits: Visits,
        is_open: Flags,
        topic: Rows,
        released: Rows,
        shown: NDArray[np.uint16],
    ) -> NDArray[np.uint16]:
        """Return what is shown, with the ad of a random campaign in one slot of each panel user.

        Args:
            cohort: Whose slots they are.
            day: Of the visits.
            visits: The slots.
            is_open: Which are on a device in contact.
            topic: Of each slot's page.
            released: The ad that each user asked for.
            shown: The ad in each slot.
        """
        per_view = self.scenario.ad_behaviour.slots_per_view
        number = cohort.first + visits.user
        is_panel = (number % 2 == 1) & (number < block_of(self.scenario).auction.users)
        # The first slot of a page: further down an ad is clicked less, whatever it is.
        is_first = np.arange(len(number)) % per_view == 0
        rows = np.flatnonzero(is_panel & is_first & is_open)
        users, start, count = np.unique(visits.user[rows], return_index=True, return_counts=True)
        draw = (
            self.source.child("explored", cohort.number, day)
            .generator()
            .random((2, len(cohort)))[:, users]
        )
        slots = rows[start + np.floor(draw[0] * count).astype(np.int64)]
        campaign = np.floor(draw[1] * self.cells.campaigns).astype(np.int64)
        cells = self.cells.number(released[users], topic[slots], campaign)
        self.explored[cohort.number] = ExploredSlots(users, slots, cells)
        ads = shown.copy()
        ads[slots] = campaign_ads(self.scenario)[campaign]
        return ads

    def frames(
        self,
        cohort: Cohort,
        day: int,
        activity: DayActivity,
        account: BudgetAccount,
        contact: Flags,
    ) -> Iterator[DeviceFrame]:
        """Report the clicks on what was shown at random, as far as the budget goes."""
        explored = self.explored.pop(cohort.number)
        has = np.zeros(len(cohort), dtype=np.bool_)
        has[explored.users] = True
        cost = Amount.cost(self.mechanism.claimed).micro_epsilon
        paid = account.spend(day, PANEL_REPORT, contact & has[:, None], cost) > 0
        mine = paid[explored.users]
        users, cells = explored.users[mine], explored.cells[mine]
        if not len(users):
            return
        own = activity.clicked[explored.slots[mine]]
        chance = self.source.child("panel-witness", cohort.number, day).generator()
        pairs = pairs_alike(cells, own, most_pairs(self.scenario, cohort.number), chance)
        symbols = self.mechanism.symbols(cells, pairs.exchange(own))
        randomness = self.source.child("panel-click", cohort.number, day)
        reports = self.mechanism.randomise(symbols, randomness)
        truth = PanelTruth(day, len(cohort), users, symbols, pairs)
        draws = self.source.child("panel-frame", cohort.number, day)
        yield from device_frames(
            self.kind.name, cohort.number, self.kind, day, reports, draws, truth=truth
        )

    def tables(self, aggregator: Aggregation, days: int) -> "ChanceTables":
        """Return what bidders know from the reports of the first days."""
        tally = np.zeros(2 * len(self.cells), dtype=np.int64)
        count = 0
        for day in range(days):
            found, n = aggregator.release(self.kind.name, day)
            if n:
                tally, count = tally + found, count + n
        shown, clicks = self.mechanism.shown(tally), self.mechanism.clicks(tally).value
        shape, noise = self.cells.shape, self.mechanism.noise

        def table(*, by_page: bool, by_symbol: bool) -> NDArray[np.float64]:
            return auction.learn_chances(
                shown.reshape(shape),
                clicks.reshape(shape),
                noise,
                by_page=by_page,
                by_symbol=by_symbol,
            )

        return ChanceTables(
            count,
            table(by_page=True, by_symbol=True),
            table(by_page=False, by_symbol=True)[:, 0],
            table(by_page=True, by_symbol=False)[0],
        )


@dataclass(frozen=True, slots=True, eq=False)
class ChanceTables:
    """What bidders learnt: the chance of a click on each campaign's ad.

    Attributes:
        reports: How many there were.
        by_both: By symbol and topic.
        by_symbol: By symbol.
        by_topic: By topic.
    """

    reports: int
    by_both: NDArray[np.float64]
    by_symbol: NDArray[np.float64]
    by_topic: NDArray[np.float64]
