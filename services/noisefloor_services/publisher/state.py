"""What the model publisher's routes share: ledgers, the role on them, jobs, and their numbers."""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from contextlib import asynccontextmanager

from fastapi import HTTPException
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from noisefloor import roles
from noisefloor.accounting import Amount, ReleaseLoss
from noisefloor.cards import SigningKey
from noisefloor.errors import BrokenChain, NoisefloorError
from noisefloor.randomness import Source
from noisefloor.wire.messages import PublicationPrice
from noisefloor_services.ledger import AnchoredLedger, BadAnchor, LedgerBehind, RedisLedger
from noisefloor_services.metrics import MetricCounter, MetricSample, available_samples
from noisefloor_services.publisher.jobs import PublicationProgress, PublicationQueue
from noisefloor_services.publisher.ledgers import TIMEOUT_S, LedgerPlace
from noisefloor_services.publisher.uploads import UploadedDataSets
from noisefloor_services.settings import Settings

_log = logging.getLogger(__name__)


class PublisherState:
    """What the routes share.

    Args:
        settings: Of the service.
        methods: How to publish from the operator's data sets, by name.
        data_sets: The names of the operator's data sets.
        source: Where the noise comes from.
        audit: Plays the games of the cards of uploaded data sets, if there is an auditor.
    """

    def __init__(
        self,
        settings: Settings,
        methods: Mapping[str, roles.PublicationMethod],
        data_sets: Collection[str],
        source: Source,
        audit: roles.Audit | None,
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
            ("stored", "taken", "dry-run", "refused"),
        )
        self.jobs = PublicationQueue()
        self.signer = _signer(settings)
        self._lock = threading.Lock()
        self._place = LedgerPlace.of(settings)
        self._ledger: RedisLedger | None = None
        self.has_experiments = settings.experiments
        self.uploads = UploadedDataSets(settings, self.client, self.data_sets, audit, self.signer)
        if settings.experiments:
            _log.warning("experiments are taken: their publications have no guarantee")
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
                _log.warning("a publication is under way: it is paid for, and can be repeated")
            self.client.close()

    def ledger(self, data_set: str | None = None) -> RedisLedger:
        """Return the ledger of a data set, or answer 404; without a name, the operator's.

        The operator's ledger is opened once and never made here: an empty server is no full
        budget.
        """
        if data_set is not None and data_set not in self.data_sets:
            uploaded = self.uploads.ledger(data_set)
            if uploaded is None:
                raise HTTPException(404, "Nothing is published from it.")
            return uploaded
        with self._lock:
            if self._ledger is None:
                self._ledger = self._place.open(self.client)
            return self._ledger

    def check_ledger(self) -> None:
        """Raise LedgerAbsent if the server lost the operator's ledger: it lost the others, too."""
        self.ledger().spent("<registration>")

    def job_key(self, publication_id: str, data_set: str | None) -> str:
        """Return the name of a job: ids are of one ledger, and each uploaded set has its own."""
        is_operators = data_set is None or data_set in self.data_sets
        return publication_id if is_operators else f"{data_set}/{publication_id}"

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
        except BrokenChain:
            return "A record of the ledger is missing, changed or forged: ledger verify names it."
        except BadAnchor:
            return "The ledger's anchor is missing, damaged, or another ledger's."
        except NoisefloorError:
            return "The ledger is not there, has other terms, or lost what it held."
        return ""

    def publisher(self, data_set: str) -> roles.ModelPublisher:
        """Return the role on the ledger of a data set."""
        uploaded = None if data_set in self.data_sets else self.uploads.find(data_set)
        if uploaded is not None:
            return uploaded.publisher()
        if not self.methods:
            raise HTTPException(422, "No method of publication is installed here.")
        ledger = self.ledger()
        return roles.ModelPublisher(
            ledger,
            ledger,
            self.methods.values(),
            data_sets=self.data_sets,
            signer=self.signer,
        )

    def found(self, publication_id: str, data_set: str | None) -> roles.Artefact:
        """Return what is stored of a publication, or answer 404."""
        stored = self.ledger(data_set).published(publication_id)
        if stored is None:
            raise HTTPException(404, "There is no such publication, or it is not stored yet.")
        made = roles.unpack_artefact(stored)
        if roles.has_failed(made):
            raise HTTPException(410, PublicationProgress.FAILED.text)
        return made

    def progress(self, publication_id: str, data_set: str | None) -> PublicationProgress:
        """Return how far a publication is, or answer 404."""
        ledger = self.ledger(data_set)
        under_way = self.jobs.progress(self.job_key(publication_id, data_set))
        if under_way in (PublicationProgress.WAITING, PublicationProgress.RUNNING):
            return under_way
        stored = ledger.published(publication_id)
        if stored is not None:
            return (
                PublicationProgress.FAILED
                if roles.has_failed(roles.unpack_artefact(stored))
                else PublicationProgress.STORED
            )
        if ledger.entry(publication_id) is None:
            raise HTTPException(404, "There is no such publication.")
        return PublicationProgress.CHARGED

    def price(self, request: roles.ReleaseRequest) -> PublicationPrice:
        """Return what a request would cost; nothing more where it is paid for."""
        ledger = self.ledger(request.data_set)
        is_paid = ledger.entry(request.publication_id) is not None
        would = ledger.would_spend(request.data_set, request.cost, loss=self.loss(request))
        cost = Amount(0) if is_paid else Amount.cost(request.cost)
        left = would.left if is_paid else would.after
        return PublicationPrice(
            micro_epsilon=cost.micro_epsilon,
            delta=cost.delta,
            left_micro_epsilon=left.micro_epsilon,
            left_delta=left.delta,
        )

    def loss(self, request: roles.ReleaseRequest) -> ReleaseLoss:
        """Return what is known of the loss of a release."""
        return self.publisher(request.data_set).loss(request)

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


def _signer(settings: Settings) -> SigningKey | None:
    """Return the key that signs cards, if there is one."""
    if settings.signing_key_file is None:
        _log.warning("no signing key: cards are not signed, and recipients refuse them")
        return None
    return SigningKey.read(settings.signing_key_file)
