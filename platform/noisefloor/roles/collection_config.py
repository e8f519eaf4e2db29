"""What is collected: catalogue, kinds of report and training task, as a document.

Ad server and aggregator have to agree on it; Redis remembers it and refuses another. Documents
state their format. One without is of the first, which had neither ``minimum_batch`` nor
``protections``: both may be left out still, so that it is read as it is.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from noisefloor.canonical_json import canonical_json
from noisefloor.checks import check_count, check_types
from noisefloor.errors import BadCollection, BadParameter
from noisefloor.roles.ad_server import IMPRESSIONS, Ad, Catalogue, request_kinds
from noisefloor.roles.batches import MOST_MINIMUM, BatchTerms, ReportProtection
from noisefloor.roles.kind_registry import kind_description, kinds_from_sizes
from noisefloor.tasks import TrainingTask, kinds_of_task, task_description, task_from_description
from noisefloor.wire import MOST_EPOCH, Kind

MOST_BYTES = 1 << 26
FORMAT = 2
_PARTS = frozenset(
    {
        *("catalogue", "kinds", "course", "first_epoch", "namespace"),
        *("format", "minimum_batch", "protections"),
    }
)


@dataclass(frozen=True, slots=True)
class CollectionConfig:
    """One collection.

    Attributes:
        catalogue: Ads in order; None where no ads are shown, and no impressions are counted.
        kinds: Kinds of report by name; impressions of the catalogue and the reports of the
            training task are always among them. Requests are for the ads of the catalogue.
        first_epoch: The oldest epoch that is open at the start.
        namespace: First part of every key in Redis.
        task: The training over closed rounds, if any; a round is an epoch.
        minimum_batch: Reports that an epoch has to have to be released; None for the service's.
        protections: How devices protect reports, by kind; what is not stated is not invented.
        name: Under which it is registered; empty for a service's first collection. It is no part
            of the document.
    """

    catalogue: Catalogue | None = None
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    first_epoch: int = 0
    namespace: str = "noisefloor"
    task: TrainingTask | None = None
    minimum_batch: int | None = None
    protections: Mapping[str, ReportProtection] = field(default_factory=dict)
    name: str = ""

    def __post_init__(self) -> None:
        check_count(self.first_epoch, "first_epoch", least=0, most=MOST_EPOCH)
        if self.task is not None and self.first_epoch:
            rule = "0 where there is a task: its rounds are epochs from 0 on"
            raise BadParameter("first_epoch", self.first_epoch, rule)
        needed: dict[str, Kind] = {}
        if self.catalogue is not None:
            needed |= kinds_from_sizes({IMPRESSIONS: {"size": len(self.catalogue)}})
        if self.task is not None:
            needed |= {kind.name: kind for kind in kinds_of_task(self.task)}
        for name, kind in needed.items():
            if self.kinds.get(name, kind) != kind:
                raise BadParameter("kinds", name, "as catalogue and training task declare it")
        object.__setattr__(self, "kinds", {**needed, **self.kinds})
        if self.minimum_batch is not None:
            check_count(self.minimum_batch, "minimum_batch", most=MOST_MINIMUM)
        if not set(self.protections) <= set(self.kinds):
            raise BadParameter("protections", "<kinds>", "of kinds that the collection has")
        request_kinds(self.kinds.values(), self.catalogue)

    @property
    def requests(self) -> dict[str, Kind]:
        """The kinds of requests among the kinds, by name."""
        return request_kinds(self.kinds.values(), self.catalogue)

    @property
    def terms(self) -> BatchTerms:
        """On which its batches are released."""
        return BatchTerms(self.minimum_batch or 1, self.protections)

    @property
    def frame_names(self) -> tuple[str, ...]:
        """The names of which a frame has one, to count here; an empty one for no name.

        A frame that names none counts in the first collection alone, whatever the minimum here:
        it is the first collection's minimum that protects it.
        """
        return (self.name,)

    def at_least(self, minimum: int, default: int | None = None) -> "CollectionConfig":
        """Return it with a minimum of its own, which is no smaller than a service allows.

        Args:
            minimum: What the service allows at least.
            default: For a collection that states none; by default the same.

        Raises:
            BadParameter: Its own is smaller.
        """
        if self.minimum_batch is None:
            return replace(self, minimum_batch=default or minimum)
        if self.minimum_batch < minimum:
            rule = f"{minimum} or more, which is the minimum of this service"
            raise BadParameter("minimum_batch", self.minimum_batch, rule)
        return self

    @classmethod
    def read(cls, path: Path) -> "CollectionConfig":
        """Read a collection from its file, or raise BadCollection."""
        try:
            if path.stat().st_size > MOST_BYTES:
                raise BadCollection(f"A collection's file has at most {MOST_BYTES} bytes.")
            return cls.parse(path.read_bytes())
        except OSError as error:
            raise BadCollection(f"A collection cannot be read: {type(error).__name__}.") from None

    @classmethod
    def parse(cls, content: bytes) -> "CollectionConfig":
        """Read a collection from its document, or raise BadCollection."""
        try:
            payload = json.loads(content)
            if not set(payload) <= _PARTS:
                raise BadCollection(f"A collection has {', '.join(sorted(_PARTS))}.")
            _check_format(payload.get("format", 1))
            listed, catalogue = payload.get("catalogue"), None
            if listed is not None:
                catalogue = Catalogue(listed["version"], tuple(Ad(**ad) for ad in listed["ads"]))
            rest = {
                name: payload[name]
                for name in ("first_epoch", "namespace", "minimum_batch")
                if payload.get(name) is not None
            }
            check_types(cls, rest)
            rest["protections"] = {
                name: ReportProtection.read(one)
                for name, one in payload.get("protections", {}).items()
            }
            if payload.get("course") is not None:
                rest["task"] = task_from_description(payload["course"])
            made = cls(catalogue, kinds_from_sizes(payload.get("kinds", {})), **rest)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            why = f"{error.name} has to be {error.rule}" if isinstance(error, BadParameter) else ""
            text = "A collection cannot be used: " + (why or type(error).__name__)
            raise BadCollection(f"{text}.") from None
        if not made.kinds:
            raise BadCollection("A collection needs a catalogue, a kind of report or a course.")
        return made

    @property
    def content(self) -> bytes:
        """The document, in one form only."""
        payload: dict[str, Any] = {  # Any: JSON
            "format": FORMAT,
            "kinds": {name: kind_description(self.kinds[name]) for name in sorted(self.kinds)},
            "first_epoch": self.first_epoch,
            "namespace": self.namespace,
            "protections": {name: one.fields for name, one in self.protections.items()},
        }
        if self.minimum_batch is not None:
            payload["minimum_batch"] = self.minimum_batch
        if self.catalogue is not None:
            payload["catalogue"] = json.loads(self.catalogue.content)
        if self.task is not None:
            payload["course"] = task_description(self.task)
        return canonical_json(payload)


def _check_format(stated: object) -> None:
    if isinstance(stated, bool) or not isinstance(stated, int) or stated < 1:
        raise BadParameter("format", "<value>", f"a whole number from 1 to {FORMAT}")
    if stated > FORMAT:
        rule = f"at most {FORMAT}: it was written by a newer noisefloor, which can read it"
        raise BadParameter("format", stated, rule)


def example_collection(ads: int = 20) -> CollectionConfig:
    """Return a small collection to try things with: some ads, and clicks on them."""
    listed = tuple(Ad(f"ad-{place}", place % 5) for place in range(ads))
    return CollectionConfig(Catalogue(1, listed), kinds_from_sizes({"clicks": {"size": ads}}))
