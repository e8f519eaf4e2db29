"""The claim of the heaviest user over the whole run, from what the accounts granted.

Pipelines say what one release of each flow is claimed and proved to cost; the accounts say how
often each user paid for one. The heaviest user is the one of whose releases, added up, the largest
epsilon is proved. Claimed is what the scenario allows a user, its budget, or in the paper's
variant what the paper says of the whole.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from noisefloor.accounting import MICRO, sequential, total_as_written
from noisefloor.privacy import Claim, Guarantee, Neighbours
from noisefloor_sim.pipelines import Metric, NamedClaim, Pipeline, Price
from noisefloor_sim.scenario import HEAVIEST_USER, Scenario
from noisefloor_sim.world import BudgetAccount, SpendingSummary, UserSpending, summarise

_USER = Neighbours.USER


def merged_prices(pipelines: Iterable[Pipeline]) -> dict[str, Price]:
    """Return the prices of all pipelines; of two for one name of a flow the worse figures."""
    merged: dict[str, Price] = {}
    for pipeline in pipelines:
        for flow, price in pipeline.prices().items():
            known = merged.get(flow, price)
            merged[flow] = Price(
                max(known.claimed, price.claimed, key=_epsilon),
                max(known.proved, price.proved, key=_epsilon),
                known.is_sent_by_all or price.is_sent_by_all,
            )
    return merged


def _epsilon(guarantee: Guarantee) -> float:
    return guarantee.epsilon


@dataclass(slots=True)
class UserLedger:
    """What users of a world have spent, day by day and in the end.

    Attributes:
        scenario: At one point of a sweep.
        pipelines: That spend.
        prices: Of one release of each flow.
        days: What was spent by the end of each day but the last.
    """

    scenario: Scenario
    pipelines: tuple[Pipeline, ...]
    prices: Mapping[str, Price] = field(init=False)
    days: dict[int, SpendingSummary] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.prices = merged_prices(self.pipelines)

    def close_day(self, day: int, accounts: Iterable[BudgetAccount]) -> None:
        """Write down what was spent by the end of a day; of the last day ``finish`` does."""
        if day < self.scenario.days - 1:
            self.days[day] = self._summary(accounts)

    def finish(
        self, accounts: Iterable[BudgetAccount]
    ) -> tuple[tuple[Metric, ...], tuple[NamedClaim, ...]]:
        """Return metrics and the claim of the whole run; nothing where no flow spends."""
        listed = list(accounts)
        if not self.prices and not any(account.releases for account in listed):
            return (), ()
        whole = self._summary(listed)
        days = {**self.days, self.scenario.days - 1: whole}
        metrics = [*self._totals(whole)]
        for day, summary in sorted(days.items()):
            metrics += [
                Metric(f"{name}.day_{day}", value, n=summary.users)
                for name, value in self._figures(summary).items()
            ]
        return tuple(metrics), (NamedClaim(HEAVIEST_USER, self.claim(whole.heaviest)),)

    def claim(self, user: UserSpending) -> Claim:
        """Return what is claimed and proved of everything that one user has sent."""
        return Claim(self._claimed(user), self._proved(user))

    def _summary(self, accounts: Iterable[BudgetAccount]) -> SpendingSummary:
        proved = {flow: price.proved.epsilon for flow, price in self.prices.items()}
        return summarise(accounts, proved)

    def _claimed(self, user: UserSpending) -> Guarantee:
        said = [one for pipeline in self.pipelines if (one := pipeline.paper_claim()) is not None]
        if self.scenario.variant == "paper" and said:
            return sequential(said)
        for flow in self._sent(user):
            price = self.prices.get(flow)
            if price is not None and not price.claimed.is_finite:
                return Guarantee.none(f"{flow}: {price.claimed.reason}", _USER)
        return Guarantee(self.scenario.budget, _USER)

    def _proved(self, user: UserSpending) -> Guarantee:
        sent = self._sent(user)
        for flow in sent:
            price = self.prices.get(flow)
            if price is None:
                return Guarantee.none(f"{flow}: the pipeline states no guarantee", _USER)
            if not price.proved.is_finite:
                return Guarantee.none(f"{flow}: {price.proved.reason}", _USER)
        each = [(self.prices[flow].proved, count) for flow, count in sent.items()]
        listed = ", ".join(f"{count:,} x {flow}" for flow, count in sent.items())
        return Guarantee(
            total_as_written((one.epsilon, count) for one, count in each),
            _USER,
            delta=min(1.0, total_as_written((one.delta, count) for one, count in each)),
            reason=f"user {user.user} sent {listed or 'nothing'}",
        )

    def _sent(self, user: UserSpending) -> dict[str, int]:
        """Return the releases of a user, and what every user sends in the open."""
        by_all = {flow: 1 for flow, price in self.prices.items() if price.is_sent_by_all}
        return {**{flow: count for flow, count in user.releases.items() if count}, **by_all}

    def _figures(self, summary: SpendingSummary) -> dict[str, float]:
        """Return debited and proved epsilon of the mean user and of the heaviest."""
        everybody = UserSpending(-1, summary.debited, summary.releases)
        return {
            "mean_user.debited": summary.debited / MICRO / summary.users,
            "mean_user.proved": self._proved(everybody).epsilon / summary.users,
            "heaviest_user.debited": summary.most_debited.debited / MICRO,
            "heaviest_user.proved": self._proved(summary.heaviest).epsilon,
        }

    def _totals(self, summary: SpendingSummary) -> list[Metric]:
        """Return the whole run: both figures, who the heaviest user is, and what was sent."""
        n, heaviest = summary.users, summary.heaviest
        flows = sorted(summary.releases)
        return [
            *(Metric(name, value, n=n) for name, value in self._figures(summary).items()),
            Metric("heaviest_user.number", float(heaviest.user), n=n),
            Metric("heaviest_user.own_debited", heaviest.debited / MICRO, n=n),
            Metric("heaviest_user.most_debited", float(summary.most_debited.user), n=n),
            *(
                Metric(
                    f"heaviest_user.releases.{flow.replace(' ', '_')}",
                    float(heaviest.releases.get(flow, 0)),
                    n=n,
                )
                for flow in flows
            ),
        ]
