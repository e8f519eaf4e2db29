"""The run directory: what a run writes, and how it is read back.

``manifest.json`` (run card), ``scenario.yaml`` (resolved), ``points/`` (one file per finished
point, so that an interrupted run can go on), ``metrics.parquet`` and ``metrics.csv`` (tidy),
``privacy.json`` (claims), ``report.html``. Files appear whole or not at all.
"""

import json
import math
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from noisefloor.errors import BadRunDirectory, NoisefloorError
from noisefloor.privacy import (
    Claim,
    FlowEvidence,
    Guarantee,
    LowerBound,
    Neighbours,
    TrustModel,
    number_or_inf,
)
from noisefloor_sim.pipelines import Findings, Metric, NamedClaim
from noisefloor_sim.scenario import RUN_FORMAT, format_fault

Json = dict[str, Any]  # what json reads and writes


@dataclass(frozen=True, slots=True)
class PointResult:
    """What one point of a sweep gave.

    Attributes:
        id: Of the point.
        settings: Swept keys and their values here, as text.
        seed: Of its random numbers.
        variant: ``paper`` or ``corrected``.
        findings: By pipeline; ``world`` holds metrics of the generated world, and the claim
            of its heaviest user.
        cpu_s: Processor time; goes to the manifest only.
        peak_mb: Peak memory of the process that ran it.
    """

    id: str
    settings: str
    seed: int
    variant: str
    findings: Mapping[str, Findings]
    cpu_s: float
    peak_mb: float

    def as_json(self) -> Json:
        """Return plain data that reads back to the same result."""
        return {
            "id": self.id,
            "settings": self.settings,
            "seed": self.seed,
            "variant": self.variant,
            "cpu_s": self.cpu_s,
            "peak_mb": self.peak_mb,
            "findings": {
                name: {
                    "metrics": [_metric_json(metric) for metric in found.metrics],
                    "claims": [claim_json(claim) for claim in found.claims],
                    "flows": [flow_json(flow) for flow in found.flows],
                }
                for name, found in sorted(self.findings.items())
            },
        }

    @classmethod
    def from_json(cls, data: Json) -> "PointResult":
        """Read a result back."""
        findings = {
            name: Findings(
                tuple(_metric(row) for row in found["metrics"]),
                tuple(_claim(row) for row in found["claims"]),
                tuple(_flow(row) for row in found["flows"]),
            )
            for name, found in data["findings"].items()
        }
        return cls(
            str(data["id"]),
            str(data["settings"]),
            int(data["seed"]),
            str(data["variant"]),
            findings,
            float(data["cpu_s"]),
            float(data["peak_mb"]),
        )


def _number(value: float) -> float | str | None:
    return None if math.isnan(value) else number_or_inf(value)


def _read_number(value: float | str | None) -> float:
    return math.nan if value is None else float(value)


def _metric_json(metric: Metric) -> list[object]:
    return [metric.name, *map(_number, (metric.value, metric.low, metric.high)), metric.n]


def _metric(row: Sequence[Any]) -> Metric:
    value, low, high = map(_read_number, row[1:4])
    return Metric(str(row[0]), value, low, high, int(row[4]))


def claim_json(named: NamedClaim) -> Json:
    """Return a claim as one object: claimed, proved, audited, and the verdict."""
    claim, bound = named.claim, named.claim.audited
    return {
        "mechanism": named.mechanism,
        "neighbours": claim.proved.neighbours.value,
        "model": claim.proved.model.value,
        "claimed": number_or_inf(claim.claimed.epsilon),
        "claimed_delta": claim.claimed.delta,
        "proved": number_or_inf(claim.proved.epsilon),
        "proved_delta": claim.proved.delta,
        "reason": claim.proved.reason,
        "audited": None if bound is None else number_or_inf(bound.epsilon),
        "confidence": None if bound is None else bound.confidence,
        "trials": None if bound is None else bound.trials,
        "ceiling": None if bound is None else number_or_inf(bound.ceiling),
        "null": _bound_json(claim.null),
        "planted": _bound_json(claim.planted),
        "flows": [flow_json(flow) for flow in claim.evidence],
        "verdict": claim.verdict,
        "audit_verdict": claim.audit_verdict,
    }


def _bound_json(bound: LowerBound | None) -> Json | None:
    if bound is None:
        return None
    return {
        "epsilon": number_or_inf(bound.epsilon),
        "confidence": bound.confidence,
        "trials": bound.trials,
        "ceiling": number_or_inf(bound.ceiling),
    }


def _bound(row: Json | None) -> LowerBound | None:
    if row is None:
        return None
    epsilon, confidence = float(row["epsilon"]), float(row["confidence"])
    return LowerBound(epsilon, confidence, int(row["trials"]), float(row["ceiling"]))


def flow_json(flow: FlowEvidence) -> Json:
    """Return what was seen of a flow as one object, with the verdict."""
    return {**asdict(flow), "faults": list(flow.faults), "verdict": flow.verdict}


