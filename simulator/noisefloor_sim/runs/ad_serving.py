"""The ads of a world: who visits, what is requested, shown and clicked, what is counted."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.ads.auction import BID_REQUESTS
from noisefloor.ads.delivery import AD_REQUESTS
from noisefloor.randomness import SeededSource
from noisefloor.roles import IMPRESSIONS, ImpressionServer
from noisefloor_sim.inspection import DeviceFrame, device_frames
from noisefloor_sim.pipelines import Metric, Pipeline, ServedAds
from noisefloor_sim.world import (
    AdWorld,
    BudgetAccount,
    Cohort,
    DayActivity,
    Visits,
    draw_clicks,
    draw_visits,
)


@dataclass(slots=True)
class AdCounts:
    """What was shown and clicked, in integer sums over all cohorts."""

    views: int = 0
    impressions: int = 0
    clicks: int = 0
    ratings: int = 0
    rating_thousandths: int = 0

    def events(self) -> int:
        """Page views, impressions and clicks decided."""
        return self.views + self.impressions + self.clicks


class AdServing:
    """Shows ads in one world.

    Args:
        world: The ads.
        pipelines: One of them may choose what is shown; without one, ads go by popularity.
        server: Counts impressions and requests.
        send: Starts a frame of impressions on its way there; further arguments name its chances.
        send_requests: The same for a frame of requests.
        source: Of the world's random numbers.
    """

    def __init__(
        self,
        world: AdWorld,
        pipelines: Iterable[Pipeline],
        server: ImpressionServer,
        send: Callable[..., None],
        send_requests: Callable[..., None],
        source: SeededSource,
    ) -> None:
        self.world = world
        self.server = server
        self.counts = AdCounts()
        self._pipelines = tuple(pipelines)
        self._send = send
        self._send_requests = send_requests
        self._source = source

    def show(
        self, cohort: Cohort, day: int, account: BudgetAccount
    ) -> tuple[DayActivity, ServedAds]:
        """Return what a cohort was shown and clicked on a day, and who knows of it.

        What its devices request is sent to the ad server.
        """
        visits = draw_visits(self.world, cohort, day, self._source)
        served = self._serve(cohort, day, visits, account)
        self._request(served, cohort, day)
        activity = draw_clicks(self.world, cohort, visits, served.ad)
        counts = self.counts
        counts.views += int(activity.views.sum())
        counts.impressions += len(activity.user)
        counts.clicks += int(np.count_nonzero(activity.clicked))
        if day == 0:
            self._count_ratings(cohort)
        return activity, served

    def report(self, ads: NDArray[np.uint16], number: int, day: int) -> None:
        """Send the ad server the indices of the shown ads, in random order, and nothing else."""
        if not len(ads):
            return
        kind, draws = self.server.kind, self._source.child("impressions", number, day)
        frames = device_frames(IMPRESSIONS, number, kind, day, ads, draws, truth=ads)
        for place, frame in enumerate(frames):
            self._send(frame, "impressions", number, day, place)

    def metrics(self, users: int, user_days: int, days: int) -> list[Metric]:
        """Return what was shown and clicked, for each user and day, and what was counted."""
        counts, per_day = self.counts, max(1, user_days)
        mean = counts.rating_thousandths / 1000 / max(1, counts.ratings)
        counted = sum(int(self.server.impressions(day).sum()) for day in range(days))
        return [
            Metric("views_per_user_day", counts.views / per_day, n=user_days),
            Metric("impressions_per_user_day", counts.impressions / per_day, n=user_days),
            Metric("clicks_per_user_day", counts.clicks / per_day, n=user_days),
            Metric("click_rate", counts.clicks / max(1, counts.impressions), n=counts.impressions),
            Metric("ratings_per_user", counts.ratings / users, n=users),
            Metric("rating_mean", mean, n=counts.ratings),
            Metric("impressions_counted", float(counted), n=counts.impressions),
        ]

    def _serve(
        self, cohort: Cohort, day: int, visits: Visits, account: BudgetAccount
    ) -> ServedAds:
        for pipeline in self._pipelines:
            served = pipeline.serve(self.world, cohort, day, visits, account)
            if served is not None:
                return served
        return ServedAds(visits.popular)

    def _request(self, served: ServedAds, cohort: Cohort, day: int) -> None:
        """Send the ad server what was requested. Bid requests are of a day, not of a cohort."""
        requests, bids = served.requests, served.bid_requests
        if requests is not None:
            number, connections = cohort.number, cohort.first + requests.users
            for place, frame in enumerate(requests.frames):
                name, truth, paid = AD_REQUESTS, requests.truth, len(frame.order)
                sent = DeviceFrame(name, number, frame, truth, paid, day, connections)
                self._send_requests(sent, "requests", number, day, place)
        if bids is not None:
            for place, frame in enumerate(bids.frames):
                sent = DeviceFrame(BID_REQUESTS, day, frame, bids.columns, 0, day)
                self._send_requests(sent, "bid-requests", day, place)

    def _count_ratings(self, cohort: Cohort) -> None:
        drawn = self.world.tastes.draw_ratings(cohort)
        self.counts.ratings += int(np.count_nonzero(drawn.rated))
        self.counts.rating_thousandths += int(np.rint(1000 * drawn.rating[drawn.rated]).sum())
