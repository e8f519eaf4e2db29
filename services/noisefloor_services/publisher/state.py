"""What the model publisher's routes share: the ledger, the role on it, jobs, and their numbers."""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager

from fastapi import HTTPException
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from noisefloor.accounting import Amount
from noisefloor.errors import NoisefloorError
from noisefloor.randomness import Source
from noisefloor.roles import (
    Artefact,
    ModelPublisher,
    PublicationMethod,
    ReleaseRequest,
    has_failed,
    unpack_artefact,
)
from noisefloor.wire.messages import PublicationPrice
from noisefloor_services.ledger import AnchoredLedger, BadAnchor, LedgerBehind, RedisLedger
from noisefloor_services.metrics import MetricCounter, MetricSample, available_samples
from noisefloor_services.publisher.jobs import PublicationProgress, PublicationQueue
from noisefloor_services.settings import Settings

TIMEOUT_S = 10.0

_log = logging.getLogger(__name__)


class PublisherState:
    """What the routes share.

    Args:
        settings: What the service was told.
        methods: What can be published, by name.
        data_sets: Of what.
        source: Where the noise comes from.
        open_ledger: Opens the ledger, which need not be there yet.
    """

    def __init__(
        self,
        settings: Settings,
        methods: Mapping[str, PublicationMethod],
        data_sets: Collection[str],
        source: Source,
        open_ledger: Callable[[Redis], RedisLedger],
    ) -> None:
        self.source = source
        self.methods = dict(methods)
        self.data_sets = frozenset(data_sets)
        self.client: Redis = Redis.from_url(
            settings.redis_url,
            socket_timeout=TIMEOUT_S,
            socket_connect_timeout=2.0,
            retry=Retry(NoBackoff(), 0),
        )
        self.outcomes = MetricCounter(
            "publications",
            "Requests by what became of them.",
            "outcome",
            ("stored", "taken", "dry-run"),
        )
        self.jobs = PublicationQueue()
        self._lock = threading.Lock()
        self._open_ledger = open_ledger
        self._ledger: RedisLedger | None = None
        if settings.ledger_anchor is None:
            _log.warning("no anchor: a store that is set back to an old backup is not noticed")

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run what takes long beside the requests; close the connections in the end."""
        self.jobs.start()
        try:
            yield
        finally:
            if not await asyncio.to_thread(self.jobs.stop):
                _log.warning("a publication is under way: it is paid for, and can be asked again")
            self.client.close()

    def ledger(self) -> RedisLedger:
        """Open the ledger, once; it is never made here: an empty server is no full budget."""
        with self._lock:
            if self._ledger is None:
                self._ledger = self._open_ledger(self.client)
            return self._ledger

    def lacks(self) -> str:
        """Return what is wrong with the ledger, or nothing."""
        try:
            ledger = self.ledger()
            if isinstance(ledger, AnchoredLedger):
                ledger.check_anchor()
            ledger.spent("<readiness>")
        except RedisError:
            return "The ledger does not answer."
        except LedgerBehind:
            return "The ledger holds less than its anchor says: run restore-ledger."
        except BadAnchor:
            return "The ledger's anchor is missing, damaged, or another ledger's."
        except NoisefloorError:
            return "The ledger is not there, has other terms, or lost what it held."
        return ""

    def publisher(self) -> ModelPublisher:
        """Return the role on the ledger."""
        if not self.methods:
            raise HTTPException(422, "No method of publication is installed here.")
        ledger = self.ledger()
        return ModelPublisher(ledger, ledger, self.methods.values(), data_sets=self.data_sets)

    def found(self, publication_id: str) -> Artefact:
        """Return what is stored of a publication, or answer 404."""
        stored = self.ledger().published(publication_id)
        if stored is None:
            raise HTTPException(404, "There is no such publication, or it is not stored yet.")
        made = unpack_artefact(stored)
        if has_failed(made):
            raise HTTPException(410, PublicationProgress.FAILED.text)
        return made

    def progress(self, publication_id: str) -> PublicationProgress:
        """Return how far a publication is, or answer 404."""
        ledger, under_way = self.ledger(), self.jobs.progress(publication_id)
        if under_way in (PublicationProgress.WAITING, PublicationProgress.RUNNING):
            return under_way
        stored = ledger.published(publication_id)
        if stored is not None:
            return (
                PublicationProgress.FAILED
                if has_failed(unpack_artefact(stored))
                else PublicationProgress.STORED
            )
        if ledger.entry(publication_id) is None:
            raise HTTPException(404, "There is no such publication.")
        return PublicationProgress.CHARGED

    def price(self, request: ReleaseRequest) -> PublicationPrice:
        """Return what a request would cost; nothing more where it is paid for."""
        ledger = self.ledger()
        is_paid = ledger.entry(request.publication_id) is not None
        cost = Amount(0) if is_paid else Amount.cost(request.cost)
        left = (ledger.spent(request.data_set) + cost).left_of(ledger.budget)
        return PublicationPrice(
            micro_epsilon=cost.micro_epsilon,
            delta=cost.delta,
            left_micro_epsilon=left.micro_epsilon,
            left_delta=left.delta,
        )

    def samples(self) -> Iterable[MetricSample]:
        """Return what was published, and the budgets of the data sets."""
        yield from self.outcomes.samples()
        text = "Publications that are paid for and not made yet."
        yield MetricSample("publications_waiting", text, self.jobs.waiting)
        yield from available_samples(self._budgets)

    def _budgets(self) -> Iterable[MetricSample]:
        ledger = self.ledger()
        for name in sorted(self.data_sets):
            spent, left = ledger.spent(name), ledger.left(name)
            label = {"data_set": name}
            text = "Spent budget in millionths of epsilon."
            yield MetricSample("ledger_spent_micro_epsilon", text, spent.micro_epsilon, label)
            text = "Budget that is left, in millionths of epsilon."
            yield MetricSample("ledger_left_micro_epsilon", text, left.micro_epsilon, label)
        yield MetricSample(
            "ledger_entries", "Entries of the ledger at least.", ledger.entries_seen
        )
