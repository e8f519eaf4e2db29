"""The values of every shipped scenario, kept and compared: a move of code must change none.

``python bench/same_values.py keep FILE`` runs the scenarios of this tree, in small versions (two
minutes in all), and writes for each point every metric with its value and interval, and every
claim. ``python bench/same_values.py compare FILE`` runs them again and ends with code 1 if a value
differs, is missing or is new. ``ads-million`` is left out for its size.
"""

import argparse
import csv
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
COLUMNS = ("point", "seed", "pipeline", "variant", "metric", "value", "ci_low", "ci_high", "n")
GAMES = "pipelines.models.pool=100", "pipelines.models.canaries=1000"
MODELS = ("population.users=1200", "pipelines.models.epochs=4", *GAMES)
# What is set so that the slow ones stay small; every branch of a sweep is still taken.
SMALL: dict[str, tuple[str, ...]] = {
    "ads-auction": ("population.users=3000", "pipelines.ads.auction.users=2000"),
    "ads-epsilon": ("population.users=3000", "days=2"),
    "ads-fraud": ("population.users=3000",),
    "ads-longitudinal": ("population.users=1024", "days=9"),
    "ads-paper-vs-corrected": ("population.users=3000",),
    "ads-training": ("population.users=5000", "sweep.seeds=2"),
    "clicks-longitudinal": ("population.users=1024", "days=[1, 7]"),
    "collection-epsilon": ("population.users=3000", "pipelines.collection.canaries=2000"),
    "collection-paper": ("population.users=1500", "pipelines.collection.canaries=1000"),
    "collection-queries": ("population.users=1500",),
    "models-epsilon": (*MODELS, "pipelines.models.epsilon=[0.25, 4.0]"),
    "models-paper-vs-corrected": MODELS,
    "models-weekly": MODELS,
    "quickstart": ("population.users=2000", "pipelines.clicks.canaries=2000"),
    "row-order": ("population.users=1024", "days=7"),
}


def found(scenario: Path, out: Path) -> dict[str, Any]:
    """Run a scenario in its small version, and return its metrics and claims."""
    sets = [word for one in SMALL[scenario.stem] for word in ("--set", one)]
    command = ["run", str(scenario), "--out", str(out), "--bus", "memory", *sets]
    call = "import sys; from noisefloor_sim.cli import main; sys.exit(main())"
    done = subprocess.run(  # noqa: S603  our own command
        [sys.executable, "-c", call, *command], capture_output=True, text=True, check=False
    )
    if done.returncode not in (0, 1) or not (out / "metrics.csv").exists():
        raise SystemExit(f"{scenario.stem}: {done.stdout}{done.stderr}")
    with (out / "metrics.csv").open(newline="") as file:
        metrics = [[row[name] for name in COLUMNS] for row in csv.DictReader(file)]
    return {"metrics": metrics, "claims": json.loads((out / "privacy.json").read_text())}


def everything() -> dict[str, Any]:
    """Run every scenario that is shipped, one after the other."""
    folder = next(ROOT.glob("simulator/noisefloor_sim/**/quickstart.yaml"), None)
    shipped = sorted((folder.parent if folder else ROOT / "scenarios").glob("*.yaml"))
    values = {}
    with tempfile.TemporaryDirectory() as name:
        for scenario in shipped:
            if scenario.stem in SMALL:
                values[scenario.stem] = found(scenario, Path(name) / scenario.stem)
                print(scenario.stem, len(values[scenario.stem]["metrics"]), flush=True)
    return values


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Return one line for each scenario that differs, with its first difference."""
    lines = []
    for name in sorted({*before, *after}):
        for what in ("metrics", "claims"):
            old = {json.dumps(one) for one in before.get(name, {}).get(what, [])}
            new = {json.dumps(one) for one in after.get(name, {}).get(what, [])}
            if old != new:
                first = sorted(old - new)[:1], sorted(new - old)[:1]
                counts = f"{len(old - new)} gone, {len(new - old)} new of {len(old)}"
                lines.append(f"{name}: {what}: {counts}: {first[0]} -> {first[1]}")
    return lines


def main() -> int:
    """Keep or compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("keep", "compare"))
    parser.add_argument("file", type=Path)
    given = parser.parse_args()
    values = everything()
    if given.what == "keep":
        given.file.write_text(json.dumps(values, indent=1))
        return 0
    lines = differences(json.loads(given.file.read_text()), values)
    print("\n".join(lines) or "all values are equal")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
