"""The model publisher: charges a data set's budget, draws once, and hands out what it stored.

A publication goes from requested to charged to stored, and never back. The charge is made before
anything is drawn; what was drawn is stored before it is handed out; a retry gets what is stored.
So a crash at any point costs at most a charge, and never gives a second draw for one charge.
That a method failed may tell of the data: a failure is stored, too, and is what a retry gets.

What is published is the business of methods that plug in: bytes from a request and a source.
The role has no clock, no socket and no randomness of its own.
"""

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias

from noisefloor.accounting import LedgerEntry, ReleaseLoss, SpendReceipt
from noisefloor.canonical_json import canonical_json
from noisefloor.cards import SigningKey
from noisefloor.errors import BadParameter, LedgerAbsent, PublicationFailed, SpendConflict
from noisefloor.privacy import Claim, ClaimVerdict, Guarantee, Neighbours
from noisefloor.randomness import Source
from noisefloor.roles.artefact import (
    Artefact,
    claim_fields,
    guarantee_in_words,
    unpack_artefact,
)
from noisefloor.roles.release_card import finished_card

_ID = re.compile(r"[a-z0-9-]{1,64}", re.ASCII)
_MOST_PARAMETERS_BYTES = 1 << 16


class BudgetLedger(Protocol):
    """Who charges: a ledger, in memory or on a server."""

    @property
    def neighbours(self) -> Neighbours:
        """The relation of everything that is spent here."""

    def spend(
        self,
        subject: str,
        spend_id: str,
        cost: Guarantee,
        release: str,
        proved: Guarantee | None = None,
        count: int = 1,
        loss: ReleaseLoss | None = None,
    ) -> LedgerEntry:
        """Debit the cost or refuse; a retry with the same id is free."""

    def can_spend(
        self, subject: str, cost: Guarantee, count: int = 1, loss: ReleaseLoss | None = None
    ) -> bool:
        """Tell whether a spend would be accepted; nothing is spent."""

    def receipt(self, subject: str, spend_id: str) -> SpendReceipt:
        """Return what was written down of a spend; KeyError if nothing was."""

    def entries(self, subject: str) -> list[LedgerEntry]:
        """Return what a subject has spent."""


class ArtefactStore(Protocol):
    """Stores releases, each once."""

    def publish(self, spend_id: str, content: bytes) -> bytes:
        """Store the content unless something is stored already; return what is stored."""

    def published(self, spend_id: str) -> bytes | None:
        """Return what is stored, or None."""


class MemoryArtefactStore:
    """A store in memory."""

    __slots__ = ("_stored",)

    def __init__(self) -> None:
        self._stored: dict[str, bytes] = {}

    def publish(self, spend_id: str, content: bytes) -> bytes:
        """Store the content unless something is stored already; return what is stored."""
        return self._stored.setdefault(spend_id, content)

    def published(self, spend_id: str) -> bytes | None:
        """Return what is stored, or None."""
        return self._stored.get(spend_id)


Parameter: TypeAlias = str | int | float | bool
"""Parameters of a method beside the budget."""


@dataclass(frozen=True, slots=True)
class ReleaseRequest:
    """A request to publish something.

    Attributes:
        publication_id: Names this publication; a retry comes with the same one. Lower-case
            letters, digits and hyphens, at most 64.
        data_set: Whose budget pays.
        method: How it is made.
        cost: What it may cost, and under which relation: this is charged.
        parameters: What the method has to know beside that.
    """

    publication_id: str
    data_set: str
    method: str
    cost: Guarantee
    parameters: Mapping[str, Parameter] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("publication_id", "data_set", "method"):
            if not _ID.fullmatch(getattr(self, name)):
                raise BadParameter(name, "<text>", f"to match {_ID.pattern}")
        if not self.cost.is_finite:
            raise BadParameter("cost", self.cost.epsilon, "to be finite")
        for name, value in self.parameters.items():
            if not isinstance(name, str) or not isinstance(value, str | int | float | bool):
                raise BadParameter("parameters", "<parameter>", "a text or a number each")
        if len(canonical_json(dict(self.parameters), allow_nan=False)) > _MOST_PARAMETERS_BYTES:
            rule = f"at most {_MOST_PARAMETERS_BYTES} bytes"
            raise BadParameter("parameters", "<parameters>", rule)
        object.__setattr__(self, "parameters", MappingProxyType(dict(self.parameters)))

    @property
    def digest(self) -> str:
        """The hash of everything that was requested."""
        cost = claim_fields(Claim(self.cost, self.cost))["claimed"]
        requested = [self.publication_id, self.data_set, self.method, cost, dict(self.parameters)]
        return hashlib.sha256(canonical_json(requested, allow_nan=False)).hexdigest()


