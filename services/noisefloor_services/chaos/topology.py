"""A store and the services on it, as real processes with addresses, tokens and folders."""

import json
import secrets
import time
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

import numpy as np
from redis import Redis

from noisefloor.privacy import Neighbours
from noisefloor_services import publisher
from noisefloor_services.chaos.clients import COLLECTION, ClickTraffic
from noisefloor_services.chaos.noise_publisher import EPSILON, METHOD
from noisefloor_services.chaos.processes import ChaosTimeout, ServiceProcess, ServiceReply
from noisefloor_services.chaos.workers import pending_frames
from noisefloor_services.ledger import RedisLedger
from noisefloor_services.security import Role
from noisefloor_services.settings import Settings
from noisefloor_services.store import Durability, EmbeddedServer, Layout, Server
from noisefloor_services.streams import Conservation, EpochStore

PARTITIONS = 2
DATA_SET = "films"
PUBLISHER_MODULE = "noisefloor_services.chaos.noise_publisher"
_SETTLE_S = 120.0
_PAUSE_S = 0.02


class ChaosTopology:
    """The services of one collection; a context manager that starts the store and stops all.

    It does not start the services: the experiment does.

    Args:
        folder: Data and logs.
        durability: Of the store.
        ledger_epsilon: Budget of the publisher's one data set.
    """

    def __init__(
        self,
        folder: Path,
        durability: Durability = Durability.DISK,
        *,
        ledger_epsilon: float = 1000.0,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.store = EmbeddedServer(folder / "store", durability)
        self._durability = durability
        self._ledger_epsilon = ledger_epsilon
        self._tokens = {role: secrets.token_hex(24) for role in Role}
        self._stack = ExitStack()

    def __enter__(self) -> "ChaosTopology":
        self._stack.enter_context(self.store)
        layout = Layout(COLLECTION.namespace, PARTITIONS)
        server = Server(self.store.url)
        self._stack.callback(server.close)
        self.epochs = EpochStore(server, layout, COLLECTION.kinds.values())
        self.ad_server = self._service("ad-server")
        self.aggregator = self._service("aggregator")
        self.worker = self._service("worker", listens=False)
        self.publisher = self._service(
            "model-publisher", "--data-set", DATA_SET, module=PUBLISHER_MODULE
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def start(self, *services: ServiceProcess) -> None:
        """Start services together, and wait until all are ready."""
        for service in services:
            service.launch()
        for service in services:
            service.wait_listening()
            service.wait_ready()

    def settings(self) -> dict[str, str]:
        """Return the settings of every service, as variables without their prefix."""
        return {
            "REDIS_URL": self.store.url,
            "DURABILITY": self._durability.value,
            "PARTITIONS": str(PARTITIONS),
            "LEDGER_EPSILON": f"{self._ledger_epsilon:g}",
            "RATE": "1e6",
            "BURST": "1000000",
            "MINIMUM_BATCH": "1",
            "TOKENS": ";".join(f"{r.value} {r.value} {t}" for r, t in self._tokens.items()),
        }

    def bearer(self, role: Role) -> dict[str, str]:
        """Return the header of a role's token."""
        return {"Authorization": f"Bearer {self._tokens[role]}"}

    def create_ledger(self) -> RedisLedger:
        """Make the publisher's ledger, and return a view of it that is ours."""
        settings = Settings(redis_url=self.store.url, ledger_epsilon=self._ledger_epsilon)
        publisher.create_ledger(settings)
        client = Redis.from_url(self.store.url)
        self._stack.callback(client.close)
        return RedisLedger.open(client, settings.ledger, publisher.terms(settings))

    def publish(self, publication_id: str) -> ServiceReply:
        """Ask the publisher for a publication, for the first time or again."""
        cost = {"epsilon": EPSILON, "neighbours": Neighbours.RECORD_ADD_REMOVE.value}
        request = {"publication_id": publication_id, "data_set": DATA_SET, "method": METHOD}
        body = json.dumps({**request, "cost": cost}).encode()
        headers = {**self.bearer(Role.PUBLISH), "Content-Type": "application/json"}
        return self.publisher.ask("POST", "/publications", body=body, headers=headers)

    def pending_frames(self, service: ServiceProcess) -> int:
        """Return how many frames are handed out to a service and not settled."""
        return pending_frames(self.epochs.server, self.epochs.layout, service.pid)

    def settle(self) -> Conservation:
        """Wait until every frame has an outcome, and return the numbers."""
        deadline = time.monotonic() + _SETTLE_S
        while self.epochs.waiting():
            if time.monotonic() > deadline:
                raise ChaosTimeout(f"{self.epochs.waiting()} frames are not settled.")
            time.sleep(_PAUSE_S)
        return self.epochs.conservation()

    def read(self, path: str) -> ServiceReply:
        """Ask the aggregator for something."""
        return self.aggregator.ask("GET", path, headers=self.bearer(Role.READ))

    def compared(self, traffic: ClickTraffic) -> tuple[list[str], int]:
        """Close every epoch over HTTP; return each difference to the truth, and the cells."""
        faults, cells, admin = [], 0, self.bearer(Role.ADMIN)
        for (kind, epoch), sums in sorted(traffic.sums.items()):
            self.aggregator.ask("POST", f"/epochs/{kind}/{epoch}/close", headers=admin)
            reply = self.read(f"/statistics/{kind}/{epoch}")
            if reply.status != 200:
                faults.append(f"{kind} of epoch {epoch}: answered with {reply.status}")
                continue
            off = np.abs(np.array(reply.json["cells"]) - sums)
            cells += len(off)
            if off.any():
                wrong, most = int(np.count_nonzero(off)), int(off.sum())
                faults.append(
                    f"{kind} of epoch {epoch}: {wrong} cells are wrong, by {most} in all"
                )
        return faults, cells

    def miscounted(self, traffic: ClickTraffic, count: Conservation) -> list[str]:
        """Return in what the numbers of frames differ from the truth."""
        pairs = {
            "frames without an outcome": (count.missing, 0),
            "frames that wait": (count.pending, 0),
            "frames counted": (count.counted, traffic.frames),
            "reports counted": (count.reports, traffic.reports),
            "dead letters": (count.dead_letters, 0),
            "late frames": (count.late, 0),
        }
        return [f"{name}: {is_}, not {has}" for name, (is_, has) in pairs.items() if is_ != has]

    def _service(
        self,
        name: str,
        *options: str,
        module: str = "noisefloor_services",
        listens: bool = True,
    ) -> ServiceProcess:
        logs = self.folder / "logs"
        logs.mkdir(exist_ok=True)
        made = ServiceProcess(
            name, logs, self.settings(), *options, module=module, listens=listens
        )
        self._stack.callback(made.stop)
        return made
