"""The tap: what crossed is read where it arrives, and compared with what was sent and released.

Frames are matched to what devices held by their batch id, each once however often it arrives. The
integer tally of the rows that were read has to equal what the server released: so the tap cannot
look at anything else than what counted. What is read goes to the flow that inspects it; nothing
else learns the truth, and no server has a tap.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from noisefloor.accounting import MICRO
from noisefloor.adversary.fit import FitTable, see_order
from noisefloor.errors import BadFrame
from noisefloor.privacy import FlowEvidence
from noisefloor.roles import EpochReleases, FrameOutcome, FrameStatus
from noisefloor.wire import FIRST, Frame, Kind, Order, Reduction, decode_frame
from noisefloor_sim.deploy.hosting import Receiver
from noisefloor_sim.inspection.flow import DeviceFrame, Flow, SeenFrame
from noisefloor_sim.inspection.transcript import Transcript

_ODD = 0x9E3779B97F4A7C15
"""Weights of columns in the fingerprint of a row are its odd multiples."""


MOST_ORDERED = 2_048
"""Rows of a frame whose order is looked at: a frame that keeps an order keeps it everywhere."""


HEADER = frozenset((b"version", b"kind", b"epoch", b"batch"))
"""What the header of a frame says, and nothing else."""

NAMED_HEADER = HEADER | {b"collection"}
"""That of a frame which names its collection."""


@dataclass(slots=True)
class _Epoch:
    """What was read of one epoch of a kind, of frames that count."""

    rows: int = 0
    tally: NDArray[np.int64] | None = None
    fingerprint: int = 0

    def add(self, kind: Kind, batch: pa.RecordBatch) -> None:
        self.rows += batch.num_rows
        if kind.reduction is Reduction.SUM:
            tally = kind.tally(batch)
            self.tally = tally if self.tally is None else self.tally + tally
        else:
            self.fingerprint = (self.fingerprint + fingerprint(kind, batch)) % (1 << 64)


@dataclass(slots=True)
class _Book:
    """What the tap knows of one flow.

    Attributes:
        flow: What is declared of it.
        server: Which released what was counted.
        expected: Frames that were sent and have not arrived, by batch id.
        seen: Of every frame that arrived, its bytes' hash.
        epochs: What was read, by epoch.
        compared: What was wrong with what was released of an epoch, if that was looked at.
        paid: Reports that a budget was debited for, as devices sent them, by epoch.
        sent: Reports that devices sent.
        rows: Reports that arrived, each once.
        faults: How often each thing was wrong.
        orders: Tests of the order of rows.
        last_order: Of each cohort's last frame.
        headers: Kinds whose header was looked at.
        schemas: Of frames that carry what is declared, by kind and epoch.
        header: What the header of a frame has to say.
    """

    flow: Flow
    server: EpochReleases | None = None
    header: frozenset[bytes] = HEADER
    expected: dict[bytes, DeviceFrame] = field(default_factory=dict)
    seen: dict[bytes, int] = field(default_factory=dict)
    epochs: dict[int, _Epoch] = field(default_factory=dict)
    compared: dict[int, str] = field(default_factory=dict)
    paid: dict[int, int] = field(default_factory=dict)
    sent: int = 0
    rows: int = 0
    faults: dict[str, int] = field(default_factory=dict)
    orders: FitTable = field(default_factory=FitTable)
    last_order: dict[int, Order] = field(default_factory=dict)
    headers: set[str] = field(default_factory=set)
    schemas: dict[tuple[str, int], pa.Schema] = field(default_factory=dict)

    def blame(self, fault: str) -> None:
        """Note that something was wrong once more."""
        self.faults[fault] = self.faults.get(fault, 0) + 1

    def see_header(self, frame: Frame, data: bytes) -> None:
        """Compare what a frame carries with what is declared: columns, and entries of the header.

        All headers of a kind have the same entries, or no server reads them: one is enough.
        """
        known = self.schemas.get((frame.kind.name, frame.epoch))
        if known is not None and known.equals(frame.batch.schema):
            return
        declared = self.flow.columns_at(frame.epoch)
        if declared == (carried := _columns(frame.batch)):
            self.schemas[frame.kind.name, frame.epoch] = frame.batch.schema
        else:
            self.blame(f"a frame carries {carried} where {declared} is declared")
        if frame.kind.name not in self.headers:
            self.headers.add(frame.kind.name)
            entries = pa.ipc.read_schema(pa.py_buffer(data)).metadata or {}
            if set(entries) != self.header:
                named = ", ".join(sorted(one.decode() for one in entries))
                self.blame(f"a frame carries the entries {named} in its header")

    def see_order(self, sent: DeviceFrame) -> None:
        """Compare the order of rows with that of users, and with the cohort's frame before."""
        see_order(self.orders, sent.frame.order, MOST_ORDERED)
        order = sent.frame.order[:MOST_ORDERED]
        before = self.last_order.get(sent.cohort)
        if before is not None:
            both = min(len(before), len(order)) // 2 * 2
            signs = [some[:both:2] < some[1:both:2] for some in (before, order)]
            same = np.count_nonzero(signs[0] == signs[1])
            self.orders.add("rows in the order of the frame before", same, both // 2, 0.5)
        self.last_order[sent.cohort] = order


class FrameTap:
    """Reads what arrives, for all flows of a world.

    Args:
        is_linked: Whether the server can tell connections apart, so that there are transcripts.
        collection: What frames of which something is released have to name; nothing where they
            count in a first collection.
    """

    def __init__(self, *, is_linked: bool = False, collection: str = "") -> None:
        self._is_linked = is_linked
        self._collection = collection
        self._transcripts: dict[str, Transcript] = {}
        self._books: dict[str, _Book] = {}
        self._kinds: dict[str, Kind] = {}
        self._flow_of_kind: dict[str, str] = {}
        self._by_bytes: dict[int, str] = {}

    @property
    def given_up(self) -> int:
        """Frames that were sent and never arrived."""
        return sum(len(book.expected) for book in self._books.values())

    def open(self, flows: Iterable[Flow], server: EpochReleases | None) -> None:
        """Begin to read flows, once; the server is None if nothing is released of them."""
        for flow in flows:
            if flow.name in self._books:
                continue
            is_named = self._collection and server is not None
            self._books[flow.name] = _Book(flow, server, NAMED_HEADER if is_named else HEADER)
            for epoch in flow.epochs:
                kind = flow.kind_at(epoch)
                self._kinds[kind.name] = kind
                self._flow_of_kind[kind.name] = flow.name

    def is_named(self, flow: str) -> bool:
        """Whether the frames of a flow have to name a collection: queries count in none."""
        return self._books[flow].header is NAMED_HEADER

    def expect(self, frame: DeviceFrame) -> None:
        """Note what a device is about to send."""
        book = self._books[frame.flow]
        book.expected[frame.frame.batch_id] = frame
        book.paid[frame.epoch] = book.paid.get(frame.epoch, 0) + frame.paid
        book.sent += len(frame.frame.order)
        self._by_bytes[hash(frame.data)] = frame.flow

    def watch(self, handle: Receiver) -> Receiver:
        """Return a receiver that hands frames on, and reads them with what became of them."""

        def receive(data: bytes) -> object:
            outcome = handle(data)
            self.read(data, outcome)
            return outcome

        return receive

    def read(self, data: bytes, outcome: object) -> None:
        """Read a frame that arrived.

        Args:
            data: The bytes.
            outcome: What the server made of it.
        """
        frame = outcome.frame if isinstance(outcome, FrameOutcome) else None
        try:
            # A role in this process has decoded these very bytes; what it counted is compared.
            names = {*FIRST, self._collection}
            frame = frame or decode_frame(data, self._kinds, collections=sorted(names))
        except BadFrame as error:
            flow = self._by_bytes.get(hash(data), next(iter(self._books), ""))
            if flow:
                self._books[flow].blame(f"a frame carries what its kind does not declare: {error}")
            return
        book = self._books[self._flow_of_kind[frame.kind.name]]
        sent = book.expected.get(frame.batch_id)
        if frame.batch_id in book.seen:
            if book.seen[frame.batch_id] != hash(data):
                book.blame("a frame that is sent again has other bytes than the first time")
        elif sent is None:
            book.blame("a frame arrived that no device sent")
        else:
            self._take(book, sent, frame, data)
            if not isinstance(outcome, FrameOutcome) or outcome.status is FrameStatus.COUNTED:
                book.epochs.setdefault(frame.epoch, _Epoch()).add(frame.kind, frame.batch)

    def _take(self, book: _Book, sent: DeviceFrame, frame: Frame, data: bytes) -> None:
        del book.expected[frame.batch_id]
        self._by_bytes.pop(hash(sent.data), None)
        book.seen[frame.batch_id] = hash(data)
        book.rows += frame.batch.num_rows
        if data != sent.data:
            book.blame("a frame arrived with other bytes than were sent")
        book.see_header(frame, data)
        if frame.batch.num_rows != len(sent.frame.order):
            book.blame("a frame has another number of rows than was sent")
            return
        book.see_order(sent)
        seen = SeenFrame(frame, sent.frame.order, sent.truth, sent.cohort)
        book.flow.inspect(seen)
        if self._is_linked and sent.connections is not None:
            self._transcripts.setdefault(sent.flow, Transcript()).add(seen, sent.connections)

    def transcript(self, flow: str) -> Transcript | None:
        """Return what was seen of a flow's connections, if anything was."""
        return self._transcripts.get(flow)

    def compare(self, kind: str, epoch: int) -> None:
        """Compare what was read of an epoch with what is released of it, before it is dropped."""
        book = self._books[self._flow_of_kind[kind]]
        book.compared[epoch] = _released_fault(book, epoch)

    def evidence(self, spent: Mapping[str, int]) -> dict[str, FlowEvidence]:
        """Compare with what servers released and ledgers debited, and make all tests.

        Args:
            spent: By what accounts call a flow, what it took of all users, in micro-epsilon.
        """
        return {name: self._settled(book, spent) for name, book in self._books.items()}

    def _settled(self, book: _Book, spent: Mapping[str, int]) -> FlowEvidence:
        fit, orders = book.flow.fit(), book.orders.result()
        faults = [*_said(book.faults), *_released_faults(book), *_ledger_faults(book, spent)]
        if orders.rejects:
            faults.append(f"rows keep an order: {orders.worst}")
        return FlowEvidence(
            book.flow.name,
            book.rows,
            fit.tests,
            fit.p_value,
            fit.misfit,
            tuple(faults),
            is_blind=not fit.finds_planted,
        )


def _said(faults: Mapping[str, int]) -> list[str]:
    return [text if times == 1 else f"{text} ({times} times)" for text, times in faults.items()]


def _released_faults(book: _Book) -> list[str]:
    """Compare what was read with what the server released, epoch by epoch."""
    faults: dict[str, int] = {}
    for epoch in book.flow.epochs:
        is_compared = epoch in book.compared
        text = book.compared[epoch] if is_compared else _released_fault(book, epoch)
        if text:
            faults[text] = faults.get(text, 0) + 1
    return _said(faults)


def _released_fault(book: _Book, epoch: int) -> str:
    """Say what is wrong with what the server released of an epoch, if anything is."""
    if book.server is None:
        return ""
    kind, read = book.flow.kind_at(epoch), book.epochs.get(epoch, _Epoch())
    if kind.reduction is Reduction.SUM:
        tally, rows = book.server.release(kind.name, epoch)
        read_tally = np.zeros_like(tally) if read.tally is None else read.tally
        is_same = np.array_equal(tally, read_tally)
    else:
        batch = book.server.release_rows(kind.name, epoch)
        is_same = batch.schema.equals(kind.schema)
        is_same = is_same and fingerprint(kind, batch) == read.fingerprint
        rows = batch.num_rows
    if rows != read.rows:
        return "the server released another number of reports than arrived"
    if not is_same:
        return "the server released another sum than that of the reports that arrived"
    return ""


def _ledger_faults(book: _Book, spent: Mapping[str, int]) -> list[str]:
    """Compare the price of all paid reports with what accounts debited for them."""
    prices = {epoch: book.flow.price_at(epoch) for epoch in book.flow.epochs}
    ledgers = {price.ledger for price in prices.values() if price is not None}
    due = sum(
        count * price.micro
        for epoch, count in book.paid.items()
        if (price := prices.get(epoch)) is not None
    )
    debited = sum(spent.get(ledger, 0) for ledger in ledgers)
    if not ledgers or due == debited:
        return []
    return [
        f"{sum(book.paid.values()):,} reports cost {due / MICRO:.6g} in all, and accounts were "
        f"debited {debited / MICRO:.6g} for them"
    ]


def _columns(batch: pa.RecordBatch) -> dict[str, str]:
    return {field.name: str(field.type) for field in batch.schema}


def fingerprint(kind: Kind, batch: pa.RecordBatch) -> int:
    """Return a sum over rows that tells two multisets of rows apart, but for chance.

    Not against somebody who looks for two multisets with the same sum: the tap has no adversary.
    """
    total = np.zeros(batch.num_rows, dtype=np.uint64)
    for place, values in enumerate(kind.decode(batch).values()):
        weight = np.uint64((_ODD * (2 * place + 1)) % (1 << 64))
        total += _mixed(_words(values) * weight)
    return int(_mixed(total).sum(dtype=np.uint64))


def _words(values: NDArray[np.generic]) -> NDArray[np.uint64]:
    """Return one word per row."""
    if values.dtype.kind in "OUS":
        return np.array([hash(str(one)) & ((1 << 64) - 1) for one in values], dtype=np.uint64)
    words = values.astype(np.int64).view(np.uint64)
    if words.ndim == 1:
        return words
    weights = _mixed(np.arange(1, words.shape[1] + 1, dtype=np.uint64))
    return np.asarray(words @ weights)


def _mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spread the bits of words (the finaliser of SplitMix64)."""
    with np.errstate(over="ignore"):
        words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(words ^ (words >> np.uint64(31)))