@dataclass(frozen=True, slots=True)
class PublicationMethod:
    """One way to publish something.

    Attributes:
        name: As requests name it, and as the ledger's statement lists it.
        media_type: What its artefacts are.
        proved: What was proved of a release for this request. It looks at no data.
        loss: What is known of the loss of a release beside that: the noise that is drawn. The
            ledger's filter adds it up; it looks at no data either. By default nothing is.
        release: Makes the bytes. It draws from the source only, and only once it is called.
        describe: What the card says beside the guarantee. It gets the request and the bytes that
            are published anyway: so a card cannot tell what was not paid for.
        check: Refuses, before anything is charged, what a release could not go on from; it looks
            at no data.
        is_long: Whether it takes longer than a caller waits for an answer; a service then runs it
            beside its requests.
        help: For authors of requests: the parameters, and the output.
    """

    name: str
    media_type: str
    proved: Callable[[ReleaseRequest], Guarantee]
    release: Callable[[ReleaseRequest, Source], bytes]
    loss: Callable[[ReleaseRequest], ReleaseLoss] | None = None
    describe: Callable[[ReleaseRequest, bytes], Mapping[str, Any]] = lambda request, content: {}
    check: Callable[[ReleaseRequest], None] = lambda request: None
    is_long: bool = False
    help: str = ""


_FAILED = (
    "The publication was paid for and its method failed. Nothing is drawn a second time for one "
    "charge; a new one needs a new id."
)


class PublicationState(Enum):
    """How far a publication is."""

    UNKNOWN = "unknown"
    CHARGED = "charged"
    STORED = "stored"


class ModelPublisher:
    """Publishes by the methods it knows, from the data sets it knows.

    Args:
        budgets: Who charges.
        store: Of artefacts; the first one of a publication stays for ever.
        methods: What can be published.
        data_sets: Of what.
        is_experiment: Whether to publish also what was claimed and not proved. The card says so
            either way; a service leaves this off.
        signer: Signs the cards. Without one they say that they are not signed, and recipients
            refuse them: for simulations.
    """

    __slots__ = ("_budgets", "_data_sets", "_is_experiment", "_methods", "_signer", "_store")

    def __init__(
        self,
        budgets: BudgetLedger,
        store: ArtefactStore,
        methods: Iterable[PublicationMethod],
        *,
        data_sets: Collection[str],
        is_experiment: bool = False,
        signer: SigningKey | None = None,
    ) -> None:
        listed = list(methods)
        self._methods = {method.name: method for method in listed}
        if not listed or len(self._methods) < len(listed):
            raise BadParameter("methods", sorted(self._methods), "at least one, each named once")
        self._budgets = budgets
        self._store = store
        self._data_sets = frozenset(data_sets)
        self._is_experiment = is_experiment
        self._signer = signer

    def publish(self, request: ReleaseRequest, source: Source) -> Artefact:
        """Return the artefact of a publication: the stored one, or a new one that is paid for.

        Args:
            request: The request; a retry repeats it.
            source: Where the noise comes from. Nothing is taken from it for a retry of something
                that is stored.

        Raises:
            BudgetExceeded: The data set has too little left; nothing was spent or drawn.
            SpendConflict: The publication id stands for another request.
            PublicationFailed: The method failed, now or at an earlier try.
            BadParameter: An unknown method or data set, a cost of another relation than the
                budget, or more is claimed than is proved.
        """
        method, claim = self._checked(request)
        stored = self._store.published(request.publication_id)
        if stored is None:
            method.check(request)
            self._charge(request, claim)
            made = self._made(request, method, claim, source)
            stored = self._store.publish(request.publication_id, made.packed())
        return _answer(request, stored)

    def _made(
        self, request: ReleaseRequest, method: PublicationMethod, claim: Claim, source: Source
    ) -> Artefact:
        """Draw; a failure is stored, so that a repeated request does not draw again."""
        # Of the ledger and not of a clock: after a crash the card says the same of the charge.
        receipt = self._receipt(request)
        try:
            content = method.release(request, source)
        except Exception as error:
            failed = Artefact(b"", method.media_type, _failure(request, method))
            self._store.publish(request.publication_id, failed.packed())
            raise PublicationFailed(_FAILED) from error
        card = _card(request, method, claim, content)
        return Artefact(content, method.media_type, finished_card(card, receipt, self._signer))

    def _receipt(self, request: ReleaseRequest) -> SpendReceipt | None:
        """Return what the ledger wrote down of the charge; a key signs for nothing else."""
        try:
            return self._budgets.receipt(request.data_set, request.publication_id)
        except KeyError:
            if self._signer is None:  # a simulation, whose audit looks for what nobody paid
                return None
            raise LedgerAbsent(
                f"The ledger has no entry of {request.publication_id}, which was charged: nothing "
                "was drawn. Verify the ledger."
            ) from None

    def charge(self, request: ReleaseRequest) -> LedgerEntry:
        """Pay for a publication and draw nothing yet; ``publish`` then is free."""
        _, claim = self._checked(request)
        return self._charge(request, claim)

    def would_publish(self, request: ReleaseRequest) -> bool:
        """Tell whether a new request would be paid for: a dry run, it costs nothing."""
        return self._budgets.can_spend(request.data_set, request.cost, loss=self.loss(request))

    def loss(self, request: ReleaseRequest) -> ReleaseLoss:
        """Return what is known of the loss of a release.

        Where more is claimed than proved (experiments), the ledger debits what is claimed.
        """
        method, claim = self._checked(request)
        if claim.verdict is not ClaimVerdict.HOLDS:
            return ReleaseLoss.of(request.cost)
        return ReleaseLoss.of(claim.proved) if method.loss is None else method.loss(request)

    def stored(self, request: ReleaseRequest) -> Artefact | None:
        """Return what is stored for this very request, or None; SpendConflict for another one."""
        self._checked(request)
        stored = self._store.published(request.publication_id)
        return None if stored is None else _answer(request, stored)

    def is_long(self, request: ReleaseRequest) -> bool:
        """Tell whether a request should not be waited for."""
        return self._checked(request)[0].is_long

    def artefact(self, publication_id: str) -> Artefact | None:
        """Return what is stored of a publication, or None."""
        stored = self._store.published(publication_id)
        return None if stored is None else unpack_artefact(stored)

    def state(self, request: ReleaseRequest) -> PublicationState:
        """Return how far a publication is."""
        if self._store.published(request.publication_id) is not None:
            return PublicationState.STORED
        charged = self._budgets.entries(request.data_set)
        is_charged = any(entry.spend_id == request.publication_id for entry in charged)
        return PublicationState.CHARGED if is_charged else PublicationState.UNKNOWN

    def _charge(self, request: ReleaseRequest, claim: Claim) -> LedgerEntry:
        return self._budgets.spend(
            request.data_set,
            request.publication_id,
            request.cost,
            request.method,
            claim.proved,
            loss=self.loss(request),
        )

    def _checked(self, request: ReleaseRequest) -> tuple[PublicationMethod, Claim]:
        """Return method and claim of a request that can be served; nothing is spent yet."""
        if request.data_set not in self._data_sets:
            raise BadParameter("data_set", "<text>", "one that is published from")
        method = self._methods.get(request.method)
        if method is None:
            raise BadParameter("method", "<text>", f"one of {', '.join(sorted(self._methods))}")
        # Before anything is planned: by another relation the number of records would be public,
        # and a plan, or what it refuses, would tell it.
        if request.cost.neighbours is not self._budgets.neighbours:
            rule = f"{self._budgets.neighbours.value}, the relation of the budget"
            raise BadParameter("neighbours", request.cost.neighbours.value, rule)
        claim = Claim(request.cost, method.proved(request))
        if claim.verdict is not ClaimVerdict.HOLDS and not self._is_experiment:
            raise BadParameter("cost", claim.claimed.epsilon, _to_be_paid(method.name, claim))
        return method, claim


