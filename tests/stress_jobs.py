"""Small stress jobs against a made-up service."""

import base64
import json
from pathlib import Path
from typing import Any

MARK = "00112233445566778899aabbccddeeff"


def write_templates(path: Path) -> Path:
    """Write a file of two frames."""
    bodies = [base64.b64encode(f"template {at}: {MARK}.".encode()).decode() for at in range(2)]
    rows = [
        {"class": "frames", "rows": 10, "path": "/frames", "type": "a/b", "body": body}
        for body in bodies
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def job(folder: Path, port: int, **changes: Any) -> dict[str, Any]:  # Any: JSON
    """Return a job of a fraction of a second, whose objective is loose."""
    phases = [{"rate": 200.0, "end_rate": 200.0, "seconds": 0.3}]
    return {
        "seed": 1,
        "out": str(folder),
        "requests": str(write_templates(folder / "requests.jsonl")),
        "shares": {"frames": 1.0},
        "duplicates": 0.1,
        "processes": 1,
        "warm_s": 0.1,
        "step_s": 0.2,
        "repeats": 1,
        "steps": [{"name": "step-1", "phases": phases}],
        "search": None,
        "objective": {"percentile": 50.0, "latency_ms": 30_000.0, "lag_grows": True},
        "target": {"ports": [port], "connections": 16, "timeout_s": 20.0},
        "counting": {"port": port, "collection": "stress-1", "token": "token"},
        "pids": {},
    } | changes
