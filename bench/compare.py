"""Take both sides' times in turns, and judge the best of each."""

from dataclasses import asdict, dataclass, field
from typing import Any

from bench.table import aligned, figure
from bench.worker import Worker
from bench.workloads import Peer, Target, Workload

SECURE = "/os-entropy"
"""A workload of ours with this behind its name draws its coins from the operating system."""

HEADER = (
    *("workload", "ours s/M", "ours M/s", "secure s/M", "peer", "peer s/M"),
    *("ratio", "secure ratio", "target", "verdict", "notes"),
)


@dataclass(slots=True)
class Series:
    """The raw times of one side of one workload."""

    cpu_s: list[float] = field(default_factory=list)
    reports: list[int] = field(default_factory=list)
    error: str = ""

    def add(self, answer: dict[str, Any]) -> None:
        """Keep a time, or the first error: after one, this side is not asked again."""
        if "error" in answer:
            self.error = answer["error"]
            return
        self.cpu_s.append(answer["cpu_s"])
        self.reports.append(answer["reports"])

    @property
    def cost(self) -> float | None:
        """CPU-s per million reports, of the best repeat; None when there is none."""
        if self.error or not self.cpu_s:
            return None
        return 1e6 * min(t / n for t, n in zip(self.cpu_s, self.reports, strict=True))


@dataclass(frozen=True, slots=True)
class Row:
    """One workload against one peer, or against none."""

    workload: str
    peer: Peer | None
    target: Target | None
    ours: Series
    ours_secure: Series | None
    theirs: Series | None

    @property
    def ratio(self) -> float | None:
        """How many times the peer's cost is ours."""
        return _over(self.theirs, self.ours)

    @property
    def secure_ratio(self) -> float | None:
        """The same for ours on OS entropy."""
        return _over(self.theirs, self.ours_secure)

    @property
    def verdict(self) -> str:
        """Say whether the target is met, from the measured figures alone."""
        if self.ours.cost is None:
            return "did not run"
        met = self.target.is_met(self.ours.cost, self.ratio) if self.target else None
        if met is None:
            return "no peer ran" if self.target else ""
        return "met" if met else "missed"

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what the reader has to know about this row."""
        sides = {"The peer": self.theirs, "Ours": self.ours, "Ours, OS entropy": self.ours_secure}
        errors = {s.error: name for name, s in reversed(sides.items()) if s and s.error}
        named = (f"{name} did not run: {error}" for error, name in errors.items())
        return (*(self.peer.notes if self.peer else ()), *named)

    def as_json(self) -> dict[str, Any]:
        """Return every raw number with what was concluded from it."""
        sides = {"ours": self.ours, "ours_secure": self.ours_secure, "theirs": self.theirs}
        return {
            "workload": self.workload,
            "peer": self.peer.library if self.peer else None,
            "target": asdict(self.target) if self.target else None,
            "cpu_s_per_million": {k: s.cost if s else None for k, s in sides.items()},
            "raw": {k: asdict(s) if s else None for k, s in sides.items()},
            "ratio": self.ratio,
            "secure_ratio": self.secure_ratio,
            "verdict": self.verdict,
            "notes": self.notes,
        }


def _over(theirs: Series | None, ours: Series | None) -> float | None:
    if theirs is None or ours is None or theirs.cost is None or not ours.cost:
        return None
    return theirs.cost / ours.cost


def measure(
    workload: Workload, ours: Worker, theirs: Worker | None, *, repeats: int, quick: bool
) -> list[Row]:
    """Run the workload on all sides, one repeat each in turn: the machine's moods hit all."""
    peers = workload.peers if theirs else ()
    seeded, secure = Series(), Series() if workload.draws else None
    series = {peer: Series() for peer in peers}
    for repeat in range(repeats):
        _once(ours, workload.name, seeded, repeat, quick)
        if secure is not None:
            _once(ours, workload.name + SECURE, secure, repeat, quick)
        for peer in peers:
            assert theirs is not None  # noqa: S101  narrows a type
            _once(theirs, f"{peer.library}: {workload.name}", series[peer], repeat, quick)
    for worker in (ours, theirs):
        if worker is not None:
            worker.ask(forget=1)
    return [
        Row(
            workload.name,
            peer,
            workload.target if place == 0 else None,
            seeded,
            secure,
            series[peer] if peer else None,
        )
        for place, peer in enumerate(peers or (None,))
    ]


def _once(worker: Worker, name: str, series: Series, repeat: int, quick: bool) -> None:
    if not series.error:
        series.add(worker.ask(workload=name, repeat=repeat, quick=quick))


def printed(rows: list[Row]) -> str:
    """Return the table with its notes numbered below it."""
    numbers: dict[str, int] = {}
    cells = []
    for row in rows:
        marks = [str(numbers.setdefault(note, len(numbers) + 1)) for note in row.notes]
        cost = row.ours.cost
        cells.append(
            (
                row.workload,
                figure(cost),
                figure(1 / cost if cost else None),
                figure(row.ours_secure.cost if row.ours_secure else None),
                row.peer.library if row.peer else "-",
                figure(row.theirs.cost if row.theirs else None),
                figure(row.ratio),
                figure(row.secure_ratio),
                str(row.target) if row.target else "-",
                row.verdict or "-",
                ",".join(marks),
            )
        )
    below = (f"[{number}] {note}." for note, number in numbers.items())
    return "\n".join((aligned(HEADER, cells), "", *below))