def _to_be_paid(method: str, claim: Claim) -> str:
    """Say what a request would have to pay, which is what is proved and not what is claimed."""
    proved = claim.proved
    if not proved.is_finite:
        return (
            f"of a request with a guarantee: nothing is proved of {method} with these parameters "
            f"({proved.reason}), so that no cost covers it"
        )
    return (
        f"at least what is proved of {method} with these parameters, epsilon {proved.epsilon:g} "
        f"and delta {proved.delta:g}: the ledger charges what is proved of all that is released, "
        "and not what is claimed of a part"
    )


def _failure(request: ReleaseRequest, method: PublicationMethod) -> dict[str, object]:
    return {
        "failed": True,
        "publication_id": request.publication_id,
        "data_set": request.data_set,
        "method": method.name,
        "request_sha256": request.digest,
    }


def _card(
    request: ReleaseRequest, method: PublicationMethod, claim: Claim, content: bytes
) -> dict[str, object]:
    described = method.describe(request, content)
    verdict = described.get("audit", {}).get("verdict")
    # An audit that reached more than is proved is about the code that drew this release.
    broken = {"verdict": verdict} if verdict is ClaimVerdict.BROKEN else {}
    said = guarantee_in_words(claim.proved)
    return {
        **described,
        "publication_id": request.publication_id,
        "data_set": request.data_set,
        "method": method.name,
        "parameters": dict(request.parameters),
        "guarantee": f"Contradicted by the audit, which reached more: {said}" if broken else said,
        "claims": {**claim_fields(claim), **broken},
        "neighbours": claim.proved.neighbours.value,
        "request_sha256": request.digest,
        "content_sha256": hashlib.sha256(content).hexdigest(),
        "content_bytes": len(content),
    }


def _answer(request: ReleaseRequest, stored: bytes) -> Artefact:
    """Return what is stored, unless it was made for another request."""
    artefact = unpack_artefact(stored)
    if artefact.card["request_sha256"] != request.digest:
        raise SpendConflict(
            f"Publication {request.publication_id} was made for another request. A retry has to "
            "repeat it; a new publication needs a new id."
        )
    if has_failed(artefact):
        raise PublicationFailed(_FAILED)
    return artefact


def has_failed(artefact: Artefact) -> bool:
    """Tell whether what is stored says that nothing came out."""
    return bool(artefact.card.get("failed"))