def _flow(row: Json) -> FlowEvidence:
    fields = {name: value for name, value in row.items() if name != "verdict"}
    return FlowEvidence(**{**fields, "faults": tuple(row["faults"])})


def _claim(row: Json) -> NamedClaim:
    neighbours, model = Neighbours(row["neighbours"]), TrustModel(row["model"])

    def guarantee(name: str) -> Guarantee:
        epsilon, delta = float(row[name]), float(row[f"{name}_delta"])
        # The reason is that of the proof; a claim needs one only where it says infinity.
        reason = row["reason"] if name == "proved" or math.isinf(epsilon) else ""
        return Guarantee(epsilon, neighbours, delta=delta, model=model, reason=reason)

    bound = None
    if row["audited"] is not None:
        numbers = float(row["audited"]), float(row["confidence"])
        bound = LowerBound(*numbers, int(row["trials"]), float(row["ceiling"]))
    claim = Claim(
        guarantee("claimed"),
        guarantee("proved"),
        bound,
        _bound(row["null"]),
        _bound(row["planted"]),
        tuple(_flow(one) for one in row["flows"]),
    )
    return NamedClaim(row["mechanism"], claim)


class RunDirectory:
    """One folder of results.

    Args:
        path: Where it is, or will be.
    """

    __slots__ = ("path",)

    def __init__(self, path: Path) -> None:
        self.path = path

    def create(self, scenario_text: str, *, force: bool, resume: bool) -> None:
        """Make the folder, or take up an unfinished one of the same scenario."""
        if self.path.exists() and resume:
            self._check_same(scenario_text)
            return
        if self.path.exists() and not force:
            raise BadRunDirectory(
                f"{self.path}: exists already. Use --resume to go on with it, --force to replace "
                "it, or --out for another place."
            )
        if self.path.exists():
            self._remove()
        try:
            (self.path / "points").mkdir(parents=True)
        except OSError as error:
            raise BadRunDirectory(f"{self.path}: cannot be written: {error.strerror}.") from None
        self.write("scenario.yaml", scenario_text)

    @contextmanager
    def kept_if_begun(self) -> Iterator[None]:
        """Take the folder away again if the run is refused before its first point is done."""
        try:
            yield
        except NoisefloorError:
            if not any((self.path / "points").iterdir()):
                self._remove()
            raise

    def _remove(self) -> None:
        """Replace only what is a run directory: anything else may be dear to somebody."""
        if not (self.path / "scenario.yaml").is_file() or not (self.path / "points").is_dir():
            raise BadRunDirectory(
                f"{self.path}: is not a run directory; --force replaces no other."
            )
        shutil.rmtree(self.path)

    def check_format(self) -> None:
        """Refuse a run whose card was written in another format; an unfinished one has no card."""
        if not (self.path / "manifest.json").exists():
            return
        try:
            found = json.loads(self.read("manifest.json")).get("format")
        except (ValueError, AttributeError):
            raise BadRunDirectory(f"{self.path}: manifest.json is damaged.") from None
        redo = f"Run it again: noisefloor run {self.path / 'scenario.yaml'} --out FOLDER."
        fault = format_fault(found if type(found) is int else None, RUN_FORMAT, redo)
        if fault:
            raise BadRunDirectory(f"{self.path}: manifest.json: format: {fault}")

    def _check_same(self, scenario_text: str) -> None:
        self.check_format()
        if self.read("scenario.yaml") != scenario_text:
            raise BadRunDirectory(
                f"{self.path}: holds a run of another scenario or other settings; it cannot be "
                "resumed with these. Use --force or --out."
            )

    def read(self, name: str) -> str:
        """Return the text of a file, or say what is missing."""
        try:
            return (self.path / name).read_text(encoding="utf-8")
        except OSError:
            raise BadRunDirectory(
                f"{self.path}: {name} is missing or unreadable; this is no complete run directory."
            ) from None

    def write(self, name: str, content: str | bytes) -> None:
        """Write a file whole: a reader never sees half of it."""
        data = content.encode() if isinstance(content, str) else content
        target = self.path / name
        draft = target.with_name(f".{target.name}.part")
        try:
            draft.write_bytes(data)
            os.replace(draft, target)
        except OSError as error:
            raise BadRunDirectory(f"{target}: cannot be written: {error.strerror}.") from None

    def write_point(self, result: PointResult) -> None:
        """Keep a finished point."""
        text = json.dumps(result.as_json(), allow_nan=False)
        self.write(f"points/{result.id}.json", text)

    def read_point(self, point_id: str) -> PointResult | None:
        """Return a finished point, or nothing if it is not there."""
        if not (self.path / "points" / f"{point_id}.json").is_file():
            return None
        try:
            return PointResult.from_json(json.loads(self.read(f"points/{point_id}.json")))
        except (ValueError, KeyError, TypeError) as error:
            raise BadRunDirectory(
                f"{self.path}: points/{point_id}.json is damaged ({type(error).__name__}); remove "
                "it and resume."
            ) from None
