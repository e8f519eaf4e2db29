"""Blocks of code in the pages of the documentation, for tests that run them."""

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"


def blocks_of(page: str, language: str) -> list[str]:
    """Return the fenced blocks of a language on a page, in order."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
