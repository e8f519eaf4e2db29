"""A small table of one's own with its schema beside it, for publishers in tests."""

import json
from pathlib import Path

VISITS = {
    "record": "one visit",
    "columns": {"country": {"categories": ["CH", "DE"]}, "age": {"bins": [0, 18, 65, 120]}},
}
ROWS = ("CH,17", "CH,40", "DE,64", "DE,70") * 50


def write_visits(folder: Path, *more: str, name: str = "visits") -> Path:
    """Write the table, with some rows more, and return its path."""
    path = folder / f"{name}.csv"
    path.write_text("\n".join(["country,age", *ROWS, *more, ""]))
    path.with_suffix(".schema.json").write_text(json.dumps(VISITS))
    return path
